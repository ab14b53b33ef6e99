"""Static equilibria."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._base.checks import (
    known_values,
    require,
    require_finite,
    require_instance,
    require_positive,
    require_shape,
    require_whole,
)
from .._base.precision import as_float_array
from .._base.revalidate import recheck
from .._jax.compiled_errors import raise_compiled
from .._jax.identity import filter_jit
from .._jax.program_cache import kept_filter_jit
from .._jax.tracing import is_traced
from ..mechanics import State, System
from ..mechanics.consistent_state import POSITION_TOLERANCE
from ..mechanics.constraints import constraint_force
from .force_balance import Balance
from .load_stepping import follow
from .trust_region import EXHAUSTED, FOUND, STUCK, Search, search

_UNMET, _PUSHED = 4, 5
_REASONS = {
    FOUND: "found",
    STUCK: "no step leads nearer to balance",
    EXHAUSTED: "max_steps were not enough",
    _UNMET: "no configuration near the guess satisfies the constraints",
    _PUSHED: "forces push where nothing holds",
}


class Equilibrium(eqx.Module):
    """Result of `equilibrium(..., full=True)`.

    - `state`: at rest; `multipliers` (m,) of the constraints there;
    - `residual` (n_v,): unbalanced forces [N] or [N m]; `gap` (m,): constraint errors;
    - `unstable`, `neutral`: numbers of allowed directions with negative and with zero stiffness;
    - `steps` of the search; `code`: 1 for success."""

    state: State
    multipliers: Float[Array, " m"]
    residual: Float[Array, " n"]
    gap: Float[Array, " m"]
    unstable: Int[Array, ""]
    neutral: Int[Array, ""]
    steps: Int[Array, ""]
    code: Int[Array, ""]

    @property
    def found(self) -> Bool[Array, ""]:
        """Whether forces balance, constraints hold and, if required, the state is stable."""
        return self.code == FOUND

    @property
    def stable(self) -> Bool[Array, ""]:
        """Whether no direction is unstable. Directions may be neutral."""
        return self.unstable == 0

    @property
    def reason(self) -> str:
        """Why the search ended."""
        return _REASONS[int(self.code)]


def equilibrium(
    system: System,
    u=None,
    *,
    guess: State | None = None,
    t: float = 0.0,
    tolerance: float = 1e-10,
    max_steps: int = 500,
    stable: bool = True,
    full: bool = False,
    load: Callable[[float], System] | None = None,
):
    """Find a static equilibrium under constant inputs `u`, shape (n_u,), constraint forces
    included. Returns a `State`, or with `full` an `Equilibrium`.

    The search starts at `guess` (default: the machine's initial state), descends to a minimum of
    the energy and leaves saddle points. With `stable=False` it accepts the nearest equilibrium, for
    example an upright pendulum. Coordinates without stiffness (a free trolley) keep their values.
    `tolerance`: largest remaining correction, relative to the largest coordinate.

    `load` helps where the guess is poor, or selects one of several equilibria: a function from
    a load factor between 0 (easy) and 1 (full load) to the machine, such as
    `lambda s: eqx.tree_at(lambda m: m.gravity, rod, 9.81 * s)`. It is not supported inside `jit`.

    Differentiable with respect to the machine and the inputs, without motion along neutral
    directions. Raises `RuntimeError` if the search does not converge, unless `full`. Warns if a
    rigid cable would have to push.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    print(cordax.equilibrium(Pendulum()).q)  # [0.]: it hangs
    ```
    """
    require_instance("system", system, System)
    recheck(system)
    ok = u is None or hasattr(u, "shape") or hasattr(u, "__len__")
    require(ok and not isinstance(u, State), "u", type(u).__name__, "inputs, shape (n_u,), or None")
    require(guess is None or isinstance(guess, State), "guess", type(guess).__name__, "a State")
    start = system.default_state() if guess is None else guess
    u = jnp.zeros(system.n_u, start.q.dtype) if u is None else as_float_array(u, "u")
    require_shape("u", u, (system.n_u,))
    require_finite("u", u)
    q = as_float_array(start.q, "guess.q")
    require_shape("guess.q", q, (system.n_q,))
    require_finite("guess.q", q)
    options = (as_float_array(t, "t"), as_float_array(tolerance, "tolerance"), max_steps, stable)
    require_shape("t", options[0], ())
    require_finite("t", options[0])
    require_shape("tolerance", options[1], ())
    require_positive("tolerance", options[1])
    require_whole("max_steps", max_steps, 1)
    for name, flag in (("stable", stable), ("full", full)):
        require(isinstance(flag, bool), name, flag, "True or False")
    traced = is_traced((system, u, q, options))
    if load is not None:
        require(callable(load), "load", load, "a function from a number between 0 and 1")
        require(not traced, "load", "a call inside of jit or grad", "numbers, to follow the load")
        part, reached = follow(load, lambda machine, q: _at_once(machine, u, q, *options), q)
        if not bool(part.found) and not full:
            raise RuntimeError(f"{_explain(system, part)}; this at {reached:.3g} of the load")
        q = part.state.q
    rest = (_inside if traced else _at_once)(system, u, q, *options)
    if not traced and bool(rest.found):
        _warn_if_pushing(system, options[0], rest)
    if full:
        return rest
    code = known_values(rest.code)
    if code is None:  # traced: the message cannot name the coordinate
        messages = [f"equilibrium: no state at rest found: {x}" for x in _REASONS.values()]
        return raise_compiled(rest.state, ~rest.found, rest.code - 1, messages)
    if code != FOUND:
        raise RuntimeError(_explain(system, rest))
    return rest.state


def _warn_if_pushing(system: System, t, rest: Equilibrium) -> None:
    """Warn of constraints that can only pull, such as rigid cables, and would have to push."""
    one_sided = np.asarray(system.one_sided)
    if not one_sided.any():
        return
    forces = np.asarray(system.multiplier_forces(t, rest.state.q, rest.multipliers))
    pushing = np.flatnonzero(one_sided & (forces < -1e-9 * (1.0 + np.abs(forces).max())))
    if pushing.size:
        names = getattr(system, "constraint_names", None)
        name = lambda i: f"constraint {i}" if names is None else f"constraint {i} ({names[i]})"
        listed = ", ".join(f"{name(i)} with {-forces[i]:.3g} N" for i in pushing)
        warnings.warn(
            f"equilibrium: cables can only pull, but the balance needs {listed} to push; such a "
            "cable is slack, and the state without it is another one",
            stacklevel=3,
        )


def _at_rest(system: System, u, q, t, tolerance, max_steps: int, stable: bool) -> Equilibrium:
    system = system.prepare()
    frozen, u_frozen, t_frozen = (_stopped(x) for x in (system, u, t))
    end = search(
        frozen, t_frozen, q, u_frozen, tolerance=tolerance, max_steps=max_steps, stable=stable
    )
    end = lax.stop_gradient(end)
    rest, at = jnp.zeros(system.n_v, q.dtype), end.at
    # One more correction with the last matrices, frozen, carries the derivative of the implicit
    # function in both modes.
    f, gap = system.total_force(t, end.q, rest, u), system.constraint(t, end.q)
    if gap.size > 0:
        f = f + constraint_force(system, t, end.q, at.multipliers)
    d = jnp.where(end.code == FOUND, at.newton(f, gap), 0.0)
    held = at.covector(f) - at.stiffness @ ((at.metric @ d) @ at.factor)
    return Equilibrium(
        state=State(system.retract(end.q, d), rest),
        multipliers=at.multipliers + held @ at.close,
        residual=at.unheld(f),
        gap=gap,
        unstable=end.at.unstable(),
        neutral=jnp.sum(end.at.neutral),
        steps=end.steps,
        code=_code(end, gap),
    )


# Compiling takes far longer than running: without LLVM's optimisation a rod compiles in half the
# time and runs as fast. Options are for programs of their own only, not for parts of others.
_LIGHT: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
_at_once = kept_filter_jit(_at_rest, **_LIGHT)
_inside = filter_jit(_at_rest)


def _stopped(tree):
    """The tree with derivatives stopped."""
    return jax.tree.map(lambda x: lax.stop_gradient(x) if eqx.is_inexact_array(x) else x, tree)


def _code(end: Search, gap) -> Int[Array, ""]:
    """Result of the search, with the cause of a failure."""
    pushed = jnp.max(jnp.where(end.at.neutral, jnp.abs(_modal_force(end.at)), 0.0)) > 1e-6
    code = jnp.where((end.code != FOUND) & pushed, _PUSHED, end.code)
    return jnp.where(jnp.max(jnp.abs(gap), initial=0.0) > POSITION_TOLERANCE, _UNMET, code)


def _modal_force(at: Balance) -> Float[Array, " n"]:
    return at.directions.T @ (at.allowed @ at.covector(at.f))


def _explain(system: System, rest: Equilibrium) -> str:
    """Error message: the largest remaining force or constraint error, and its coordinate."""
    text = f"equilibrium: no state at rest found: {rest.reason} (steps: {int(rest.steps)})"
    if int(rest.code) == _UNMET:
        gap = np.abs(np.asarray(rest.gap))
        return (
            f"{text}; |Phi| = {gap.max():.3g} stays in row {int(gap.argmax())}; check lengths and "
            "geometry, or start nearer"
        )
    left = np.asarray(rest.residual)
    worst = int(np.argmax(np.abs(left)))
    text += f"; a force of {left[worst]:.3g} is left on {system.velocity_names[worst]}"
    if int(rest.unstable) > 0:
        text += (
            f", in a state that is unstable in {int(rest.unstable)} directions; stable=False "
            "accepts a balance that does not stay"
        )
    return f"{text}; try another guess or other inputs"
