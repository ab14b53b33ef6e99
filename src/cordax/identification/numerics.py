"""Whether how the motion is computed, and not what the machine is, explains residuals."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..control import RecordedInput
from ..integrators import BY_NAME
from .grid import Grid
from .problem import Problem
from .report import Fit


def prediction_change(other: Problem, problem: Problem, fit: Fit) -> Float[Array, " n"]:
    """Residuals at the optimum when the simulation is that of another problem, less those of this,
    over noise, shape (n,); zero in gaps."""
    change = [
        jnp.where(jnp.isnan(problem.values[name]), 0.0, (d - fit.residuals[name]) / fit.noise[name])
        for name, d in other.differences(other.run(fit.y)).items()
    ]
    return jnp.concatenate([x.ravel() for x in change])


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
    experiment, grid = problem.experiment, problem.grid
    others = {}
    name = experiment.system.default_integrator
    if not isinstance(experiment.integrator, BY_NAME[name]) or grid.save_every > 1:
        coarse = Grid(
            grid.t0, grid.save_every * grid.dt, grid.steps // grid.save_every, 1, grid.rows
        )
        usual = experiment.replace(integrator=name)
        others[f"{name} at {coarse.dt:g} s"] = eqx.tree_at(
            lambda p: (p.experiment, p.grid), problem, (usual, coarse)
        )
    control = experiment.control
    if isinstance(control, RecordedInput):
        for way in ("cubic", "linear", "hold"):
            if way != control.interpolation:
                t = control.start + control.interval * np.arange(len(control.values))
                inputs = RecordedInput(t, control.values, way)
                others[f"inputs read as {way!r}"] = eqx.tree_at(
                    lambda p: p.experiment.control, problem, inputs
                )
    return others
