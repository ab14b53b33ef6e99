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
    """Trust region whose first damping parameter is the squared norm of the first residuals, so
    that the first step is cautious in any units. Good steps reduce it fast, since parameters with
    little effect do not move until it has the size of their entry of J^T J."""

    high_cutoff: float = 0.75
    high_constant: float = 10.0

    def step(self, first_step, y, y_eval, f_info, f_eval_info, state):
        least = jnp.finfo(state.step_size.dtype).tiny
        begin = 0.5 / jnp.maximum(f_eval_info.as_min(), least)
        size = jnp.where(first_step, begin, state.step_size)
        state = eqx.tree_at(lambda s: s.step_size, state, size)
        return super().step(first_step, y, y_eval, f_info, f_eval_info, state)


class _LevenbergMarquardt(optx.LevenbergMarquardt):
    """Levenberg-Marquardt with two more convergence criteria, since optimistix ends on accepted
    steps only:

    - The next step is negligible. If the misfit is down to rounding errors, no step is accepted.
    - The misfit cannot fall: to first order, steps as large as the parameters, or of size 1 in
      search coordinates, reduce it by less than the tolerance. If a parameter goes to zero, its
      logarithm goes to minus infinity in large steps that never end.
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
        # The Jacobian is computed here, in one run with a tangent per parameter, and passed on as a
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
    r, J, trajectories = found.state.aux  # at the last accepted point, found.value
    stopped = optx.RESULTS
    code = jnp.where(found.result == stopped.successful, CONVERGED, NO_PROGRESS)
    code = jnp.where(found.result == stopped.nonlinear_max_steps_reached, MAX_STEPS, code)
    # infinite residuals are accepted at one point only: a starting point that fails
    code = jnp.where(jnp.isfinite(r[0]), code, START_FAILED)
    code = with_failures(code, problem.failed(trajectories))
    return Search(found.value, code, jnp.asarray(found.stats["num_steps"]), r, J, trajectories)
