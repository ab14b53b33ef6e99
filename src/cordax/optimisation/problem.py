"""Cost, constraints and their derivatives as one compiled function of the unknowns."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._base.checks import require
from .._base.results import Result
from .._jax.identity import filter_jit
from ..parameters.parameter import ParameterSet, varied
from ..shooting.segments import Segments, all_segments, differentiate, push_forward, pushed
from ..simulation._simulate import simulate, simulate_steps
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .constraint import Constraint

#: number of initial points that are evaluated in one batch
_TOGETHER = 16


class Problem(eqx.Module):
    """Optimisation problem as a function of search coordinates `y`.

    They are the coordinates of the parameters, zero at the initial values, followed by those of the
    nodes if the motion is split into `segments`. Without a motion (`still`), cost and constraints
    are functions of the machine."""

    experiment: Experiment
    parameters: ParameterSet
    cost: Callable[[Any], Any] = eqx.field(static=True)
    constraints: tuple[Constraint, ...] = eqx.field(static=True)
    scenarios: dict[str, jax.Array]
    combine: str = eqx.field(static=True)
    still: bool = eqx.field(static=True, default=False)
    segments: Segments | None = None

    @property
    def n_scenarios(self) -> int:
        return len(next(iter(self.scenarios.values()))) if self.scenarios else 1

    @property
    def size(self) -> int:
        """Number of search coordinates, of parameters and nodes."""
        nodes = math.prod(self.segments.shape) if self.segments else 0
        return self.parameters.size + nodes

    def values(self, y):
        """Parameter values at `y`, shape (p,)."""
        return self.parameters.values(y)

    def variant(self, y, scenario: dict) -> Experiment:
        """Experiment of a scenario at `y`, with its original duration."""
        return varied(self.parameters.insert(self.experiment, y), scenario)

    def step(self, y):
        """Time step [s]; the number of steps is constant if the duration is a parameter."""
        duration = self.parameters.duration(y)
        return self.experiment.time_step if duration is None else duration / self.experiment.steps

    def run(self, y, scenario: dict) -> Any:
        """Trajectory of a scenario without segments; the machine itself if nothing is simulated."""
        variant = self.variant(y, scenario)
        if self.still:
            return variant.system
        if self.parameters.duration(y) is not None:
            return simulate_steps(variant, self.experiment.steps, dt=self.step(y))
        return simulate(variant, throw=False, adjoint="scan")

    def measured(self, run) -> dict[str, Any]:
        """Cost of a motion and its constraint values (m,), divided by their scales."""
        cost = jnp.asarray(_traceable("cost", self.cost, run))
        require(cost.shape == (), "cost", f"shape {cost.shape}", "one number")
        named = [(f"constraint {c.label}", c) for c in self.constraints]
        rows = [jnp.asarray(_traceable(name, c.values, run)) / c.scale for name, c in named]
        rows = jnp.concatenate(rows) if rows else jnp.zeros(0, cost.dtype)
        return {"cost": cost, "rows": rows, "gaps": jnp.zeros((0,), cost.dtype)}

    def over_scenarios(self, one: Callable, *more) -> Any:
        """Evaluate `one(scenario, *more)` for all scenarios. Arrays of `more` have a leading axis
        (n_scenarios,)."""
        if self.scenarios:
            return jax.vmap(one)(self.scenarios, *more)
        first = jax.tree.map(lambda x: x[0], more)
        return jax.tree.map(lambda x: jnp.asarray(x)[None], one({}, *first))

    def combined(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Combine the costs of the scenarios to the total cost; return both."""
        costs = measured["cost"]
        total = jnp.mean(costs) if self.combine == "mean" else jnp.max(costs)
        return measured | {"costs": costs, "cost": total, "gaps": jnp.ravel(measured["gaps"])}

    def evaluate(self, y) -> dict[str, Any]:
        """Evaluate the total `cost`, the `costs` of the scenarios, the constraint values `rows`
        (n_scenarios, m), the `gaps` between segments, and which scenarios succeeded (`good`)."""
        if self.segments is not None:
            runs = self.simulated(y)
            return self.assembled(y, runs) | {"good": _succeeded(runs)}

        def one(scenario):
            run = self.run(y, scenario)
            good = jnp.asarray(True) if self.still else run.result == Result.SUCCESSFUL
            return self.measured(run) | {"good": good}

        return self.combined(self.over_scenarios(one))

    def sizes(self) -> list[int]:
        """Number of entries of each constraint."""
        first = {name: x[0] for name, x in self.scenarios.items()}
        rows = lambda: [c.values(self.run(self.parameters.origin, first)) for c in self.constraints]
        return [x.size for x in eqx.filter_eval_shape(rows)]

    def linear(self, y) -> tuple[dict[str, Any], dict[str, Any]]:
        """Result of `evaluate`, and the derivatives of cost, rows and gaps with respect to `y`.

        Forward mode is used, because there are few unknowns compared with the rows. One simulation
        computes the derivatives in all directions."""
        if self.segments is not None:
            return self.linear_segments(y)
        values, slopes, more = pushed(lambda y: _split(self.evaluate(y)), y)
        return values | more, slopes

    # --- with segments
    def nodes(self, y):
        """Coordinates of all nodes, (n_scenarios, count - 1, 2 n_v)."""
        assert self.segments is not None
        return y[self.parameters.size :].reshape(self.segments.shape)

    def segment(self, scenario: dict, segments: Segments) -> Callable:
        """Function that simulates a segment of a scenario from search coordinates, segment number
        and node coordinates. It returns the trajectory without its machine."""

        def run(y, k, z) -> Trajectory:
            trajectory = segments.run(self.variant(y, scenario), k, z, self.step(y))
            return dataclasses.replace(trajectory, system=None, events=None, statistics={})

        return run

    def simulated(self, y) -> Trajectory:
        """Simulate all segments; the trajectories have shape (n_scenarios, count, ...)."""

        def one(scenario, nodes, segments):
            return all_segments(self.segment(scenario, segments), y, nodes)

        return self.over_scenarios(one, self.nodes(y), self.segments)

    def assembled(self, y, runs: Trajectory) -> dict[str, Any]:
        """Cost, constraints and gaps of the motion that consists of the segments `runs`."""

        def one(scenario, nodes, segments, runs):
            system = self.variant(y, scenario).system
            gaps = segments.gaps(system, runs.q[:, -1], runs.v[:, -1], nodes)
            return self.measured(joined(runs, system)) | {"gaps": gaps}

        return self.combined(self.over_scenarios(one, self.nodes(y), self.segments, runs))

    def trajectory(self, y, scenario: int = 0) -> Trajectory:
        """Trajectory of a scenario, joined from its segments."""
        runs = jax.tree.map(lambda a: a[scenario], self.simulated(y))
        case = {name: a[scenario] for name, a in self.scenarios.items()}
        return joined(runs, self.variant(y, case).system)

    def linear_segments(self, y):
        """Compute `linear` for a motion with segments."""
        assert self.segments is not None
        p = self.parameters.size

        def one(scenario, nodes, segments):
            return differentiate(self.segment(scenario, segments), y[:p], nodes)

        runs, slopes = self.over_scenarios(one, self.nodes(y), self.segments)

        def measured(y, runs):
            return _split(self.assembled(y, runs))

        values, slopes, more = push_forward(measured, y, self.segments.shape, runs, slopes)
        return values | more | {"good": _succeeded(runs)}, slopes

    def solution(self, y) -> Experiment:
        """Experiment with the parameters and the duration at `y`."""
        y = jnp.asarray(y)
        experiment, duration = self.variant(y, {}), self.parameters.duration(y)
        if duration is None:
            return experiment
        duration = float(duration)
        return experiment.replace(duration=duration, dt=duration / self.experiment.steps)

    def cut(self, segments: Segments) -> "Problem":
        return dataclasses.replace(self, segments=segments)


