"""Starting point of the search: the best of many starts, fits to short horizons, and fits to
segments (multiple shooting)."""

import dataclasses
from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import known_values
from .._jax.identity import filter_jit
from ..math.sampling import latin_hypercube
from ..parameters.parameter import Parameter, ParameterSet, collect
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from .least_squares import levenberg_marquardt
from .problem import Problem
from .shooting import MISSES, Shooting, shooting
from .termination import START_FAILED

#: number of simulations in one batch
AT_ONCE = 32
#: spread of starting points in search coordinates of the kinds "log" (a factor of ten) and "linear"
SPREAD = {"log": float(np.log(10.0)), "linear": 1.0}


def approach(problem: Problem, starts: int, horizons: int, segments: int, seed: int, options):
    """Search coordinates of the starting point, shape (p,)."""
    y = problem.parameters.origin
    first = 0.5 ** (horizons - 1)
    if starts > 1:
        part = _up_to(problem, first) if horizons > 1 else problem
        y = _best_start(part, jnp.asarray(spread(problem.parameters, starts, seed)))
    for i in range(horizons - 1):
        y = _searched(_up_to(problem, first * 2**i), y, **options)
    if segments > 1:
        y = _shot(shooting(problem, y, segments), y, options)
    return y


def with_recorded_start(
    experiment: Experiment, parameters, recording: Recording, keep: Collection[str] = ()
) -> Experiment:
    """Set those coordinates and velocities of the initial state that are among the `parameters` to
    their first recorded values. Values outside of a parameter's bounds, and parameters named in
    `keep`, are not changed."""
    listed = parameters if isinstance(parameters, (list, tuple)) else ()  # `collect` checks them
    named = [Parameter(p) if isinstance(p, str) and p else p for p in listed]
    wanted = [
        p for p in named if isinstance(p, Parameter) and p.name.startswith(("state0.q", "state0.v"))
    ]
    wanted = [p for p in wanted if p.where is None and p.name not in keep]
    state, system = experiment.start, experiment.system
    if not wanted:
        return experiment

    def first(name: str, default):
        samples = known_values(recording.values.get(name))
        if samples is None or samples.ndim != 1 or not np.any(np.isfinite(samples)):
            return default
        return samples[np.isfinite(samples)][0]

    q = [first(name, x) for name, x in zip(system.coordinate_names, state.q, strict=True)]
    v = [first(f"d_{name}", x) for name, x in zip(system.velocity_names, state.v, strict=True)]
    shown = dataclasses.replace(
        state, q=jnp.asarray(q, state.q.dtype), v=jnp.asarray(v, state.v.dtype)
    )
    experiment = experiment.replace(state0=state)
    source = experiment.replace(state0=shown)
    for parameter in wanted:
        place = collect([parameter.name], experiment).places[0]
        value = place.read(source)
        least = 0.0 if parameter.transform == "log" else -np.inf
        low, high = parameter.bounds or (least, np.inf)
        concrete = known_values(value)
        if concrete is not None and np.all((concrete > low) & (concrete < high)):
            experiment = place.write(experiment, value)
    return experiment


def _up_to(problem: Problem, horizon: float) -> Problem:
    return dataclasses.replace(problem, horizon=jnp.asarray(horizon))


@filter_jit
def _searched(problem: Problem | Shooting, y, **options):
    found = levenberg_marquardt(problem, y, **options)
    return jnp.where(found.code == START_FAILED, y, found.y)


def _shot(problem: Shooting, y, options):
    z = jnp.concatenate([y, problem.origin[y.size :]])
    for miss in MISSES:
        closer = dataclasses.replace(problem, weight=jnp.asarray(1.0 / miss))
        z = _searched(closer, z, **options)
    return z[: y.size]


def spread(parameters: ParameterSet, count: int, seed: int) -> np.ndarray:
    """The initial values and `count` further starting points, shape (count + 1, p)."""
    share = latin_hypercube(count, parameters.size, seed)
    ys = np.zeros((count + 1, parameters.size))
    numbers = zip(parameters.number_kinds, parameters.number_bounds, strict=True)
    starts = np.asarray(parameters.values(parameters.origin))
    for i, (kind, ends) in enumerate(numbers):
        if ends is not None:
            logit = lambda x: np.log(x / (1.0 - x))
            ys[1:, i] = logit(share[:, i]) - logit((starts[i] - ends[0]) / (ends[1] - ends[0]))
        else:
            ys[1:, i] = SPREAD[kind] * (2.0 * share[:, i] - 1.0)
    return ys


@filter_jit
def _best_start(problem: Problem, ys):
    def cost(y):
        return jnp.sum(problem.residuals(y)[0] ** 2)

    costs = jax.lax.map(cost, ys, batch_size=AT_ONCE)
    return ys[jnp.argmin(jnp.where(jnp.isfinite(costs), costs, jnp.inf))]
