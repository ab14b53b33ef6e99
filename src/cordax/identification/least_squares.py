"""Levenberg-Marquardt with forward-mode Jacobians."""

import equinox as eqx
import jax.numpy as jnp
import optimistix as optx
from jax.lax import stop_gradient

from .problem import Problem
from .shooting import Shooting
from .termination import (
    CONVERGED,
    MAX_STEPS,
    NO_PROGRESS,
    START_FAILED,
    Search,
    report,
    with_failures,
)


class _Damping(optx.ClassicalTrustRegion):
    """Starts with a damping parameter equal to the squared norm of the first residuals: the first
    step is then a cautious one whatever the units. Good steps let it fall fast, since parameters
    that matter little wait until it is of the size of their own entry of J^T J."""

    high_cutoff: float = 0.75
    high_constant: float = 10.0

    def step(self, first_step, y, y_eval, f_info, f_eval_info, state):
        least = jnp.finfo(state.step_size.dtype).tiny
        begin = 0.5 / jnp.maximum(f_eval_info.as_min(), least)
        size = jnp.where(first_step, begin, state.step_size)
        state = eqx.tree_at(lambda s: s.step_size, state, size)
        return super().step(first_step, y, y_eval, f_info, f_eval_info, state)


class _LevenbergMarquardt(optx.LevenbergMarquardt):
    """Two more ways to converge, since only accepted steps end the search of optimistix:

    - The next step is negligible. Where the misfit is down to rounding errors, no step is accepted.
    - The misfit cannot fall: to first order, steps as large as the parameters, or of size 1 in
      search coordinates, reduce it by less than the tolerance. A logarithm that goes to minus
      infinity, because the parameter goes to zero, takes large steps for ever.
    """

    def __init__(self, tolerance: float):
        super().__init__(rtol=tolerance, atol=tolerance)
        self.search = _Damping()

    def terminate(self, fn, y, args, options, state, tags):
        done, result = super().terminate(fn, y, args, options, state, tags)
        step, size = jnp.max(jnp.abs(state.y_eval - y)), jnp.max(jnp.abs(y))
        negligible = step <= self.atol + self.rtol * size
        reduction = jnp.abs(state.f_info.compute_grad()) @ jnp.maximum(jnp.abs(y), 1.0)
        flat = reduction <= self.rtol * state.f_info.as_min()
        return done | ((negligible | flat) & ~state.first_step), result


def levenberg_marquardt(
    problem: Problem | Shooting, y0, *, max_steps: int, tolerance: float, progress: bool = False
) -> Search:
    """Minimise the sum of squared residuals from `y0`, shape (p,)."""

    def residuals(y, problem):
        # The Jacobian is formed here, in one run with a tangent per parameter, and handed on as a
        # constant linear map: linearising the time loop itself would store every step.
        at = stop_gradient(y)
        J, (r, trajectories) = problem.jacobian(at)
        if progress:
            report(problem, r, at)
        return r + J @ (y - at), (r, J, trajectories)

    found = optx.least_squares(
        residuals,
        _LevenbergMarquardt(tolerance),
        y0,
        problem,
        {"jac": "fwd"},
        has_aux=True,
        max_steps=max_steps,
        throw=False,
    )
    r, J, trajectories = found.state.aux  # at the point last accepted, found.value
    stopped = optx.RESULTS
    code = jnp.where(found.result == stopped.successful, CONVERGED, NO_PROGRESS)
    code = jnp.where(found.result == stopped.nonlinear_max_steps_reached, MAX_STEPS, code)
    # a start that fails is the only point with infinite residuals that is ever accepted
    code = jnp.where(jnp.isfinite(r[0]), code, START_FAILED)
    code = with_failures(code, problem.failed(trajectories))
    return Search(found.value, code, jnp.asarray(found.stats["num_steps"]), r, J, trajectories)
