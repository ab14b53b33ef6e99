"""States that satisfy the constraints of a machine."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .._base.checks import known_values, require, require_finite, require_instance, require_shape
from .._base.precision import as_float_array
from .._base.revalidate import recheck
from .._jax.program_cache import kept_filter_jit
from . import State, System
from .constraints import position_on_constraints, velocity_on_constraints
from .state import require_state

#: largest |Phi| and |dPhi/dt| of an initial state
POSITION_TOLERANCE, RATE_TOLERANCE = 1e-6, 1e-5


def consistent(system: System, state: State | None = None, *, t: float = 0.0) -> State:
    """State that satisfies the constraints and their rates at time `t` [s] and is nearest to
    `state` in the norm of the mass matrix. The default `state` is `system.default_state()`. Raises
    `ValueError` if there is no such state nearby."""
    require_instance("system", system, System)
    recheck(system)
    state = system.default_state() if state is None else state
    require_state("state", state, system)
    time = as_float_array(t, "t")
    require_shape("t", time, ())
    require_finite("t", time)
    moved = _project(system, state, time)
    left = known_values(
        jnp.max(jnp.abs(system.constraint(as_float_array(t), moved.q)), initial=0.0)
    )
    if left is not None and not left < POSITION_TOLERANCE:
        raise ValueError(
            f"state: no state near the given one satisfies the constraints, |Phi| stays at "
            f"{left:.3g}; check lengths and geometry, or start nearer"
        )
    return moved


@kept_filter_jit
def _project(system: System, state: State, t) -> State:
    q = position_on_constraints(system, t, state.q, 12)
    return State(q, velocity_on_constraints(system, t, q, state.v)[0])


class Look(NamedTuple):
    """Check of a state: whether the model is valid there, |Phi| and |dPhi/dt|."""

    valid: Any
    phi: Any
    rate: Any


def look(system: System, state: State, t, one_sided: bool) -> Look:
    """Check whether a state is valid and satisfies the constraints. With `one_sided`, cables may be
    slack."""
    valid = jnp.all(jnp.asarray(system.valid(t, state.q, state.v)))
    if system.n_constraints == 0:
        return Look(valid, jnp.zeros(1), jnp.zeros(1))
    phi, _, rate, _ = system.structure().constraint_terms(t, state.q, state.v)
    if not one_sided:
        return Look(valid, jnp.abs(phi), jnp.abs(rate))
    # one-sided constraints may be open, or opening
    may_open = jnp.asarray(system.one_sided)
    taut = ~may_open | (phi > -POSITION_TOLERANCE)
    inward = jnp.where(may_open, jnp.maximum(phi, 0.0), jnp.abs(phi))
    opening = jnp.where(may_open, jnp.maximum(rate, 0.0), jnp.abs(rate))
    return Look(valid, inward, jnp.where(taut, opening, 0.0))


look_compiled = kept_filter_jit(look)


def check_start(system: System, state: State, t, found: Look, *, joined: bool = False) -> None:
    """Raise if an initial state is not valid or violates the constraints; the message contains the
    size of the violation and a remedy. Traced values (inside `jit`) are not checked. `joined`: the
    constraints are new in this phase and are not checked."""
    valid, *errors = (known_values(x) for x in found)
    if valid is not None and not valid:
        outside = "a state outside of the model"
        require(False, "state0", outside, system.presentation().invalid_reason(t, state.q, state.v))
    if joined:
        return
    for error, tolerance, what in zip(
        errors, (POSITION_TOLERANCE, RATE_TOLERANCE), ("Phi", "dPhi/dt"), strict=True
    ):
        if error is not None and not np.max(error) <= tolerance:
            raise ValueError(
                "state0: got a state that violates the constraints, "
                f"|{what}| = {np.max(error):.3g} in row {int(np.argmax(error))}, "
                f"expected at most {tolerance:g}; "
                f"cordax.consistent(system, state0) gives the nearest one that satisfies them"
                f"{_how_far(system, state, t)}"
            )


def _how_far(system: System, state: State, t) -> str:
    moved = _project(system, state, t)
    dq, dv = (float(jnp.max(jnp.abs(a - b))) for a, b in ((moved.q, state.q), (moved.v, state.v)))
    if not np.isfinite(dq + dv):
        return ""
    return f" (it moves coordinates by up to {dq:.3g}, velocities by up to {dv:.3g})"
