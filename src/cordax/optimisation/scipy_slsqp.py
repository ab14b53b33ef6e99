"""Search with SciPy's SLSQP: the functions that it calls share one evaluation of the problem."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._base.checks import require
from ..math.sampling import latin_hypercube
from .problem import Problem, linearised, tried

#: distance to a bound, in scales of the constraint or units of the parameter, at which it is active
ACTIVE = 1e-5

#: gradient of the Lagrangian, relative to the gradient and 1 % of the cost, that counts as zero
STATIONARY = 1e-3

Box = list[tuple[float, float]]


class Search:
    """Search for the optimum of one problem, from any initial point.

    Its constraint rows are the values of the constraints, divided by their scales, and the gaps
    between segments, which must be zero. `label`: text at the beginning of progress lines."""

    def __init__(self, problem: Problem, progress: bool, label: str = ""):
        self.problem, self.progress, self.label = problem, progress, label
        self.at: np.ndarray | None = None
        self.found: Any = None
        self.evaluations = self.failed = 0
        self.history: list[tuple[float, float]] = []
        self.way: list[np.ndarray] = []
        self.scale = self.start_cost = 1.0
        self.resolution, self.residual = 0.0, np.zeros(problem.size)
        self.flat = False
        self.sizes = problem.sizes()
        pairs = list(zip(problem.constraints, self.sizes, strict=True))
        self.low = np.concatenate([np.zeros(0), *(np.full(n, c.low / c.scale) for c, n in pairs)])
        self.high = np.concatenate([np.zeros(0), *(np.full(n, c.high / c.scale) for c, n in pairs)])

    def box(self) -> Box:
        """Bounds (low, high) of each search coordinate."""
        parameters = self.problem.parameters
        free = (-math.inf, math.inf)
        low, high = zip(*(b or free for b in parameters.number_bounds), strict=True)
        box = zip(*map(parameters.coordinates, (low, high)), strict=True)
        return [*box, *[free] * (self.problem.size - parameters.size)]

    def usable(self, y0: np.ndarray) -> bool:
        """Whether the simulation succeeds at `y0`, with finite values and derivatives."""
        self._take(y0)
        return self.good

    def begin(self, y0: np.ndarray, tolerance: float) -> None:
        """Begin a search at `y0`, where the simulation must succeed with finite derivatives."""
        self._take(y0)
        require(self.ran, "experiment", "a simulation that fails", "a start from which it succeeds")
        for what, name in (("cost", "cost"), ("constraints", "rows")):
            for kind, found in zip(("values", "derivatives"), self.found, strict=True):
                require(
                    _finite(found[name]),
                    what,
                    f"{kind} at the start that are infinite or NaN",
                    "finite ones (square roots and norms have no derivative at 0)",
                )
        self.start_cost = float(self.found[0]["cost"])
        self.history, self.way = [], []
        self.rescale(y0, tolerance)
        self.flat = not np.any(np.asarray(self.found[1]["cost"]))

    def rescale(self, y: np.ndarray, tolerance: float) -> None:
        """Scale the cost by its slope at `y` over one unit of a parameter.

        SLSQP applies the same `tolerance` to changes of the scaled cost and to the constraints.
        `resolution` is this tolerance in the unit of the cost; it exceeds rounding errors of the
        cost."""
        self._take(y)
        cost, slope = (np.nan_to_num(np.asarray(x["cost"], float)) for x in self.found)
        rounding = 10.0 * float(np.finfo(np.asarray(self.found[0]["cost"]).dtype).eps)
        size = float(np.max(np.abs(slope), initial=0.0))
        self.scale = max(size, abs(float(cost)) * rounding / max(tolerance, rounding)) or 1.0
        self.resolution = tolerance * self.scale
        self.residual = self._projected_gradient()

    def spread(self, starts: int, seed: int, first: np.ndarray) -> list[np.ndarray]:
        """Initial points: `first` and `starts` more within the bounds, sorted from the best to the
        worst. Points at which the simulation fails are left out."""
        box = np.array(self.box()[: self.problem.parameters.size])
        require(bool(np.isfinite(box).all()), "starts", starts, "1, or Parameters with bounds")
        share = latin_hypercube(starts, len(box), seed)
        ys = np.tile(first, (starts + 1, 1))
        ys[1:, : len(box)] = box[:, 0] + share * (box[:, 1] - box[:, 0])
        found = tried(self.problem, jnp.asarray(ys))
        rows, gaps = np.asarray(found["rows"]), np.asarray(found["gaps"])
        beyond = np.maximum(np.maximum(self.low - rows, rows - self.high), 0.0)
        beyond = beyond.reshape(len(ys), -1).sum(axis=1) + np.abs(gaps).sum(axis=1)
        cost = np.asarray(found["cost"])
        usual = np.median(np.abs(cost[np.isfinite(cost)]))
        merit = cost + 10.0 * usual * beyond
        merit[~np.all(np.asarray(found["good"]), axis=1)] = np.inf
        order = [i for i in np.argsort(merit, kind="stable") if np.isfinite(merit[i])]
        return [ys[i] for i in order] or [first]

    def _take(self, y: np.ndarray) -> None:
        if self.at is not None and np.array_equal(y, self.at):
            return
        self.found = linearised(self.problem, jnp.asarray(y))
        self.at = np.array(y)
        self.evaluations += 1
        self.failed += not self.good

    @property
    def ran(self) -> bool:
        """Whether all simulations at the last point succeeded."""
        return bool(np.all(self.found[0]["good"]))

    @property
    def good(self) -> bool:
        """Whether, in addition, cost, constraints and their derivatives are finite."""
        values, slopes = self.found
        known = (values["cost"], values["rows"], slopes["cost"], slopes["rows"])
        return self.ran and all(map(_finite, known))

    def cost(self, y) -> float:
        self._take(y)
        value = float(self.found[0]["cost"])
        return (
            value
            if self.good and math.isfinite(value)
            else 1e6 * (self.scale + abs(self.start_cost))
        )

    def cost_slope(self, y) -> np.ndarray:
        self._take(y)
        return np.nan_to_num(np.asarray(self.found[1]["cost"], dtype=float)) * self.good

    def _rows(self, y, name: str = "rows") -> tuple[np.ndarray, np.ndarray]:
        self._take(y)
        rows, slopes = (np.asarray(x[name]) for x in self.found)
        return np.nan_to_num(rows), np.nan_to_num(slopes)

    def rows(self) -> list[dict]:
        """Constraints in SciPy's form: equalities, gaps, and inequalities as values that must not
        be negative."""
        equal = self.low == self.high
        lower, upper = np.isfinite(self.low) & ~equal, np.isfinite(self.high) & ~equal
        found = []
        if equal.any():
            value = lambda y: (self._rows(y)[0] - self.low)[:, equal].ravel()
            slope = lambda y: self._rows(y)[1][:, equal].reshape(-1, len(y))
            found.append({"type": "eq", "fun": value, "jac": slope})
        if self.problem.segments is not None:
            gap, gap_slope = (lambda y, i=i: self._rows(y, "gaps")[i] for i in (0, 1))
            found.append({"type": "eq", "fun": gap, "jac": gap_slope})
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
        """Split SciPy's multipliers, equalities first, into one array (n_scenarios, size) for each
        constraint."""
        n, equal = self.problem.n_scenarios, self.low == self.high
        lower, upper = np.isfinite(self.low) & ~equal, np.isfinite(self.high) & ~equal
        whole, used = np.zeros((n, len(self.low))), 0
        for chosen in (equal, lower, upper):
            size = n * int(chosen.sum())
            whole[:, chosen] += given[used : used + size].reshape(n, -1)
            used += size
            if chosen is equal and self.problem.segments is not None:
                used += self.problem.size - self.problem.parameters.size
        return np.split(whole, np.cumsum(self.sizes)[:-1], axis=1) if self.sizes else []

    def beyond(self) -> np.ndarray:
        """Violation of each constraint row, in scales, (n_scenarios, m)."""
        rows = np.asarray(self.found[0]["rows"])
        return np.maximum(np.maximum(self.low - rows, rows - self.high), 0.0)

    def gap(self) -> float:
        """Largest gap between segments, relative to the extent of the motion."""
        return float(np.max(np.abs(np.asarray(self.found[0]["gaps"])), initial=0.0))

    def violation(self) -> float:
        """Largest violation of a constraint, in scales, or gap between segments."""
        return max(float(np.max(self.beyond(), initial=0.0)), self.gap())

    def merit(self, y) -> float:
        """Cost plus a penalty for violations above SLSQP's accuracy, to compare end points."""
        cost = self.cost(y)
        out = self.violation()
        return cost + (1e6 * self.scale * out if out > ACTIVE else 0.0)

    def _projected_gradient(self) -> np.ndarray:
        """Gradient of the Lagrangian at the last point, (size,), zero at a first-order optimum.

        It is the gradient of the cost less its best approximation by gradients of active
        constraints and bounds, with multipliers of the right sign."""
        from scipy.optimize import lsq_linear

        y = self.at
        assert y is not None
        gradient = self.cost_slope(y)
        columns = [(np.zeros((0, len(y))), True)]
        for row in self.rows():
            slopes, equal = row["jac"](y), row["type"] == "eq"
            columns.append((slopes if equal else slopes[row["fun"](y) <= ACTIVE], equal))
        low, high = np.array(self.box()).T
        eye = np.eye(len(y))
        columns += [(eye[y - low <= ACTIVE], False), (-eye[high - y <= ACTIVE], False)]
        normals = np.concatenate([slopes for slopes, _ in columns])
        least = np.concatenate([np.full(len(x), -np.inf if eq else 0.0) for x, eq in columns])
        size = float(np.max(np.abs(gradient), initial=0.0))
        if not (len(normals) and size and self.good):
            return gradient
        fit = lsq_linear(normals.T, gradient / size, (least, np.inf))
        return gradient - size * (normals.T @ fit.x)

    def stationary(self) -> bool:
        """Whether the first-order optimality conditions hold relative to cost and gradient."""
        gradient, cost = np.abs(self.cost_slope(self.at)), abs(self.cost(self.at))
        size = float(np.max(gradient, initial=0.0)) + 1e-2 * cost
        return float(np.max(np.abs(self.residual), initial=0.0)) <= STATIONARY * size

    def descent(self) -> float:
        """Longest step, in units of the parameters, along the negative projected gradient that
        lowers the cost by a tenth of the linear prediction; 0 at a stationary point."""
        if self.stationary():
            return 0.0
        assert self.at is not None
        y, cost, low_high = self.at, self.cost(self.at), np.array(self.box()).T
        size = float(np.max(np.abs(self.residual)))
        slope = float(self.residual @ self.cost_slope(y)) / size
        for step in 10.0 ** np.arange(0, -5, -1):
            moved = np.clip(y - step * self.residual / size, *low_high)
            lower = cost - self.cost(moved) > 0.1 * step * slope
            if lower and self.violation() <= ACTIVE + step**2:
                break
        else:
            step = 0.0
        self._take(y)
        return float(step)

    def note(self, y) -> None:
        self._take(np.asarray(y))
        out = self.violation()
        self.history.append((self.cost(y), out))
        self.way.append(np.asarray(self.problem.values(jnp.asarray(y))))
        if self.progress:
            cost = self.history[-1][0]
            print(
                f"{self.label}{len(self.history):4d}  cost {cost:.6g}, out of bounds by {out:.2g}"
            )


def _finite(x) -> bool:
    return bool(np.all(np.isfinite(np.asarray(x))))
