"""Minimisation of a cost over named parameters of an experiment or a machine."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_instance, require_known, require_number, require_whole
from ..mechanics import State, System
from ..parameters.parameter import Parameter, ParameterSet, collect_box, varied
from ..parameters.tree_path import DURATION
from ..shooting import Segments, require_restartable
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from .constraint import Constraint
from .optimum import Optimum, by_name
from .problem import Problem, motion
from .scipy_slsqp import Search

FLAT = "converged where it began: the cost does not change with any of the numbers there"

#: largest violation, relative to a constraint's scale, at which it counts as satisfied
FEASIBLE = 1e-6

#: an optimum is reached where only steps shorter than this share of a parameter's unit (width of
#: its bounds, or its initial value) along the projected negative gradient lower the cost
NEAR = 1e-2


def optimise(
    experiment: Experiment | System,
    parameters: Sequence[str | Parameter],
    cost: Callable[[Any], Any],
    constraints: Sequence[Constraint] = (),
    *,
    scenarios: Mapping[str, Sequence[float]] | None = None,
    combine: str = "mean",
    segments: int = 1,
    start: "Optimum | Mapping[str, float] | None" = None,
    starts: int = 1,
    searches: int = 1,
    seed: int = 0,
    max_steps: int = 100,
    tolerance: float = 1e-6,
    progress: bool = False,
) -> Optimum:
    """Find parameters of an experiment that minimise a cost of its trajectory.

    **Arguments:**

    - `experiment`: the experiment to simulate; the search starts at its parameter values. Or a
      machine alone: `cost` and `constraints` are then functions of the machine, and nothing is
      simulated.
    - `parameters`: the parameters to optimise, names such as "drives.lengths.values[2]" or
      `Parameter`s. They may belong to the machine (a design), to its controller or path (a motion)
      or to the initial state. "duration" is the simulated time: the number of steps is constant,
      and the time step changes. `bounds` of a `Parameter` hold at every iteration.
    - `cost`: function from a `Trajectory` to one number, written with `jax.numpy`: for example of
      the end state, the effort or the residual vibration.
    - `constraints`: bounds on quantities of the motion, such as `Constraint("tension", low=5.0)`.
    - `scenarios`: columns of values of other parameters by name, with one row for each case that
      the result must serve (different payloads, for example). All cases are simulated in one batch.
      Constraints must hold in all of them, and their costs are combined: `combine` is "mean" or
      "worst".
    - `segments`: number of equal segments into which the motion is split (multiple shooting). Their
      initial states are further unknowns, and the segments join at the solution. This helps with
      long and unstable motions.
    - `start`: initial values by name that replace those of the experiment, or another `Optimum`.
    - `starts`: number of initial points that are spread evenly within the bounds of the parameters
      and evaluated in batches; all parameters then need bounds. `searches`: number of the best
      initial points from which a search is run, one after the other; the best result is returned.
    - `max_steps`, `tolerance`: largest number of iterations; stop when the cost changes by less
      than `tolerance`, relative to its slope over one unit of a parameter. The search restarts from
      its end point with the slope there until the first-order optimality conditions hold.
    - `progress`: print a line for each iteration.

    The method is sequential quadratic programming (SciPy's SLSQP) with derivatives through the
    simulation. A simulation that fails during the search is given a very large cost, so that the
    search steps back from it. The optimum is local: another initial point may lead to another one.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    swing = cordax.Experiment(Pendulum(), duration=1.0, dt=0.01)
    length = cordax.Parameter("length", bounds=(0.5, 5.0))
    best = cordax.optimise(swing, [length], lambda run: run["angle"][-1] ** 2)
    print(best.summary())  # length at which it hangs straight down after 1 s
    ```
    """
    require_instance("experiment", experiment, Experiment, System)
    still = isinstance(experiment, System)
    base: Experiment = Experiment(experiment) if isinstance(experiment, System) else experiment
    timed = still or base.duration is not None
    require(timed, "duration", None, "an experiment with a duration [s]")
    of = "machine" if still else "Trajectory"
    require(callable(cost), "cost", cost, f"a function from a {of} to a number")
    for c in constraints:
        require_instance("constraints", c, Constraint)
        own = not (still and isinstance(c.quantity, str))
        require(own, f"constraint {c.label}", c.quantity, "a function of the machine")
    labels = [c.label for c in constraints]
    require(len(set(labels)) == len(labels), "constraints", labels, "different names")
    require_known("combine", combine, ("mean", "worst"))
    for name, number in {"starts": starts, "searches": searches, "max_steps": max_steps}.items():
        require_whole(name, number, 1)
    require_number("tolerance", tolerance)
    rows = {name: jnp.asarray(x, float) for name, x in (scenarios or {}).items()}
    if rows:
        lengths = {name: x.shape[:1] for name, x in rows.items()}
        equal = len(set(lengths.values())) == 1 and min(lengths.values()) > (0,)
        require(equal, "scenarios", lengths, "columns of one length, at least one row")
        varied(base, {name: x[0] for name, x in rows.items()})  # check names and shapes
    vector = collect_box(parameters, base)
    _check_clock(base, DURATION in vector.names, segments, still)
    problem = Problem(base, vector, cost, tuple(constraints), rows, combine, still)
    y0 = np.zeros(vector.size)
    if start is not None:
        values = start.values if isinstance(start, Optimum) else start
        y0 = vector.coordinates(_start_values(vector, values))
    if segments > 1:
        problem = problem.cut(_segments(problem, y0, segments, start))
        y0 = np.concatenate([y0, np.zeros(problem.size - vector.size)])
    begin = [y0]
    if starts > 1:
        look = Search(problem, progress)
        spread = look.spread(starts, seed, y0)
        usable = (y for y in spread if look.usable(y))
        begin = list(itertools.islice(usable, searches)) or spread[:1]
    label = lambda i: f"search {i + 1} " if len(begin) > 1 else ""
    several = [Search(problem, progress, label(i)) for i in range(len(begin))]
    ends = [_solve(*one, max_steps, tolerance) for one in zip(several, begin, strict=True)]
    best = min(ends, key=lambda end: (not end.kept, end.out if not end.kept else end.found.cost))
    if not best.found.succeeded or best.found.reason == FLAT:
        warnings.warn(f"optimise: {best.found.reason}", stacklevel=2)
    total = lambda name: sum(getattr(end.found, name) for end in ends)
    return best.found._replace(**{name: total(name) for name in ("evaluations", "failed_runs")})


def _start_values(parameters: ParameterSet, values: Mapping[str, float]) -> np.ndarray:
    """Initial parameter values (p,); `values` replace the default values by name."""
    x = np.array(parameters.values(parameters.origin))
    for name, value in values.items():
        require_known("start", name, parameters.names)
        x[parameters.names.index(name)] = value
    for name, value, bounds in zip(parameters.names, x, parameters.number_bounds, strict=True):
        low, high = bounds or (-math.inf, math.inf)
        require(low <= value <= high, f"start {name}", value, f"{low:g} to {high:g}")
    return x


def _check_clock(experiment: Experiment, timed: bool, segments: int, still: bool) -> None:
    """Check that the experiment supports a free duration (`timed`) and these `segments`."""
    require_whole("segments", segments, 1)
    if not timed and segments == 1:
        return
    what = "segments" if segments > 1 else "duration"
    require(not still, what, "a machine alone", "an Experiment")
    require_restartable(experiment, what, memory=segments > 1)
    stored = experiment.steps // experiment.save_every
    expected = f"a divisor of the {stored} stored instants"
    require(stored % segments == 0, "segments", segments, expected)


def _segments(problem: Problem, y0, count: int, start) -> Segments:
    """Segments with nodes on the motion at `y0`, or on the trajectory of a given `Optimum`."""
    experiment = problem.experiment
    if isinstance(start, Optimum) and start.trajectory is not None and not problem.scenarios:
        runs = jax.tree.map(lambda a: jnp.asarray(a)[None], _arrays(start.trajectory))
        stored = experiment.steps // experiment.save_every + 1
        fits = runs.t.shape[1] == stored
        require(fits, "start", f"{runs.t.shape[1]} stored instants", f"{stored}, as before")
    else:
        run = lambda scenario: _arrays(problem.run(jnp.asarray(y0), scenario))
        runs = problem.over_scenarios(run)
    at = np.arange(1, count) * ((runs.t.shape[1] - 1) // count)
    states = State(*(jnp.asarray(x)[:, at] for x in (runs.q, runs.v)))
    moved = jax.vmap(jax.vmap(experiment.system.difference, (None, 0)))(runs.q[:, 0], runs.q)
    scale = np.concatenate([_widths(x) for x in (moved, runs.v)])
    scale = jnp.broadcast_to(jnp.asarray(scale), (len(runs.t), scale.size))
    return Segments(experiment.steps // count, states, scale)


def _widths(x) -> np.ndarray:
    """Largest absolute value of each component of `x` (n_scenarios, k, n); at least 1 % of the
    largest of all, one if all are zero."""
    size = np.max(np.abs(np.asarray(x)), axis=(0, 1))
    largest = np.max(size, initial=0.0)
    return np.maximum(size, 1e-2 * largest) if largest > 0 else np.ones_like(size)


def _arrays(run):
    return dataclasses.replace(run, system=None, phases=(), events=None, statistics={})


class _End(NamedTuple):
    """Result of one search: the optimum that it `found`, its largest violation `out`, and whether
    constraints are satisfied and all values finite (`kept`)."""

    found: Optimum
    out: float
    kept: bool


class _Point(NamedTuple):
    """End of one run of SLSQP: coordinates, Lagrange multipliers in units of the cost, whether
    SLSQP reports success, and its message."""

    y: np.ndarray
    multipliers: np.ndarray
    success: bool
    message: str


def _solve(search: Search, y0: np.ndarray, max_steps: int, tolerance: float) -> _End:
    """Run SLSQP repeatedly until its end point is first-order optimal.

    SLSQP stops at a fixed change of the scaled cost. The scale at a steep initial point is far too
    large near the optimum. Each further run therefore starts at the last end point, with the scale
    of that point.
    """
    search.begin(y0, tolerance)
    end, converged = None, False
    while not converged:
        point, used = _run(search, y0 if end is None else end.y, max_steps, tolerance)
        max_steps -= used
        improved = end is None or search.merit(point.y) < search.merit(end.y) - search.resolution
        end = point if improved else end
        assert end is not None
        search.rescale(end.y, tolerance)
        usable = search.good and max_steps > 0
        converged = not (improved and usable) or (end.success and search.stationary())
    return _report(search, end, y0)


def _run(search: Search, y0: np.ndarray, max_steps: int, tolerance: float) -> tuple[_Point, int]:
    """Run SLSQP once with the present scale of the cost; return its end and its iterations."""
    from scipy.optimize import minimize

    scale = search.scale
    solution = minimize(
        lambda y: search.cost(y) / scale,
        y0,
        jac=lambda y: search.cost_slope(y) / scale,
        bounds=search.box(),
        constraints=search.rows(),
        method="SLSQP",
        callback=search.note,
        options={"maxiter": max_steps, "ftol": tolerance},
    )
    multipliers = scale * np.asarray(solution.multipliers)
    point = _Point(np.asarray(solution.x), multipliers, bool(solution.success), solution.message)
    return point, max(int(solution.nit), 1)


def _report(search: Search, end: _Point, y0) -> _End:
    problem, y = search.problem, end.y
    names = problem.parameters.names
    search.cost(y)
    evaluated = search.found[0]
    beyond, out = search.beyond(), search.violation()
    kept, good = out <= FEASIBLE, search.good
    descent = search.descent() if good else math.inf
    optimal = descent <= NEAR
    parts = np.split(beyond, np.cumsum(search.sizes)[:-1], axis=1) if search.sizes else []
    violations = {
        c.label: float(np.max(x, initial=0.0)) * c.scale
        for c, x in zip(problem.constraints, parts, strict=True)
    }
    pushes = search.multipliers(end.multipliers)
    multipliers = {c.label: x / c.scale for c, x in zip(problem.constraints, pushes, strict=True)}
    history = np.array(search.history).reshape(-1, 2)
    way = np.array(search.way).reshape(-1, len(names))
    best = problem.solution(y)
    numbers = by_name(names, problem.values(y)), by_name(names, problem.values(y0))
    found = Optimum(
        *numbers,
        best.system if problem.still else best,
        _motion(problem, best, y),
        float(evaluated["cost"]),
        search.start_cost,
        np.asarray(evaluated["costs"]),
        violations,
        multipliers,
        {"cost": history[:, 0], "violation": history[:, 1], "values": way},
        bool(end.success and kept and good and optimal),
        _reason(end, kept, descent, search),
        search.evaluations,
        search.failed,
        {name: x for name, x in zip(names, problem.parameters.units, strict=True) if x},
        {c.label: FEASIBLE * c.scale for c in problem.constraints},
        float(np.max(np.abs(search.residual), initial=0.0)),
    )
    return _End(found, out, kept and good)


def _motion(problem: Problem, best: Experiment, y):
    if problem.still:
        return None
    if problem.segments is None:
        return simulate(best, throw=False)
    return dataclasses.replace(motion(problem, jnp.asarray(y)), system=best.system)


def _reason(end: _Point, kept: bool, descent: float, search: Search) -> str:
    if not search.ran:
        return "the simulation of the last point failed; take smaller bounds, or a smaller dt"
    if not search.good:
        return "cost, constraints or their derivatives are infinite or NaN at the last point"
    if not kept:
        return (
            "no point that keeps all constraints was found: they may contradict each other; try "
            f"another start, or more steps ({end.message})"
        )
    if descent > NEAR:
        return (
            f"stopped before it converged: a step of {descent:.0e} units of the parameters along "
            f"the negative gradient still lowers the cost ({end.message}); try more steps or "
            "another start"
        )
    if not end.success:
        return f"stopped before it converged ({end.message}); try more steps or another start"
    if search.flat and len(search.history) <= 1:
        return FLAT
    return "converged"
