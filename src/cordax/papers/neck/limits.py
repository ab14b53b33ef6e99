"""Largest stable step of the explicit scheme: predicted from the spectrum and observed in runs."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._base.precision import as_float_array
from ...control import ComputedTorque
from ...mechanics import State
from ...statics import step_limit
from .march import Run, march
from .setup import Controlled

#: a run counts as stable if its tracking error stays below this [rad]
FINE = 0.05
#: smallest step of the paper [s]
SMALLEST = 2.5e-5


class Predicted(NamedTuple):
    """Largest stable steps of explicit Euler, linearised about states along the motion.

    `t` [s], shape (k,); `open_loop` and `closed_loop` [s], shape (k,), 0 where a mode is unstable
    at any step; `growth` [1/s] of the fastest growing closed-loop mode, shape (k,), negative if no
    mode grows.
    """

    t: np.ndarray
    open_loop: np.ndarray
    closed_loop: np.ndarray
    growth: np.ndarray


def with_choices(case: Controlled, inertia: float, bandwidth: float) -> Controlled:
    """Return the case with another rotor inertia [kg m^2] and controller bandwidth [rad/s]."""
    neck = eqx.tree_at(lambda n: n.motors.inertia, case.neck, as_float_array(inertia))
    control = ComputedTorque(neck, case.control.reference, K_p=bandwidth**2, K_d=2.0 * bandwidth)
    return Controlled(neck, control, control.start())


def frictionless(case: Controlled) -> Controlled:
    """Return the case without dry friction in the motors."""
    neck = eqx.tree_at(lambda n: n.motors.dry_friction, case.neck, as_float_array(0.0))
    control = eqx.tree_at(lambda c: c.machine, case.control, neck)
    return Controlled(neck, control, case.start)


def predict(run: Run, instants: int = 9) -> Predicted:
    """Predict the limits along a `run` of the controlled robot with elastic tendons. In open loop,
    the torques are held constant at their values at each instant, and dry friction, which only adds
    damping, is omitted."""
    neck, control = run.case.neck, run.case.control
    rows = np.linspace(0, len(run.t) - 1, instants).astype(int)
    q, v, u = (run.series(get) for get in (lambda p: p.q, lambda p: p.v, lambda p: p.u))
    open_loop, closed_loop, growth = [], [], []
    for i in rows:
        state, t = State(jnp.asarray(q[i]), jnp.asarray(v[i])), float(run.t[i])
        options = {"integrator": "explicit_euler", "t": t, "held": False}
        free = step_limit(neck, state, u=jnp.asarray(u[i]), **options)
        open_loop.append(_oscillating(free))
        closed = step_limit(neck, state, u=control, **options)
        closed_loop.append(0.0 if _growing(closed.eigenvalues) > 0 else _oscillating(closed))
        growth.append(_growing(closed.eigenvalues))
    return Predicted(run.t[rows], *map(np.array, (open_loop, closed_loop, growth)))


def _elastic(eigenvalues: np.ndarray) -> np.ndarray:
    """Select the oscillating modes of tendons and arm. Slow modes of the frozen motion are not
    vibrations."""
    return (np.abs(eigenvalues) > 20.0) & (np.abs(np.imag(eigenvalues)) > 1e-6)


def _oscillating(limit) -> float:
    return float(np.min(limit.per_mode[_elastic(limit.eigenvalues)]))


def _growing(eigenvalues: np.ndarray) -> float:
    return float(np.max(np.real(eigenvalues[_elastic(eigenvalues)])))


def observe_closed_loop(case: Controlled) -> float:
    """Largest step [s] at which explicit Euler follows the whole motion, to 1 %; 0 if it fails even
    at the smallest step of the paper."""
    fine = lambda dt: march(case, "explicit_euler", dt).error < FINE
    # the smallest step needs the longest run, so a larger one is tried first
    return _largest(fine, 2e-4, 2e-3) or _largest(fine, SMALLEST, 2e-4)


def observe_open_loop(case: Controlled, seconds: float = 2.0) -> float:
    """Largest step [s], to 1 %, at which a small disturbance of the robot at rest under constant
    motor torques decays. Dry friction is omitted because it would only hide slow growth."""
    case = frictionless(case)
    neck, start = case.neck, case.start
    torque = eqx.filter_jit(case.control)(0.0, start, ())[0]
    nudge = start.v.at[: neck.n_joints].set(1e-4)
    nudged = Controlled(neck, case.control, State(start.q, nudge))

    def decays(dt: float) -> bool:
        run = march(nudged, "explicit_euler", dt, seconds, control=torque)
        if np.isfinite(run.failure_time):
            return False
        rates = np.abs(run.series(lambda p: p.v)).max(axis=1)
        half = len(rates) // 2
        return bool(rates[half:].max() < rates[:half].max())

    return _largest(decays, 1e-4, 4e-3)


def _largest(fine: Callable[[float], bool], low: float, high: float) -> float:
    """Find the end of the stable range between `low` and `high` by bisection on a logarithmic
    scale."""
    if not fine(low):
        return 0.0
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if fine(middle) else (low, middle)
    return low