def _split(measured: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the results into those that are differentiated and the others."""
    names = ("cost", "rows", "gaps")
    return {name: measured.pop(name) for name in names}, measured


def _succeeded(runs: Trajectory):
    """Whether all segments of each scenario succeeded, (n_scenarios,)."""
    return jnp.all(runs.result == Result.SUCCESSFUL, axis=1)


def joined(runs: Trajectory, system) -> Trajectory:
    """Join segments (count, ...) to one trajectory. An instant that two segments share is taken
    from the later one."""
    rows = runs.t.shape[0] * (runs.t.shape[1] - 1)
    long = lambda x: jnp.concatenate([x[:, :-1].reshape(rows, *x.shape[2:]), x[-1, -1:]])
    names = ("t", "q", "v", "u", "multipliers", "violation", "outputs")
    arrays = {name: jax.tree.map(long, getattr(runs, name)) for name in names}
    first = jnp.argmax(runs.result != Result.SUCCESSFUL)  # first failed segment, if any
    result, failure_time = (x[first] for x in (runs.result, runs.failure_time))
    warnings = {name: jnp.min(x) for name, x in runs.warnings.items()}
    return Trajectory(
        **arrays, warnings=warnings, result=result, failure_time=failure_time, system=system
    )


def _traceable(what: str, function: Callable, run):
    """Value of a user's function of a run; raises `ValueError` if JAX cannot trace it."""
    try:
        return function(run)
    except jax.errors.JAXTypeError as error:
        raise ValueError(
            f"{what}: got a function that needs known numbers, expected one by jax.numpy alone, "
            "without NumPy, float(...) or `if` on its numbers"
        ) from error


@filter_jit
def linearised(problem: Problem, y):
    return problem.linear(y)


@filter_jit
def tried(problem: Problem, ys):
    """Evaluate many initial points, shape (k, p), in batches."""
    k, p = ys.shape
    groups = -(-k // _TOGETHER)
    some = jnp.resize(ys, (groups, min(k, _TOGETHER), p))  # repeated to fill the last batch
    found = jax.lax.map(jax.vmap(problem.evaluate), some)
    return jax.tree.map(lambda x: x.reshape(some.shape[0] * some.shape[1], *x.shape[2:])[:k], found)


@filter_jit
def motion(problem: Problem, y) -> Trajectory:
    """Trajectory of the first scenario, joined from its segments, without its machine."""
    return dataclasses.replace(problem.trajectory(y), system=None)
