"""The largest stable step of a method."""

from typing import NamedTuple

import numpy as np

from .._base.checks import require_instance, require_known
from ..integrators import BY_NAME, Integrator
from ..mechanics import State, System
from ._modes import reduced_equations, spectrum

#: moduli of amplification that count as growth; rounding of slow modes is smaller
_GROWTH = 1e-9
#: amplifications nearer to one are those of motions that are slow for the step: uniform motion is
#: a double eigenvalue, whose rounding is the square root of that of others
_SLOW = 1e-6
#: steps that are tried, in units of one over the rate of a mode: smallest, largest, number
_RANGE = (1e-4, 1e4, 4001)


class StepLimit(NamedTuple):
    """The largest stable step of a method about a state.

    `dt` [s]: the limit, inf if there is none; `eigenvalue` the mode that limits; `eigenvalues` and
    `per_mode` [s] all modes and their limits (0 for a mode of the machine that grows by itself);
    `growing`: modes no step can stabilise, Re lambda > 0.

    `dt` is the smallest of `per_mode`, except for methods that advance positions and velocities by
    different formulas (`symplectic_euler`, `zhai`) on damped machines: damping couples modes
    in these, `dt` belongs to all of them, and `per_mode` states the limit of each mode alone."""

    dt: float
    eigenvalue: complex
    eigenvalues: np.ndarray
    per_mode: np.ndarray
    growing: np.ndarray


def step_limit(
    system: System,
    state: State | None = None,
    integrator: Integrator | str = "rk4",
    u=None,
    *,
    t: float = 0.0,
    held: bool = True,
) -> StepLimit:
    """Predict the largest stable step [s] of `integrator` from the machine linearised about
    `state`.

    Exact for linear machines; for others it holds near the state, and a run can survive above it
    while growth has not had time to build up. Arguments as in `modes`.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Oscillator

    spring = Oscillator(mass=1.0, stiffness=100.0)
    print(cordax.step_limit(spring, integrator="stormer_verlet").dt)  # 2 / 10 s
    ```
    """
    if isinstance(integrator, str):
        require_known("integrator", integrator, BY_NAME)
        integrator = BY_NAME[integrator]()
    require_instance("integrator", integrator, Integrator)
    M, K, D, _ = reduced_equations(system, state, u, t=t, held=held)
    values, shapes = spectrum(M, K, D)
    size = np.abs(values)
    negligible = size < 1e-9 * max(size.max(initial=0.0), 1e-300)
    grows = (np.real(values) > 1e-9 * size) & ~negligible
    decays = ~negligible & ~grows
    limits = np.where(grows, 0.0, np.inf)
    coupled = _couples_modes(integrator, M, D)
    if coupled:
        limits[decays] = _oscillator_limits(integrator, M, K, D, shapes[:, decays])
    else:
        limits[decays] = _mode_limits(integrator, values[decays])
    stable = np.where(grows, np.inf, limits)
    worst = int(np.argmin(stable))
    dt = float(stable[worst])
    if coupled and 0.0 < dt < np.inf:
        root = np.linalg.inv(np.linalg.cholesky(M))
        matrices = root @ K @ root.T, root @ D @ root.T
        dt = _search_from(_amplifies(integrator, *matrices, values[grows]), dt)
    return StepLimit(dt, complex(values[worst]), values, limits, values[grows])


def _couples_modes(integrator: Integrator, M, D) -> bool:
    """Whether the method and the damping couple modes; massless parts are for implicit methods."""
    scalar = np.zeros((1, 1))
    if not D.any() or integrator.amplification(scalar, scalar) is None:
        return False
    size = np.sqrt(np.diagonal(M))
    return bool(np.all(size > 0) and np.linalg.eigvalsh(M / size[:, None] / size)[0] > 1e-11)


def _mode_limits(integrator: Integrator, values: np.ndarray) -> np.ndarray:
    """Limits [s] of modes by the scalar stability function: they depend on the direction of the
    eigenvalue and scale with its size."""
    growth = type(integrator).growth  # unbound: binding a method of a module costs 20 calls of it
    size = np.abs(values)
    z = np.round(np.real(values) / size + 1j * np.abs(np.imag(values)) / size, 13)
    grid = np.geomspace(*_RANGE)
    known = {}
    for direction in set(z):
        amplifies = lambda dt, z=complex(direction): growth(integrator, z * dt) > 1.0 + 1e-12
        first = next((i for i, dt in enumerate(grid) if amplifies(dt)), None)
        known[direction] = _refine(amplifies, grid, first)
    return np.array([known[direction] for direction in z]) / size


def _oscillator_limits(integrator: Integrator, M, K, D, shapes: np.ndarray) -> np.ndarray:
    """Limits [s] of modes with positions `shapes` (d, k) by the amplification matrix of each
    alone, as an oscillator with the Rayleigh quotients of M, K and D."""
    m, k, d = (np.einsum("ik,ij,jk->k", shapes.conj(), X, shapes).real for X in (M, K, D))
    rate = np.maximum(np.sqrt(np.abs(k / m)), np.abs(d / m))
    grid = np.geomspace(*_RANGE)[::5]
    known = {}
    rows = [tuple(row) for row in np.round(np.stack([k / m / rate**2, d / m / rate], 1), 13)]
    for stiffness, damping in set(rows):
        roots = np.roots([1.0, -damping, -stiffness])
        one = np.ones((1, 1))
        amplifies = _amplifies(
            integrator, stiffness * one, damping * one, roots[np.real(roots) > 1e-9]
        )
        bad = amplifies(grid)
        known[stiffness, damping] = _refine(amplifies, grid, np.argmax(bad) if bad.any() else None)
    return np.array([known[row] for row in rows]) / rate


def _amplifies(integrator: Integrator, K, D, growing: np.ndarray):
    """A function of steps [s], any shape: whether the amplification matrix of q'' = K q + D q' has
    more eigenvalues outside the unit circle than there are `growing` modes."""

    def amplifies(dt):
        h = np.asarray(dt)[..., None, None]
        z = np.linalg.eigvals(np.asarray(integrator.amplification(K * h**2, D * h)))
        outside = np.sum((np.abs(z) > 1.0 + _GROWTH) & (np.abs(z - 1.0) > _SLOW), axis=-1)
        rate = growing * h[..., 0]
        return outside > np.sum((np.real(rate) > _GROWTH) & (np.abs(rate) > _SLOW), axis=-1)

    return amplifies


def _search_from(amplifies, guess: float) -> float:
    """The first step [s] that amplifies, of the order of `guess`, in few evaluations: each takes
    all eigenvalues of a large matrix."""
    low = 0.03 * guess
    while amplifies(low):
        low *= 0.1
        if low < 1e-7 * guess:
            return 0.0
    high = low
    while not amplifies(high):
        low, high = high, 1.25 * high
        if high > 1e4 * guess:
            return np.inf
    for near in (guess * (1.0 - 1e-6), guess * (1.0 + 1e-6)):  # often the limit of one mode
        if low < near < high:
            low, high = (low, near) if amplifies(near) else (near, high)
    return _bisect(amplifies, low, high, 1e-8)


def _refine(amplifies, grid: np.ndarray, first: int | None) -> float:
    """The limit, if `first` is the index of the first step of the grid that amplifies."""
    if first is None:
        return np.inf
    return 0.0 if first == 0 else _bisect(amplifies, grid[first - 1], grid[first])


def _bisect(amplifies, low: float, high: float, tolerance: float = 1e-11) -> float:
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if amplifies(middle) else (middle, high)
    return float(low)
