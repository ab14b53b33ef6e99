"""From a cost to the numbers that make it small."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._checks import require, require_instance, require_known, require_number, require_whole
from ..experiment import Experiment
from ..parameters import Parameter, collect, varied
from ..simulate import simulate
from ..trajectory import Trajectory
from .constraint import Constraint
from .problem import Problem, linearised, tried
from .result import Optimum, by_name

#: share of a constraint's scale up to which it counts as kept
FEASIBLE = 1e-6


def optimise(
    experiment: Experiment,
    parameters: Sequence[str | Parameter],
    cost: Callable[[Trajectory], Any],
    constraints: Sequence[Constraint] = (),
    *,
    scenarios: Mapping[str, Sequence[float]] | None = None,
    combine: str = "mean",
    starts: int = 1,
    seed: int = 0,
    max_steps: int = 100,
    tolerance: float = 1e-6,
    progress: bool = False,
) -> Optimum:
    """Find numbers of an experiment that make a cost of its trajectory small.

    **Arguments:**

    - `experiment`: what is simulated; its numbers are the start of the search.
    - `parameters`: what to change, names such as "drives.lengths.values[2]" or `Parameter`s:
      numbers of the machine (a design), of its controller or path (a motion), of the start.
      `bounds` of a `Parameter` are kept at every step.
    - `cost`: from a `Trajectory` to one number, by functions of `jax.numpy`: end state, effort,
      what is left of a vibration.
    - `constraints`: what the motion must keep, `Constraint("tension", low=5.0)`.
    - `scenarios`: columns of other numbers by name, one row for each case that the result must
      serve (payloads, say): simulated in one batch; constraints hold in all, and costs are
      combined: `combine` is "mean" or "worst".
    - `starts`: so many starts spread evenly within the bounds of the parameters, all of which need
      some, are tried, and the best is taken.
    - `max_steps`, `tolerance`: at most so many iterations; stop when the cost changes by less,
      relative to what it is at the start and how it changes there.
    - `progress`: print a line for each iteration.

    Sequential quadratic programming (SciPy's SLSQP) with derivatives through the simulation. A
    simulation that fails on the way counts as very expensive, and is stepped back from. Local: from
    another start it may find another optimum."""
    from scipy.optimize import minimize

    require_instance("experiment", experiment, Experiment)
    require(experiment.duration is not None, "duration", None, "an experiment with a duration [s]")
    require(callable(cost), "cost", cost, "a function from a Trajectory to a number")
    for c in constraints:
        require_instance("constraints", c, Constraint)
    labels = [c.label for c in constraints]
    require(len(set(labels)) == len(labels), "constraints", labels, "different names")
    require_known("combine", combine, ("mean", "worst"))
    require_whole("starts", starts, 1)
    require_whole("max_steps", max_steps, 1)
    require_number("tolerance", tolerance)
    rows = {name: jnp.asarray(x, float) for name, x in (scenarios or {}).items()}
    if rows:
        lengths = {name: x.shape[:1] for name, x in rows.items()}
        equal = len(set(lengths.values())) == 1 and min(lengths.values()) > (0,)
        require(equal, "scenarios", lengths, "columns of one length, at least one row")
        varied(experiment, {name: x[0] for name, x in rows.items()})  # names and shapes
    found = collect(parameters, experiment)
    problem = Problem.of(experiment, found, cost, tuple(constraints), rows, combine)
    box = _box(problem, found)
    search = _Search(problem, progress)
    y0 = search.first(box, starts, seed)
    solution = minimize(
        lambda y: search.cost(y) / search.scale,
        y0,
        jac=lambda y: search.cost_slope(y) / search.scale,
        bounds=box,
        constraints=search.rows(),
        method="SLSQP",
        callback=search.note,
        options={"maxiter": max_steps, "ftol": tolerance},
    )
    return _report(search, found, solution, y0)


def _box(problem: Problem, found) -> list[tuple[float, float]]:
    """Bounds of the unknowns."""
    start, units = np.asarray(problem.start), np.asarray(problem.units)
    limits = [b or (-math.inf, math.inf) for b in found.number_bounds]
    return [
        ((low - x) / u, (high - x) / u)
        for (low, high), x, u in zip(limits, start, units, strict=True)
    ]


class _Search:
    """Evaluations shared by SciPy's several functions, and the way so far."""

    def __init__(self, problem: Problem, progress: bool):
        self.problem, self.progress = problem, progress
        self.at: np.ndarray | None = None
        self.found: Any = None
        self.evaluations = self.failed = 0
        self.history: list[tuple[float, float]] = []
        self.scale = self.start_cost = 1.0
        self.sizes = problem.sizes()
        pairs = list(zip(problem.constraints, self.sizes, strict=True))
        self.low = np.concatenate([np.zeros(0), *(np.full(n, c.low / c.scale) for c, n in pairs)])
        self.high = np.concatenate([np.zeros(0), *(np.full(n, c.high / c.scale) for c, n in pairs)])

    def first(self, box, starts: int, seed: int) -> np.ndarray:
        """Where to begin."""
        y0 = np.zeros(len(box))
        if starts > 1:
            bounded = all(np.isfinite(b).all() for b in box)
            require(bounded, "starts", starts, "1, or Parameters with bounds")
            y0 = self._best_start(np.array(box), starts, seed)
        self._take(y0)
        good = bool(np.all(self.found[0]["good"]))
        require(good, "experiment", "a simulation that fails", "a start from which it succeeds")
        self.start_cost = float(self.found[0]["cost"])
        # what the cost may change by, whatever its unit: SLSQP stops by the same number at costs
        # that stand still and at constraints that are kept
        self.scale = abs(self.start_cost) + float(np.max(np.abs(self.cost_slope(y0)), initial=0.0))
        self.scale = self.scale if self.scale > 0 else 1.0
        return y0

    def _best_start(self, box: np.ndarray, starts: int, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        parts = np.stack([random.permutation(starts) for _ in box], axis=1)
        share = (parts + random.random(parts.shape)) / starts
        ys = np.vstack([np.zeros(len(box)), box[:, 0] + share * (box[:, 1] - box[:, 0])])
        all_found = tried(self.problem, jnp.asarray(ys))
        rows = np.asarray(all_found["rows"])
        beyond = np.maximum(np.maximum(self.low - rows, rows - self.high), 0.0)
        beyond = beyond.reshape(len(ys), -1).sum(axis=1)
        cost = np.asarray(all_found["cost"])
        usual = np.median(np.abs(cost[np.isfinite(cost)]))
        merit = cost + 10.0 * usual * beyond
        merit[~np.all(np.asarray(all_found["good"]), axis=1)] = np.inf
        return ys[int(np.nanargmin(np.where(np.isfinite(merit), merit, np.inf)))]

    def _take(self, y: np.ndarray) -> None:
        if self.at is not None and np.array_equal(y, self.at):
            return
        self.found = linearised(self.problem, jnp.asarray(y))
        self.at = np.array(y)
        self.evaluations += 1
        self.failed += not bool(np.all(self.found[0]["good"]))

    @property
    def _good(self) -> bool:
        return bool(np.all(self.found[0]["good"]))

    def cost(self, y) -> float:
        self._take(y)
        value = float(self.found[0]["cost"])
        return value if self._good and math.isfinite(value) else 1e6 * self.scale

    def cost_slope(self, y) -> np.ndarray:
        self._take(y)
        return np.nan_to_num(np.asarray(self.found[1]["cost"], dtype=float)) * self._good

    def _rows(self, y) -> tuple[np.ndarray, np.ndarray]:
        self._take(y)
        rows, slopes = np.asarray(self.found[0]["rows"]), np.asarray(self.found[1]["rows"])
        return np.nan_to_num(rows), np.nan_to_num(slopes)

    def rows(self) -> list[dict]:
        """For SciPy: equalities, and inequalities as numbers that must not be negative."""
        equal = self.low == self.high
        lower, upper = np.isfinite(self.low) & ~equal, np.isfinite(self.high) & ~equal
        found = []
        if equal.any():
            value = lambda y: (self._rows(y)[0] - self.low)[:, equal].ravel()
            slope = lambda y: self._rows(y)[1][:, equal].reshape(-1, len(y))
            found.append({"type": "eq", "fun": value, "jac": slope})
        if (lower | upper).any():

            def value_of(y):
                rows = self._rows(y)[0]
                parts = (rows - self.low)[:, lower], (self.high - rows)[:, upper]
                return np.concatenate([x.ravel() for x in parts])

            def slope_of(y):
                slopes = self._rows(y)[1]
                parts = slopes[:, lower], -slopes[:, upper]
                return np.concatenate([x.reshape(-1, len(y)) for x in parts])

            found.append({"type": "ineq", "fun": value_of, "jac": slope_of})
        return found

    def multipliers(self, given: np.ndarray) -> list[np.ndarray]:
        """SciPy's, equalities first, as one array (n_scenarios, size) for each constraint."""
        n, equal = self.problem.n_scenarios, self.low == self.high
        lower, upper = np.isfinite(self.low) & ~equal, np.isfinite(self.high) & ~equal
        whole, used = np.zeros((n, len(self.low))), 0
        for chosen in (equal, lower, upper):
            size = n * int(chosen.sum())
            whole[:, chosen] += given[used : used + size].reshape(n, -1)
            used += size
        return np.split(whole, np.cumsum(self.sizes)[:-1], axis=1) if self.sizes else []

    def beyond(self) -> np.ndarray:
        """How far rows are out of their bounds, in scales, (n_scenarios, m)."""
        rows = np.asarray(self.found[0]["rows"])
        return np.maximum(np.maximum(self.low - rows, rows - self.high), 0.0)

    def note(self, y) -> None:
        self._take(np.asarray(y))
        out = float(np.max(self.beyond(), initial=0.0))
        self.history.append((self.cost(y), out))
        if self.progress:
            cost = self.history[-1][0]
            print(f"{len(self.history):4d}  cost {cost:.6g}, out of bounds by {out:.2g}")


def _report(search: _Search, found, solution, y0) -> Optimum:
    problem, y = search.problem, np.asarray(solution.x)
    search._take(y)
    out = search.beyond()
    kept = float(np.max(out, initial=0.0)) <= FEASIBLE
    good = search._good
    reason = _reason(solution, kept, good)
    if not (solution.success and kept and good):
        warnings.warn(f"optimise: {reason}", stacklevel=3)
    parts = np.split(out, np.cumsum(search.sizes)[:-1], axis=1) if search.sizes else []
    largest = lambda c, x: float(np.max(x, initial=0.0)) * c.scale
    violations = {
        c.label: 0.0 if np.max(x, initial=0.0) <= FEASIBLE else largest(c, x)
        for c, x in zip(problem.constraints, parts, strict=True)
    }
    pushes = search.multipliers(search.scale * np.asarray(solution.multipliers))
    multipliers = {c.label: x / c.scale for c, x in zip(problem.constraints, pushes, strict=True)}
    best = problem.apply(jnp.asarray(y))
    history = np.array(search.history).reshape(-1, 2)
    return Optimum(
        by_name(found.names, problem.values(y)),
        by_name(found.names, problem.values(y0)),
        best,
        simulate(best, throw=False),
        float(search.found[0]["cost"]),
        search.start_cost,
        np.asarray(search.found[0]["costs"]),
        violations,
        multipliers,
        {"cost": history[:, 0], "violation": history[:, 1]},
        bool(solution.success and kept and good),
        reason,
        search.evaluations,
        search.failed,
    )


def _reason(solution, kept: bool, good: bool) -> str:
    if not good:
        return "the simulation of the last point failed; take smaller bounds, or a smaller dt"
    if not kept:
        return (
            "no point that keeps all constraints was found: they may contradict each other; try "
            f"another start, or more steps ({solution.message})"
        )
    if not solution.success:
        return f"stopped before it converged ({solution.message}); try more steps or another start"
    return "converged"
