"""Progress and termination of a search."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..simulation.trajectory import Trajectory

CONVERGED, MAX_STEPS, NO_PROGRESS, START_FAILED, RUN_FAILED, MISFIT, SOME_FAILED = range(7)

#: residuals with a standard deviation beyond this many times the given noise are not noise
MISFIT_LIMIT = 3.0

SENTENCES = {
    CONVERGED: "Converged: further steps change parameters and misfit by less than the tolerance.",
    MAX_STEPS: "Stopped after the allowed number of iterations, maybe short of the best fit; there "
    "intervals do not hold. Allow more with max_steps, or start closer.",
    NO_PROGRESS: "Stopped because the linear equations of a step could not be solved. Check that "
    "the parameters influence what was recorded, and fit fewer of them.",
    START_FAILED: "The simulation failed with the start values, so nothing was fitted. Simulate "
    "the machine by itself first; try a smaller dt or an A-stable integrator such as rosenbrock_2.",
    RUN_FAILED: "The simulation failed at parameters the search came to; the best ones before are "
    "returned. Try a smaller learning rate or bounds.",
    MISFIT: "Ended where further steps change nothing, but the residuals are more than "
    f"{MISFIT_LIMIT:g} times the given noise: a local minimum, or a machine, start, inputs, "
    "time step or noise level that do not suit the recording. Plot the fit; start elsewhere.",
    SOME_FAILED: "The simulations of some recordings fail at the estimates, so these recordings "
    "count with large residuals and were not fitted. Simulate them alone; try a smaller dt, other "
    "initial values, or leave these recordings out.",
}


class Search(eqx.Module):
    """End of a search: coordinates `y`, shape (p,), the `code` of the reason, the number of
    iterations, and the residuals, shape (n,), their Jacobian and the trajectories at `y`."""

    y: Float[Array, " p"]
    code: Int[Array, ""]
    iterations: Int[Array, ""]
    residuals: Float[Array, " n"]
    jacobian: Float[Array, "n p"]
    trajectories: tuple[Trajectory, ...]


def with_failures(code: Int[Array, ""], failed) -> Int[Array, ""]:
    """Code of a search that ended at a point where the simulations marked in `failed`, (n,),
    fail."""
    code = jnp.where(jnp.any(failed), SOME_FAILED, code)
    return jnp.where(jnp.all(failed), START_FAILED, code)


def report(problem, residuals, y) -> None:
    """Print a line while the search runs."""
    size = jnp.sqrt(jnp.mean(residuals**2))
    values = problem.parameters.values(y[: problem.parameters.size])
    jax.debug.print(
        "RMS residual {size:.6g} x noise, parameters {values}", size=size, values=values
    )
