"""Cost, constraints and their derivatives as one compiled function of the unknowns."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._base.checks import require
from .._base.results import Result
from .._jax.identity import filter_jit
from ..parameters.parameter import ParameterSet, varied
from ..simulation._simulate import simulate, simulate_steps
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .constraint import Constraint
from .shooting import Segments, together

#: starts that are tried side by side
_TOGETHER = 16


class Problem(eqx.Module):
    """Search coordinates `y`: those of the parameters, zero at the start, followed by those of
    the nodes if the motion is split into `segments`. Without motion (`still`), cost and
    constraints are functions of the machine."""

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
        """Of `y`."""
        scenarios, nodes, numbers = self.segments.shape if self.segments else (0, 0, 0)
        return self.parameters.size + scenarios * nodes * numbers

    def values(self, y):
        """Parameter values at `y`, shape (p,)."""
        return self.parameters.values(y)

    def variant(self, y, scenario: dict) -> Experiment:
        """The experiment of a scenario at `y`, with its original duration."""
        return varied(self.parameters.insert(self.experiment, y), scenario)

    def step(self, y):
        """Time step [s]; the number of steps is constant if the duration is a parameter."""
        duration = self.parameters.duration(y)
        return self.experiment.time_step if duration is None else duration / self.experiment.steps

    def run(self, y, scenario: dict) -> Any:
        """The trajectory without segments; the machine itself if nothing is simulated."""
        variant = self.variant(y, scenario)
        if self.still:
            return variant.system
        if self.parameters.duration(y) is not None:
            return simulate_steps(variant, self.experiment.steps, dt=self.step(y))
        return simulate(variant, throw=False, adjoint="scan")

    def measured(self, run) -> dict[str, Any]:
        """Cost and constraints (m,) of a motion."""
        cost = jnp.asarray(_traceable("cost", self.cost, run))
        require(cost.shape == (), "cost", f"shape {cost.shape}", "one number")
        named = [(f"constraint {c.label}", c) for c in self.constraints]
        rows = [jnp.asarray(_traceable(name, c.values, run)) / c.scale for name, c in named]
        rows = jnp.concatenate(rows) if rows else jnp.zeros(0, cost.dtype)
        return {"cost": cost, "rows": rows, "gaps": jnp.zeros((0,), cost.dtype)}

    def over_scenarios(self, one: Callable, *more) -> Any:
        """`one(number, scenario, *more)` for all of them, `more` with their axis."""
        if self.scenarios:
            return jax.vmap(one)(jnp.arange(self.n_scenarios), self.scenarios, *more)
        first = jax.tree.map(lambda x: x[0], more)
        return jax.tree.map(lambda x: jnp.asarray(x)[None], one(0, {}, *first))

    def combined(self, found: dict[str, Any]) -> dict[str, Any]:
        total = jnp.mean(found["cost"]) if self.combine == "mean" else jnp.max(found["cost"])
        return found | {"costs": found["cost"], "cost": total, "gaps": jnp.ravel(found["gaps"])}

    def evaluate(self, y) -> dict[str, Any]:
        """`cost`, `costs` of the scenarios, constraints `rows` (n_scenarios, m), `gaps` between
        segments, and which scenarios are `good`."""
        if self.segments is not None:
            runs, good = self.pieces(y, self.nodes(y))
            return self.assembled(y, self.nodes(y), runs) | {"good": good}

        def one(_, scenario):
            run = self.run(y, scenario)
            good = jnp.asarray(True) if self.still else run.result == Result.SUCCESSFUL
            return self.measured(run) | {"good": good}

        return self.combined(self.over_scenarios(one))

    def sizes(self) -> list[int]:
        """How many numbers each constraint has."""
        first = {name: x[0] for name, x in self.scenarios.items()}
        rows = lambda: [c.values(self.run(self.parameters.origin, first)) for c in self.constraints]
        return [x.size for x in eqx.filter_eval_shape(rows)]

    def linear(self, y) -> tuple[dict[str, Any], dict[str, Any]]:
        """`evaluate`, and the derivatives of cost, rows and gaps by `y`, in forward mode: the
        unknowns are few beside the rows. One simulation carries all directions along."""
        if self.segments is not None:
            return self.linear_pieces(y)

        def smooth(y):
            found = self.evaluate(y)
            return {name: found.pop(name) for name in _SMOOTH}, found

        found, slopes, more = pushed(smooth, y)
        return found | more, slopes

    # --- in segments
    def nodes(self, y):
        assert self.segments is not None
        return y[self.parameters.size :].reshape(self.segments.shape)

    def pieces(self, y, nodes):
        """All segments, (n_scenarios, count, ...) each, and which scenarios succeeded."""

        def one(i, scenario, nodes):
            zs = jnp.concatenate([jnp.zeros_like(nodes[:1]), nodes])
            piece = lambda k, z: self.piece(y, i, scenario, k, z)
            return jax.vmap(piece)(jnp.arange(len(zs)), zs)

        runs = self.over_scenarios(one, nodes)
        return runs, jnp.all(runs.result == Result.SUCCESSFUL, axis=1)

    def piece(self, y, i, scenario, k, z) -> Trajectory:
        assert self.segments is not None
        return self.segments.run(self.variant(y, scenario), i, k, z, self.step(y))

    def assembled(self, y, nodes, runs: Trajectory) -> dict[str, Any]:
        segments = self.segments
        assert segments is not None

        def one(i, scenario, nodes, runs):
            system = self.variant(y, scenario).system
            gaps = segments.gaps(system, i, runs, nodes)
            return self.measured(together(runs, system)) | {"gaps": gaps}

        return self.combined(self.over_scenarios(one, nodes, runs))

    def whole(self, y, scenario: int = 0) -> Trajectory:
        """The motion of a scenario, its segments end to end."""
        runs = jax.tree.map(lambda a: a[scenario], self.pieces(y, self.nodes(y))[0])
        case = {name: a[scenario] for name, a in self.scenarios.items()}
        return together(runs, self.variant(y, case).system)

    def linear_pieces(self, y):
        """A segment depends on the unknowns and its own node alone: it carries so many directions,
        not those of all nodes. Costs and constraints are functions of the segments."""
        nodes, p = self.nodes(y), self.parameters.size
        segments = self.segments
        assert segments is not None
        size = segments.node_size

        def one(i, scenario, nodes):
            zs = jnp.concatenate([jnp.zeros_like(nodes[:1]), nodes])

            def piece(k, z):
                def moved(d):
                    run = self.piece(y[:p] + d[:p], i, scenario, k, z + d[p:])
                    return eqx.partition(run, eqx.is_inexact_array)

                run, slopes, rest = pushed(moved, jnp.zeros(p + size, y.dtype))
                return eqx.combine(run, rest), slopes

            return jax.vmap(piece)(jnp.arange(len(zs)), zs)

        runs, slopes = self.over_scenarios(one, nodes)  # slopes: the direction is the last axis
        good = jnp.all(runs.result == Result.SUCCESSFUL, axis=1)
        smooth, rest = eqx.partition(runs, eqx.is_inexact_array)

        def measured(y, smooth):
            runs = eqx.combine(smooth, rest)
            found = self.assembled(y, self.nodes(y), runs)
            return {name: found.pop(name) for name in _SMOOTH}, found

        def push(direction):
            by_node = direction[p:].reshape(segments.shape)
            by_node = jnp.concatenate([jnp.zeros_like(by_node[:, :1]), by_node], axis=1)
            by_all = jnp.broadcast_to(direction[:p], (*by_node.shape[:2], p))
            weight = jnp.concatenate([by_all, by_node], axis=2)  # (scenario, segment, direction)
            along = lambda a: jnp.einsum("sk...d,skd->sk...", a, weight)
            tangents = direction, jax.tree.map(along, slopes)
            return jax.jvp(measured, (y, smooth), tangents, has_aux=True)

        axes = (None, -1, None)
        found, slopes, more = jax.vmap(push, out_axes=axes)(jnp.eye(y.shape[0], dtype=y.dtype))
        return found | more | {"good": good}, slopes

    def solution(self, y) -> Experiment:
        """The experiment with the parameters at `y`."""
        y = jnp.asarray(y)
        experiment, duration = self.variant(y, {}), self.parameters.duration(y)
        if duration is None:
            return experiment
        duration = float(duration)
        return experiment.replace(duration=duration, dt=duration / self.experiment.steps)

    def cut(self, segments: Segments) -> "Problem":
        return dataclasses.replace(self, segments=segments)


_SMOOTH = ("cost", "rows", "gaps")


def pushed(function: Callable, y):
    """`function(y)` -> (smooth, more), its derivatives by `y` along a last axis, and `more`."""
    push = lambda direction: jax.jvp(function, (y,), (direction,), has_aux=True)
    return jax.vmap(push, out_axes=(None, -1, None))(jnp.eye(y.shape[0], dtype=y.dtype))


def _traceable(what: str, function: Callable, run):
    """What a function of the user's finds, which must be one that JAX can look through."""
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
    """Of many starts, shape (k, p), some of them at once."""
    k, p = ys.shape
    groups = -(-k // _TOGETHER)
    some = jnp.resize(ys, (groups, min(k, _TOGETHER), p))  # repeated where they run out
    found = jax.lax.map(jax.vmap(problem.evaluate), some)
    return jax.tree.map(lambda x: x.reshape(some.shape[0] * some.shape[1], *x.shape[2:])[:k], found)


@filter_jit
def motion(problem: Problem, y) -> Trajectory:
    """The motion of the first scenario, cut into segments, without its machine."""
    return dataclasses.replace(problem.whole(y), system=None)
