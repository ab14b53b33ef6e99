"""Intervals that do not assume a linear model: profile likelihood and bootstrap.

Both repeat the fit many times from the optimum, in batches. The profile fixes one parameter away
from its estimate and fits the others; the bootstrap draws errors from the model of the residuals.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax.identity import filter_jit
from .problem import Problem, Trial

#: number of repeated fits in one batch
AT_ONCE = 16
#: damped Gauss-Newton steps of a fit that begins at the optimum of another fit
STEPS = 6
#: offsets at which a profile is evaluated, in multiples of the half-width of the linear interval
OFFSETS = (0.5, 0.8, 1.0, 1.25, 1.7, 2.5, 4.0)


def student_quantile(level: float, freedom):
    """Half the width of the interval that contains the fraction `level` of Student's distribution
    with `freedom` degrees of freedom, any shape; infinite freedom: the normal distribution."""
    from scipy.stats import t

    return t.ppf(0.5 + 0.5 * level, freedom)


def _descend(problem: Problem, y, free: Float[Array, " p"]):
    """The best `y` with the parameters that are not `free` (0) fixed, and the misfit there."""

    def look(y):
        J, (r, _) = problem.jacobian(y)
        return jnp.sum(r**2), J * free, r

    def step(carry, _):
        y, (cost, J, r), damping = carry
        A = J.T @ J
        size = jnp.diagonal(A)
        size = jnp.where(size > 0, size, 1.0)
        move = jnp.linalg.solve(A + jnp.diag(damping * size + (1.0 - free)), -J.T @ r)
        there = y + free * move
        found = look(there)
        better = found[0] < cost
        pick = lambda a, b: jax.tree.map(lambda a, b: jnp.where(better, a, b), a, b)
        damping = jnp.where(better, 0.1 * damping, 10.0 * damping)
        return (*pick((there, found), (y, (cost, J, r))), damping), None

    (y, (cost, *_), _), _ = jax.lax.scan(step, (y, look(y), jnp.asarray(1e-3)), None, STEPS)
    return y, cost


@filter_jit
def _profile(problem: Problem, y, slopes, offsets):
    """Misfits with parameter i moved by offsets[i, j], shape (p, m)."""
    p, m = offsets.shape

    def one(index):
        i, j = index // m, index % m
        return _descend(problem, y + slopes[i] * offsets[i, j], 1.0 - jax.nn.one_hot(i, p))[1]

    return jax.lax.map(one, jnp.arange(p * m), batch_size=AT_ONCE).reshape(p, m)


def profile_ends(fit, quantile: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p 2"]:
    """Ends of the intervals, in search coordinates relative to the optimum: where the profile of
    the misfit of each parameter rises to that of its quantile of Student's distribution; infinite
    if it does not within four times the linear interval."""
    independent = np.diagonal(np.asarray(fit.about.independent))
    wider = np.sqrt(np.diagonal(np.asarray(fit.about.covariance)) / independent)
    reach = quantile * wider * np.sqrt(independent)
    # the other parameters start where a linear model predicts them
    C = np.asarray(fit.about.independent)
    slopes = (C / np.diagonal(C)).T
    sides = np.array([-x for x in OFFSETS[::-1]] + list(OFFSETS))
    offsets = reach[:, None] * sides
    costs = _profile(fit.problem, fit.y, jnp.asarray(slopes), jnp.asarray(offsets))
    rise = np.maximum(np.asarray(costs) - float(fit.cost), 0.0)
    # in units of the quantile: one at the ends of the interval, linear in a linear model
    height = np.sqrt(rise) / float(fit.noise_scale) / (quantile * wider)[:, None]
    half = len(OFFSETS)
    ends = np.empty((len(reach), 2))
    for i in range(len(reach)):
        for side, part in enumerate((slice(half - 1, None, -1), slice(half, None))):
            h = np.concatenate([[0.0], height[i, part]])
            x = np.concatenate([[0.0], offsets[i, part]])
            ends[i, side] = _crossing(h, x)
    return ends


def _crossing(height: np.ndarray, x: np.ndarray) -> float:
    beyond = np.flatnonzero(height >= 1.0)
    if not beyond.size:
        return float(np.copysign(np.inf, x[-1]))
    k = beyond[0]
    share = (1.0 - height[k - 1]) / (height[k] - height[k - 1])
    return float(x[k - 1] + share * (x[k] - x[k - 1]))


@filter_jit
def _refits(problem: Problem, y, draws: list[list[Array]]):
    """Estimates from resampled recorded values, `draws[trial][channel]` of shape (n, k, ...)."""
    free = jnp.ones_like(y)

    def one(values):
        trials = tuple(
            eqx.tree_at(
                lambda t: list(t.recording.values.values()),
                trial,
                new,
            )
            for trial, new in zip(problem.trials, values, strict=True)
        )
        return _descend(eqx.tree_at(lambda p: p.trials, problem, trials), y, free)[0]

    return jax.lax.map(one, draws, batch_size=AT_ONCE)


def bootstrap(fit, draws: int, seed: int) -> Float[np.ndarray, "n p"]:
    """Estimates, in search coordinates, from the simulated values plus errors drawn from the
    autoregressive model of the residuals, whose innovations are resampled."""
    random = np.random.default_rng(seed)
    errors, used, drawn = fit.about.errors, 0, []
    innovations = np.asarray(errors.innovation)
    if fit.problem.loss is not None:  # outliers keep their size; the loss reduces their weight
        innovations = np.full_like(innovations, np.nan)
    models = list(zip(np.asarray(errors.coefficients), innovations, strict=True))
    for trial, differences in zip(fit.trials, fit.differences, strict=True):
        columns = len(trial.channels)
        channels = models[used : used + columns]
        drawn.append(_drawn(trial, differences, channels, draws, random))
        used += columns
    return np.asarray(_refits(fit.problem, fit.y, drawn))


def _drawn(trial: Trial, differences, models: list, draws: int, random):
    values = []
    for name, recorded in trial.recording.values.items():
        x, r = np.asarray(recorded), np.asarray(differences[name])
        noise = np.broadcast_to(np.asarray(trial.noise[name]), r.shape).reshape(len(r), -1)
        flat = r.reshape(len(r), -1)
        new = np.repeat((x - r).reshape(1, len(r), -1), draws, axis=0)
        for c in range(flat.shape[1]):
            seen = np.flatnonzero(~np.isnan(flat[:, c]))
            model = models.pop(0)
            if seen.size:
                scale = noise[seen, c]
                new[:, seen, c] += scale * _errors(flat[seen, c] / scale, model, draws, random)
        values.append(jnp.asarray(new.reshape(draws, *x.shape)))
    return values


def _errors(r: np.ndarray, model: tuple[np.ndarray, float], draws: int, random) -> np.ndarray:
    """Errors of the autoregressive process with innovations resampled from those of the residuals
    r, shape (draws, len(r)). `model`: coefficients, and the variance to which innovations are
    scaled, NaN to leave them as they are."""
    from scipy.signal import lfilter

    coefficients, innovation = model
    n, filter_ = r.size, np.concatenate([[1.0], -coefficients])
    order = int(np.max(np.flatnonzero(filter_), initial=0))
    e = np.asarray(lfilter(filter_, 1.0, r))[min(order, n - 1) :]
    e = e - e.mean()
    if np.isfinite(innovation):
        e = e * np.sqrt(innovation / max(np.mean(e**2), np.finfo(float).tiny))
    settle = n if order else 0  # samples before the first: initial transient of the process
    innovations = e[random.integers(0, e.size, (draws, settle + n))]
    return np.asarray(lfilter([1.0], filter_, innovations))[:, settle:]
