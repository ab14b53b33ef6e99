"""Whether residuals are noise, and what it means for the covariance if they are not.

Least squares takes errors of neighbouring samples for independent. Errors of the model are smooth
curves: thousands of samples of one curve say as much as a few. The covariance is then

    (J^T J)^-1 (J^T R J) (J^T J)^-1

with the autocovariance R of the residuals of each channel. It is estimated from the residuals
themselves, tapered (Bartlett) beyond twice the lag at which it first vanishes.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

#: chance that residuals of independent errors count as correlated
FALSE_ALARM = 1e-3
#: lags of the test
LAGS = 20


class Colour(eqx.Module):
    """Of the residuals of c channels: correlation of neighbouring samples `neighbours`, and over
    how many samples errors agree, `samples` (1 if independent), shape (c,); whether all are
    `white`; how many independent numbers they amount to, `independent`."""

    neighbours: Float[Array, " c"]
    samples: Float[Array, " c"]
    white: Bool[Array, ""]
    independent: Float[Array, ""]


def seen_first(x: Float[Array, "k c ..."], seen: Bool[Array, "k c"]) -> Array:
    """What was seen of each channel moved together, in order: neighbours are then neighbouring
    samples of a sensor, however many instants belong to others."""
    order = jnp.argsort(~seen, axis=0, stable=True)
    return jnp.take_along_axis(x, order.reshape(*order.shape, *(1,) * (x.ndim - 2)), axis=0)


def colour(residuals: list[Array], seen: list[Array]) -> tuple[Colour, list[Float[Array, "c k"]]]:
    """Of residuals of several recordings, shape (k, c) each, zero where nothing was `seen`; and
    their autocovariances, shape (c, k) each."""
    found = [_correlated(seen_first(r, s), s) for r, s in zip(residuals, seen, strict=True)]
    neighbours, samples, statistics, freedoms, numbers, covariances = zip(*found, strict=True)
    both = Colour(
        jnp.concatenate(neighbours),
        jnp.concatenate(samples),
        sum(statistics) <= _limit(sum(freedoms)),
        sum(jnp.sum(n / s) for n, s in zip(numbers, samples, strict=True)),
    )
    return both, list(covariances)


def _correlated(r: Float[Array, "k c"], seen: Bool[Array, "k c"]):
    k, c = r.shape
    numbers = jnp.maximum(jnp.sum(seen, axis=0), 1)
    spectrum = jnp.abs(jnp.fft.rfft(r, 2 * k, axis=0)) ** 2
    covariance = jnp.fft.irfft(spectrum, 2 * k, axis=0)[:k].T / numbers[:, None]
    least = jnp.finfo(r.dtype).tiny
    correlation = covariance / jnp.maximum(covariance[:, :1], least)
    lags = max(1, min(LAGS, k // 4))
    # Ljung and Box: a chi-squared number where errors are independent; of a sensor that was seldom
    # read only the lags it has
    lag = jnp.arange(1, lags + 1)
    pairs = jnp.maximum(numbers[:, None] - lag, 1)
    scale = (numbers * (numbers + 2))[:, None] / pairs
    counts = lag <= jnp.maximum(numbers[:, None] // 4, 1)
    statistic = jnp.sum(jnp.where(counts, scale * correlation[:, 1 : lags + 1] ** 2, 0.0))
    vanishes = jnp.argmax(jnp.concatenate([correlation, -jnp.ones((c, 1))], 1) <= 0, axis=1)
    reach = 2.0 * jnp.maximum(vanishes, 1)
    taper = jnp.clip(1.0 - jnp.arange(k) / reach[:, None], 0.0, 1.0)
    samples = jnp.maximum(2.0 * jnp.sum(taper * correlation, axis=1) - 1.0, 1.0)
    neighbours = correlation[:, min(1, k - 1)]
    return neighbours, samples, statistic, jnp.sum(counts), numbers, taper * covariance


def _limit(freedom) -> Array:
    """The quantile of chi-squared (Wilson and Hilferty's cube: within 0.3 % from 8 on)."""
    from scipy.stats import norm

    a = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - a + norm.isf(FALSE_ALARM) * jnp.sqrt(a)) ** 3


def score_covariance(J: Float[Array, "k c p"], covariance: Float[Array, "c k"]):
    """`J^T R J`, shape (p, p), of channels that do not depend on each other."""
    k = J.shape[0]
    both = jnp.concatenate([covariance, jnp.zeros((len(covariance), 1)), covariance[:, :0:-1]], 1)
    # non-negative but for rounding: a product of two such sequences
    weights = jnp.maximum(jnp.fft.fft(both, axis=1).real, 0.0)
    waves = jnp.fft.fft(J, 2 * k, axis=0)
    return jnp.einsum("cf,fci,fcj->ij", weights, waves.conj(), waves).real / (2 * k)
