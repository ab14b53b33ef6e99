"""Optimal experiment design: find the excitation that gives most information on parameters."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_instance, require_whole
from .._base.precision import as_float_array
from .._jax.identity import filter_jit
from ..parameters.parameter import Parameter, ParameterSet, collect
from ..recordings.recording import observe as observed
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from .initial_guess import AT_ONCE, spread

#: sharpness of the smooth maximum of a bounded quantity, which exceeds the maximum by less than
#: log(n)/SHARPNESS
SHARPNESS = 200.0
#: cost of a failed run; penalty per width of the bounds for violations in a starting point
FAILED, OUTSIDE = 1e3, 5.0


class BestExperiment(eqx.Module):
    """Result of `best_experiment`: the optimised `experiment`; the standard errors `errors` of the
    parameters `names` that a recording of it would give, in natural units, shape (p,); those of the
    initial experiment, `before`; `iterations`, and the `reason` why the search stopped."""

    names: tuple[str, ...] = eqx.field(static=True)
    experiment: Experiment
    errors: Float[np.ndarray, " p"]
    before: Float[np.ndarray, " p"]
    iterations: int = eqx.field(static=True)
    reason: str = eqx.field(static=True)

    def summary(self) -> str:
        """Table of standard errors before and after."""
        lines = [f"{self.iterations} iterations. {self.reason}"]
        for name, before, after in zip(self.names, self.before, self.errors, strict=True):
            lines.append(f"{name}: standard error {before:.3g} -> {after:.3g}")
        return "\n".join(lines)


class _Question(eqx.Module):
    experiment: Experiment
    unknown: ParameterSet
    chosen: ParameterSet
    noise: dict[str, Array]
    weights: Float[Array, " p"]
    limits: tuple[tuple[str, tuple[float, float]], ...] = eqx.field(static=True)

    def sensitivity(self, c):
        """d(observed/noise)/dy, bounded quantities over time, and whether the run succeeded."""
        experiment = self.chosen.insert(self.experiment, c)

        def look(y):
            run = simulate(self.unknown.insert(experiment, y), throw=False)
            rows = [(observed(run, n) / s).ravel() for n, s in self.noise.items()]
            held = {name: observed(run, name) for name, _ in self.limits}
            return jnp.concatenate(rows), (held, run.succeeded)

        return jax.jacfwd(look, has_aux=True)(self.unknown.origin)

    def covariance(self, c):
        """Covariance of the search coordinates, shape (p, p)."""
        J, (held, ok) = self.sensitivity(c)
        return jnp.linalg.inv(J.T @ J), held, ok

    def merit(self, c):
        """Weighted mean logarithm of the standard errors, and the margins of bounded quantities in
        widths of their bounds, one row for each bound of each component."""
        covariance, held, ok = self.covariance(c)
        logs = 0.5 * jnp.log(jnp.abs(jnp.diagonal(covariance)))
        errors = jnp.sum(self.weights * logs) / jnp.sum(self.weights)
        room = []
        for name, (low, high) in self.limits:
            ends = [abs(x) for x in (low, high) if math.isfinite(x)]
            scale = high - low if len(ends) == 2 else max([*ends, 1e-12])
            x = held[name].reshape(held[name].shape[0], -1) / scale
            most = lambda x: jax.nn.logsumexp(SHARPNESS * x, axis=0) / SHARPNESS
            if math.isfinite(high):
                room.append(high / scale - most(x))
            if math.isfinite(low):
                room.append(-most(-x) - low / scale)
        rows = jnp.concatenate(room) if room else jnp.zeros(0)
        return jnp.where(ok, errors, FAILED), jnp.where(ok, rows, 0.0)


@filter_jit
def _linearised(question: _Question, c):
    def twice(c):
        found = question.merit(c)
        return found, found

    return jax.jacfwd(twice, has_aux=True)(c)


@filter_jit
def _best_of(question: _Question, cs):
    def score(c):
        merit, room = question.merit(c)
        return merit + OUTSIDE * jnp.sum(jnp.maximum(-room, 0.0))

    scores = jax.lax.map(score, cs, batch_size=AT_ONCE)
    return cs[jnp.argmin(jnp.where(jnp.isfinite(scores), scores, jnp.inf))]


@filter_jit
def _errors(question: _Question, c):
    covariance, *_ = question.covariance(c)
    slope = jax.jacfwd(question.unknown.values)(question.unknown.origin)
    return jnp.sqrt(jnp.diagonal(slope @ covariance @ slope.T))


def expected_errors(
    experiment: Experiment,
    parameters: Sequence[str | Parameter],
    *,
    observe: Sequence[str],
    noise: Any,
) -> dict[str, float]:
    """Standard errors, in natural units by name, of `parameters` fitted to a recording of this
    experiment; arguments as for `best_experiment`."""
    question = _question(experiment, parameters, parameters, observe, noise, {}, {})
    errors = _errors(question, question.chosen.origin)
    return dict(zip(question.unknown.names, map(float, errors), strict=True))


def best_experiment(
    experiment: Experiment,
    parameters: Sequence[str | Parameter],
    choose: Sequence[str | Parameter],
    *,
    observe: Sequence[str],
    noise: Any,
    limits: Mapping[str, tuple[float, float]] | None = None,
    weights: Mapping[str, float] | None = None,
    starts: int = 1,
    seed: int = 0,
    max_steps: int = 50,
    progress: bool = False,
) -> BestExperiment:
    """Optimise an experiment so that its recording gives most information on parameters.

    **Arguments:**

    - `experiment`: the experiment to be recorded, with a duration; its machine has the expected
      parameter values.
    - `parameters`: parameters to be identified, as in `identify`.
    - `choose`: parameters that may be changed, such as "control.amplitude" of a `Multisine`;
      `bounds` of a `Parameter` hold.
    - `observe`: quantities to be recorded at every stored instant; `noise`: their standard
      deviation, one number or numbers by name.
    - `limits`: bounds (low, high) of quantities over the whole motion, such as {"tension": (5.0,
      100.0)}; infinite where there is none.
    - `weights`: weight of the logarithm of each parameter's error, by name; 1 by default. With
      equal weights, a parameter whose error is easily reduced may hide one whose error stays large.
    - `starts`: number of further starting points, spread by `seed` as in `identify`; the search
      begins at the best.

    Minimises the weighted mean logarithm of the standard errors. These are errors of the logarithms
    of positive parameters, from the Fisher information J^T J/noise^2 with derivatives J through the
    simulation. The method is sequential quadratic programming (SciPy's SLSQP), which finds a local
    optimum."""
    from scipy.optimize import minimize

    require_whole("starts", starts, 1)
    require_whole("max_steps", max_steps, 1)
    question = _question(
        experiment, parameters, choose, observe, noise, limits or {}, weights or {}
    )
    origin = question.chosen.origin
    before = np.asarray(_errors(question, origin))
    usable = bool(np.all(np.isfinite(before)))
    require(usable, "experiment", f"errors {before}", "a start that runs and shows every parameter")
    begin = np.asarray(origin)
    if starts > 1:
        begin = np.asarray(_best_of(question, jnp.asarray(spread(question.chosen, starts, seed))))
    search = _Search(question, progress)
    solution = minimize(
        lambda c: search.at(c)[0][0],
        begin,
        jac=lambda c: search.at(c)[1][0],
        constraints=[
            {
                "type": "ineq",
                "fun": lambda c: search.at(c)[0][1],
                "jac": lambda c: search.at(c)[1][1],
            }
        ]
        if question.limits
        else [],
        method="SLSQP",
        options={"maxiter": max_steps, "ftol": 1e-4},
    )
    best = search.best(np.asarray(solution.x))
    return BestExperiment(
        question.unknown.names,
        question.chosen.insert(experiment, jnp.asarray(best)),
        np.asarray(_errors(question, jnp.asarray(best))),
        before,
        int(solution.nit),
        str(solution.message),
    )


def _question(experiment, parameters, choose, observe, noise, limits, weights) -> _Question:
    require_instance("experiment", experiment, Experiment)
    require(experiment.duration is not None, "duration", None, "an experiment with a duration [s]")
    require(len(observe) > 0, "observe", observe, "names of what would be recorded")
    levels = noise if isinstance(noise, dict) else dict.fromkeys(observe, noise)
    missing = sorted(set(observe) ^ set(levels))
    require(not missing, "noise", ", ".join(missing), f"exactly {', '.join(observe)}")
    for name, pair in limits.items():
        ordered = len(pair) == 2 and pair[0] < pair[1]
        require(ordered, f"limits[{name!r}]", pair, "(low, high) with low < high")
    unknown = collect(parameters, experiment)
    strangers = sorted(set(weights) - set(unknown.names))
    known = f"names among {', '.join(unknown.names)}"
    require(not strangers, "weights", ", ".join(strangers), known)
    counted = np.array([float(weights.get(name, 1.0)) for name in unknown.names])
    usable = bool(np.all(np.isfinite(counted) & (counted >= 0)) and counted.sum() > 0)
    require(usable, "weights", counted, "numbers >= 0, not all of them 0")
    return _Question(
        experiment,
        unknown,
        collect(choose, experiment),
        {name: as_float_array(levels[name], "noise") for name in observe},
        jnp.asarray(counted),
        tuple((name, (float(a), float(b))) for name, (a, b) in limits.items()),
    )


class _Search:
    """Evaluations shared by the functions that SciPy calls; stores the best point within limits."""

    def __init__(self, question: _Question, progress: bool):
        self.question, self.progress = question, progress
        self.c, self.found = None, None
        self.seen: list[tuple[float, np.ndarray]] = []

    def at(self, c) -> Any:
        if self.c is None or not np.array_equal(c, self.c):
            slopes, values = _linearised(self.question, jnp.asarray(c))
            finite = lambda x: np.nan_to_num(np.asarray(x, dtype=float))
            self.found = tuple(map(finite, values)), tuple(map(finite, slopes))
            self.c = np.array(c)
            merit, room = self.found[0]
            if np.min(room, initial=np.inf) >= -1e-6:
                self.seen.append((float(merit), self.c))
            if self.progress:
                print(f"mean log error {float(merit):.4f}, room {np.min(room, initial=np.inf):.3g}")
        return self.found

    def best(self, last: np.ndarray) -> np.ndarray:
        self.at(last)
        return min(self.seen, key=lambda x: x[0])[1] if self.seen else last
