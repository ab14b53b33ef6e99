"""Cost, constraints and their derivatives as one compiled function of the unknowns."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._checks import require
from .._results import RESULTS
from ..experiment import Experiment
from ..parameters import ParameterSet, varied
from ..simulate import simulate
from ..trajectory import Trajectory
from .constraint import Constraint


class Problem(eqx.Module):
    """Unknowns `y`, shape (p,): one each unit of `units`, from zero at the start."""

    experiment: Experiment
    places: tuple[Any, ...]
    start: jax.Array
    units: jax.Array
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    cost: Callable[[Trajectory], Any] = eqx.field(static=True)
    constraints: tuple[Constraint, ...] = eqx.field(static=True)
    scenarios: dict[str, jax.Array]
    combine: str = eqx.field(static=True)

    @staticmethod
    def of(experiment, found: ParameterSet, cost, constraints, scenarios, combine) -> "Problem":
        start = jnp.concatenate([x.ravel() for x in found.starts])
        limits = [b or (-math.inf, math.inf) for b in found.number_bounds]
        width = np.array([high - low for low, high in limits])
        size = np.abs(np.asarray(start))
        units = np.where(np.isfinite(width), width, np.where(size > 0, size, 1.0))
        shapes = tuple(x.shape for x in found.starts)
        return Problem(
            experiment,
            found.places,
            start,
            jnp.asarray(units, start.dtype),
            shapes,
            cost,
            constraints,
            scenarios,
            combine,
        )

    @property
    def n_scenarios(self) -> int:
        return len(next(iter(self.scenarios.values()))) if self.scenarios else 1

    def values(self, y):
        return self.start + self.units * y

    def apply(self, y) -> Experiment:
        """The experiment with the numbers at `y`."""
        experiment, used, x = self.experiment, 0, self.values(y)
        for place, shape in zip(self.places, self.shapes, strict=True):
            size = math.prod(shape)
            experiment = place.write(experiment, x[used : used + size].reshape(shape))
            used += size
        return experiment

    def run(self, y, scenario: dict) -> Trajectory:
        return simulate(varied(self.apply(y), scenario), throw=False, adjoint="scan")

    def evaluate(self, y) -> dict[str, Any]:
        """Cost, constraints (n_scenarios, m), and which scenarios succeeded."""

        def one(scenario):
            run = self.run(y, scenario)
            cost = jnp.asarray(self.cost(run))
            require(cost.shape == (), "cost", f"shape {cost.shape}", "one number of a Trajectory")
            rows = [jnp.asarray(c.values(run)) / c.scale for c in self.constraints]
            rows = jnp.concatenate(rows) if rows else jnp.zeros(0, cost.dtype)
            return cost, rows, run.result == RESULTS.successful

        if self.scenarios:
            cost, rows, good = jax.vmap(one)(self.scenarios)
        else:
            cost, rows, good = jax.tree.map(lambda x: x[None], one({}))
        total = jnp.mean(cost) if self.combine == "mean" else jnp.max(cost)
        return {"cost": total, "costs": cost, "rows": rows, "good": good}

    def sizes(self) -> list[int]:
        """How many numbers each constraint has."""
        first = {name: x[0] for name, x in self.scenarios.items()}

        def rows():
            run = self.run(jnp.zeros_like(self.start), first)
            return [c.values(run) for c in self.constraints]

        return [x.size for x in eqx.filter_eval_shape(rows)]

    def linear(self, y) -> tuple[dict[str, Any], dict[str, Any]]:
        """`evaluate`, and the derivatives of cost and rows by `y`, in forward mode: the unknowns
        are few beside the rows. One simulation carries all directions along."""

        def smooth(y):
            found = self.evaluate(y)
            return {name: found.pop(name) for name in ("cost", "rows")}, found

        def push(direction):
            return jax.jvp(smooth, (y,), (direction,), has_aux=True)

        axes = (None, -1, None)
        found, slopes, more = jax.vmap(push, out_axes=axes)(jnp.eye(y.shape[0], dtype=y.dtype))
        return found | more, slopes


@eqx.filter_jit
def linearised(problem: Problem, y):
    return problem.linear(y)


@eqx.filter_jit
def tried(problem: Problem, ys):
    """Of many starts at once, shape (k, p)."""
    return jax.lax.map(problem.evaluate, ys)
