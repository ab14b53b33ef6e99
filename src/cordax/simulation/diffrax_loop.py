"""Runs by an integrator that has its own time loop (`Diffrax`)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._base.checks import require
from .._base.results import GOOD, Result
from ..mechanics import State
from .plan import Plan
from .postprocess import stored_trajectory
from .time_loop import ContinuousInput


def integrate_whole(plan: Plan, state, status, t0, n_saves: int):
    """Run one phase by an integrator with its own time loop.

    Returns the trajectory, and the last state, memory and status."""
    unprepared, plan = plan.dynamics.system, plan.prepared()
    dt = jnp.asarray(plan.dt)
    require(
        plan.hold == 0,
        "control",
        type(plan.controller).__name__,
        "a controller without memory or period, which "
        f"{type(plan.integrator).__name__} evaluates in every stage",
    )
    plan.check(state, t0)
    t = t0 + jnp.arange(n_saves + 1) * (plan.save_every * dt)
    u = ContinuousInput(plan)
    method: Any = plan.integrator  # `owns_time_loop`
    forward = plan.adjoint == "forward"
    (q, v), finite, ended = method.solve(plan.dynamics, t, dt, state, u, forward)
    system = plan.dynamics.system
    valid = jax.vmap(lambda t, q, v: jnp.asarray(system.valid(t, q, v)))(t, q, v)
    earlier = status[0] != GOOD
    bad = ~(finite & valid) | earlier
    first = jnp.argmax(bad)
    kind = jnp.where(finite[first], Result.RUNAWAY_STATE, Result.NONFINITE_STATE)
    code = jnp.where(jnp.any(bad), kind, GOOD)
    code = jnp.where(earlier, status[0], code.astype(status[0].dtype))
    failure = jnp.where(earlier, status[1], jnp.where(code == GOOD, jnp.inf, t[first]))
    # rows after the failure repeat the last good one, as with a fixed step
    last_good = jnp.where(code == GOOD, n_saves, jnp.maximum(first - 1, 0))
    row = jnp.minimum(jnp.arange(n_saves + 1), last_good)
    states = State(q[row], v[row])
    inputs = jax.vmap(lambda t, s: plan.control(t, s, ())[0])(t, states)
    trajectory, last, (code, failure) = stored_trajectory(
        plan, unprepared, t, states, inputs, None, (), {}, (code, failure)
    )
    # If the method stopped early, states are missing; its result code is more specific.
    known = (ended == Result.SUCCESSFUL) | earlier | (code == Result.RUNAWAY_STATE)
    merged = jnp.where(known, trajectory.result, ended)
    trajectory = eqx.tree_at(lambda x: x.result, trajectory, merged)
    return trajectory, last, (), (code, failure)
