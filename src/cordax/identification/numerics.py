"""Whether how the motion is computed, and not what the machine is, explains residuals."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..control import RecordedInput
from ..experiment import Experiment
from ..integrators import BY_NAME
from .problem import Problem
from .report import Fit


def prediction_change(other: Problem, problem: Problem, fit: Fit) -> Float[Array, " n"]:
    """Residuals at the optimum when the simulation is that of another problem, less those of this,
    over noise, shape (n,); zero in gaps."""
    return other.residuals(fit.y)[0] - problem.weighed(fit.y, fit.differences)


def refined(problem: Problem) -> Problem:
    """The same problem with half the step."""
    return problem.changed(lambda trial: (trial.experiment, trial.grid.refined()))


def other_numerics(problem: Problem, fit: Fit) -> dict[str, Array]:
    """By what is done otherwise: how much the simulation at the optimum changes, as a share of the
    residuals (root of sums of squares)."""
    found = {}
    for name, other in _others(problem).items():
        try:
            found[name] = _share(other, problem, fit)
        except ValueError:  # a method that does not take this machine, a step that does not fit
            continue
    return found


@eqx.filter_jit
def _share(other: Problem, problem: Problem, fit: Fit):
    return jnp.sqrt(jnp.sum(prediction_change(other, problem, fit) ** 2) / fit.cost)


def _others(problem: Problem) -> dict[str, Problem]:
    others = {}
    first = problem.trials[0]
    name, grid = first.experiment.system.default_integrator, first.grid
    if not isinstance(first.experiment.integrator, BY_NAME[name]) or grid.save_every > 1:
        others[f"{name} at {grid.coarse().dt:g} s"] = problem.changed(
            lambda trial: (trial.experiment.replace(integrator=name), trial.grid.coarse())
        )
    for way in ("cubic", "linear", "hold"):
        read = [_read_as(way, trial.experiment) for trial in problem.trials]
        if any(e is not t.experiment for e, t in zip(read, problem.trials, strict=True)):
            others[f"inputs read as {way!r}"] = problem.changed(
                lambda trial, way=way: (_read_as(way, trial.experiment), trial.grid)
            )
    return others


def _read_as(way, experiment: Experiment) -> Experiment:
    control = experiment.control
    if not isinstance(control, RecordedInput) or control.interpolation == way:
        return experiment
    t = control.start + control.interval * np.arange(len(control.values))
    return experiment.replace(control=RecordedInput(t, control.values, way))
