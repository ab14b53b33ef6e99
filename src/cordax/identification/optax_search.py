"""Search with any optax optimiser."""

import jax
import jax.numpy as jnp
import optax

from .problem import Problem
from .termination import CONVERGED, MAX_STEPS, RUN_FAILED, Search, with_failures

#: up to this many parameters the gradient is J^T r from forward mode; above, reverse mode is
#: cheaper
FORWARD_LIMIT = 8


def first_order(
    problem: Problem,
    y0,
    *,
    optimiser: optax.GradientTransformation,
    max_steps: int,
    tolerance: float,
    progress: bool = False,
) -> Search:
    """Minimise half the sum of squared residuals, divided by its initial value, from `y0`.

    Stops when the gradient and the relative change of the misfit are below `tolerance`. Returns the
    best point of the search, since an optimiser with a fixed learning rate does not settle.
    """
    gradient = _forward if problem.parameters.size <= FORWARD_LIMIT else _reverse

    def go_on(state):
        *_, code, i = state
        return (code < 0) & (i < max_steps)

    def iterate(state):
        y, memory, best, least, before, scale, _, i = state
        cost, slope, failed = gradient(problem, y)
        scale = jnp.where(i == 0, jnp.where(cost > 0, cost, 1.0), scale)
        cost, slope = cost / scale, slope / scale
        if progress:
            jax.debug.print("iteration {i}: cost {cost:.6g} of that at the start", i=i, cost=cost)
        finite = jnp.isfinite(cost) & jnp.all(jnp.isfinite(slope)) & ~jnp.any(failed)
        better = finite & (cost < least)
        best, least = jnp.where(better, y, best), jnp.where(better, cost, least)
        still = jnp.max(jnp.abs(slope)) <= tolerance
        still = still & (jnp.abs(before - cost) <= tolerance * (cost + tolerance))
        code = jnp.where(finite, jnp.where(still, CONVERGED, -1), RUN_FAILED)
        step, memory = optimiser.update(slope, memory, y)
        return optax.apply_updates(y, step), memory, best, least, cost, scale, code, i + 1

    inf, one = jnp.asarray(jnp.inf, y0.dtype), jnp.ones((), y0.dtype)
    begin = (y0, optimiser.init(y0), y0, inf, inf, one, jnp.asarray(-1), jnp.asarray(0))
    _, _, best, _, _, _, code, i = jax.lax.while_loop(go_on, iterate, begin)
    J, (r, trajectories) = problem.jacobian(best)
    code = jnp.where(code < 0, MAX_STEPS, code)
    code = with_failures(code, problem.failed(trajectories))
    return Search(best, code, i, r, J, trajectories)


def _forward(problem: Problem, y):
    J, (r, trajectories) = problem.jacobian(y)
    return 0.5 * jnp.sum(r * r), r @ J, problem.failed(trajectories)


def _reverse(problem: Problem, y):
    def cost(y):
        r, trajectories = problem.residuals(y)
        return 0.5 * jnp.sum(r * r), problem.failed(trajectories)

    (value, failed), slope = jax.value_and_grad(cost, has_aux=True)(y)
    return value, slope, failed
