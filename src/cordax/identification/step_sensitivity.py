"""Check whether numerical errors, and not the model, explain residuals."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax.identity import filter_jit
from ..integrators import BY_NAME
from ..mechanics import Controller
from ..simulation.experiment import Experiment
from .fit import Fit
from .problem import Problem


def prediction_change(other: Problem, problem: Problem, fit: Fit) -> Float[Array, " n"]:
    """Change of the residuals at the optimum if the simulation is that of another problem, over
    noise, shape (n,); zero in gaps."""
    return other.plain_residuals(fit.y)[0] - problem.weighed(fit.y, fit.differences)


def refined(problem: Problem) -> Problem:
    """The same problem with half the time step."""
    return problem.changed(lambda trial: (trial.experiment, trial.grid.refined()))


def other_numerics(problem: Problem, fit: Fit) -> dict[str, Array]:
    """Change of the simulation at the optimum with other numerical settings, by their description,
    as a fraction of the residuals (root of sums of squares)."""
    found = {}
    for name, other in _others(problem).items():
        try:
            found[name] = _share(other, problem, fit)
        except ValueError:  # the integrator does not support this machine or this time step
            continue
    return found


@filter_jit
def _share(other: Problem, problem: Problem, fit: Fit):
    return jnp.sqrt(jnp.sum(prediction_change(other, problem, fit) ** 2) / fit.cost)


def _others(problem: Problem) -> dict[str, Problem]:
    others = {}
    first = problem.trials[0]
    name, grid = first.experiment.system.default_integrator, first.grid
    is_default = bool(eqx.tree_equal(first.experiment.integrator, BY_NAME[name]()))
    if not is_default or grid.save_every > 1:
        others[f"{name} at {grid.coarse().dt:g} s"] = problem.changed(
            lambda trial: (trial.experiment.replace(integrator=name), trial.grid.coarse())
        )
    for words in dict.fromkeys(w for t in problem.trials for w in _read_otherwise(t.experiment)):

        def read(trial, words=words):
            experiment = trial.experiment
            return _read_otherwise(experiment).get(words, experiment), trial.grid

        others[words] = problem.changed(read)
    return others


def _read_otherwise(experiment: Experiment) -> dict[str, Experiment]:
    control = experiment.control
    ways = control.otherwise() if isinstance(control, Controller) else {}
    return {words: experiment.replace(control=other) for words, other in ways.items()}
