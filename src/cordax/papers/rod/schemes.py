"""Properties of one scheme on the rod: order, force evaluations, stability limits and energy."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ...integrators import BY_NAME
from ...mechanics import Delegate
from ...simulation._simulate import simulate
from ...statics import modes
from ...systems import SplineRod
from ..timing import Timing
from .march import Run, march
from .setup import UnwarnedStructure

#: names of the schemes in the tables
LABELS = {
    "symplectic_euler": "symplectic Euler",
    "stormer_verlet": "Stormer-Verlet",
    "forest_ruth_4": "Forest-Ruth 4",
    "suzuki_4": "Suzuki 4",
    "rk4": "Runge-Kutta 4",
    "zhai": "Zhai",
    "implicit_midpoint": "implicit midpoint",
}
#: time at which schemes are compared with the converged motion [s], and the steps tried
COMPARED_AT = 1.0
COMPARED_STEPS = (2e-3, 1e-3, 5e-4, 2.5e-4)
#: duration of the runs that search for the largest stable step [s]
WATCHED = 5.0
#: relative accuracy of the largest stable step
RESOLUTION = 5e-3
#: number of steps over which evaluations are counted, after as many uncounted steps
COUNTED = 10


class Energy(NamedTuple):
    """Energy error along a run [J]: its largest size, its value at the end, and the change of a
    straight line fitted to it (`drift`); whether it fell in every second; the largest kinetic
    energy [J]; `error` (k,) at times `t` [s]."""

    largest: float
    end: float
    drift: float
    falls: bool
    kinetic: float
    t: np.ndarray
    error: np.ndarray


class Scheme(NamedTuple):
    """Results of one scheme: `errors` [m] of positions at `COMPARED_AT` by step [s]; `evaluations`
    of the force per step; largest stable step, `predicted` [s] from the fastest mode of the
    straight rod and `observed` [s] by load; `energy` by step [s]; `timing` of 10 s at 2 ms."""

    errors: dict[float, float]
    evaluations: float
    predicted: float
    observed: dict[str, float]
    energy: dict[float, Energy]
    timing: Timing

    @property
    def seconds(self) -> float:
        return self.timing.seconds

    @property
    def order(self) -> float:
        """Order of convergence: slope of error over step from the two smallest steps."""
        (a, b) = sorted(self.errors)[:2]
        return float(np.log(self.errors[b] / self.errors[a]) / np.log(b / a))


def fastest(rod: SplineRod) -> float:
    """Angular frequency of the fastest mode about the straight state [rad/s]."""
    return float(2.0 * np.pi * modes(rod).frequency.max())


def predicted_limit(scheme: str, frequency: float) -> float:
    """Largest stable step [s] for an undamped mode with an angular frequency [rad/s]."""
    return BY_NAME[scheme].traits.oscillator_limit / frequency


def observed_limit(
    rod: SplineRod, scheme: str, near: float, load: str = "gravity", duration: float = WATCHED
) -> float:
    """Largest step [s] at which a run of the rod does not fail, by bisection around `near`."""
    stable = lambda dt: not march(rod, scheme, dt, duration, load, stride=5).failed
    low, high = 0.9 * near, 1.2 * near
    while not stable(low):
        low, high = 0.8 * low, low
    while stable(high):
        low, high = high, 1.2 * high
    while high - low > RESOLUTION * near:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def position_error(run: Run, exact: Run, t: float = COMPARED_AT) -> float:
    """Largest error of a coordinate of a control point at a time [m]; inf if the run failed."""
    if run.failed:
        return np.inf
    at = lambda r: r.control[int(np.argmin(np.abs(r.t - t)))][:, :3]
    return float(np.max(np.abs(at(run) - at(exact))))


def energy(run: Run) -> Energy:
    E = run.energy
    t, error = run.t, E - E[0]
    seconds = np.interp(np.arange(np.floor(t[-1]) + 1), t, error)
    slope = np.polyfit(t, error, 1)[0] if len(t) > 1 else 0.0
    return Energy(
        float(np.max(np.abs(error))),
        float(error[-1]),
        float(slope * t[-1]),
        bool(np.all(np.diff(seconds) < 0)),
        float(np.max(run.kinetic)),
        t,
        error,
    )


class _Counting(Delegate):
    """Wrapper of a machine that counts the evaluations of its force at run time."""

    calls: list = eqx.field(static=True, default_factory=list)

    def total_force(self, t, q, v, u):
        jax.debug.callback(lambda: self.calls.append(1))
        return self.inner.total_force(t, q, v, u)

    def structure(self) -> "_CountingStructure":
        return _CountingStructure(self)


class _CountingStructure(UnwarnedStructure):
    system: Any

    def acceleration(self, t, q, v, u):
        jax.debug.callback(lambda: self.system.calls.append(1))
        return self.system.inner.structure().acceleration(t, q, v, u)

    def linearise(self, *args, **kwargs):
        return self.system.inner.structure().linearise(*args, **kwargs)


def evaluations(rod: SplineRod, scheme: str) -> float:
    """Mean number of force evaluations per step at 2 ms, without the first steps, counted at run
    time."""
    counting = _Counting(rod)

    def until(steps: int) -> int:
        counting.calls.clear()
        run = simulate(counting, dt=2e-3, duration=2e-3 * steps, integrator=scheme)
        jax.block_until_ready(run.q)
        jax.effects_barrier()
        return len(counting.calls)

    return (until(2 * COUNTED) - until(COUNTED)) / COUNTED


def growth_exponent(t: np.ndarray, error: np.ndarray) -> float:
    """Power of time with which an error grows, from a straight line fitted to its logarithms."""
    return float(np.polyfit(np.log(t), np.log(error), 1)[0])


def mistuned_zhai(parameter: float, omega_dt: float) -> float:
    """Factor by which Zhai's method with psi = phi = `parameter` amplifies an undamped oscillation
    per step."""
    h = omega_dt  # time in units of 1/omega: a = -q
    a = np.array([-1.0, 0.0, 0.0])
    before = np.array([0.0, 0.0, 1.0])
    q = np.array([1.0, h, 0.0]) + h * h * ((0.5 + parameter) * a - parameter * before)
    v = np.array([0.0, 1.0, 0.0]) + h * ((1.0 + parameter) * a - parameter * before)
    return float(np.max(np.abs(np.linalg.eigvals(np.stack([q, v, a])))))
