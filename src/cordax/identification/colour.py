"""Whether residuals are noise, and what it means for the covariance if they are not.

Least squares takes errors of neighbouring samples for independent. Errors of the model are smooth
curves: thousands of samples of one curve say as much as a few. The covariance is then

    (J^T J)^-1 (J^T R J) (J^T J)^-1

with the autocovariance R of the residuals of each channel. It is estimated from the residuals
themselves, tapered (Bartlett) beyond twice the lag at which it first vanishes.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
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


def colour(r: Float[Array, "k c"], seen: Bool[Array, "k c"]) -> tuple[Colour, Float[Array, "c k"]]:
    """Of residuals `r`, zero where nothing was `seen`; and their autocovariance, shape (c, k)."""
    k, c = r.shape
    numbers = jnp.maximum(jnp.sum(seen, axis=0), 1)
    spectrum = jnp.abs(jnp.fft.rfft(r, 2 * k, axis=0)) ** 2
    covariance = jnp.fft.irfft(spectrum, 2 * k, axis=0)[:k].T / numbers[:, None]
    least = jnp.finfo(r.dtype).tiny
    correlation = covariance / jnp.maximum(covariance[:, :1], least)
    lags = max(1, min(LAGS, k // 4))
    # Ljung and Box: a chi-squared number where errors are independent
    pairs = jnp.maximum(numbers[:, None] - jnp.arange(1, lags + 1), 1)
    scale = (numbers * (numbers + 2))[:, None] / pairs
    statistic = jnp.sum(scale * correlation[:, 1 : lags + 1] ** 2)
    vanishes = jnp.argmax(jnp.concatenate([correlation, -jnp.ones((c, 1))], 1) <= 0, axis=1)
    reach = 2.0 * jnp.maximum(vanishes, 1)
    taper = jnp.clip(1.0 - jnp.arange(k) / reach[:, None], 0.0, 1.0)
    samples = jnp.maximum(2.0 * jnp.sum(taper * correlation, axis=1) - 1.0, 1.0)
    white = statistic <= _limit(lags * c)
    found = Colour(correlation[:, min(1, k - 1)], samples, white, jnp.sum(numbers / samples))
    return found, taper * covariance


def _limit(freedom: int) -> float:
    from scipy.stats import chi2

    return float(chi2.isf(FALSE_ALARM, freedom))


def score_covariance(J: Float[Array, "k c p"], covariance: Float[Array, "c k"]):
    """`J^T R J`, shape (p, p), of channels that do not depend on each other."""
    k = J.shape[0]
    both = jnp.concatenate([covariance, jnp.zeros((len(covariance), 1)), covariance[:, :0:-1]], 1)
    # non-negative but for rounding: a product of two such sequences
    weights = jnp.maximum(jnp.fft.fft(both, axis=1).real, 0.0)
    waves = jnp.fft.fft(J, 2 * k, axis=0)
    return jnp.einsum("cf,fci,fcj->ij", weights, waves.conj(), waves).real / (2 * k)


def channels(values: dict[str, Array]) -> tuple[str, ...]:
    """A name for each column of the residuals."""
    names = []
    for name, x in values.items():
        parts = int(np.prod(x.shape[1:]))
        names += [name] if x.ndim == 1 else [f"{name}_{i + 1}" for i in range(parts)]
    return tuple(names)


def by_channel(flat: Float[Array, " n ..."], values: dict[str, Array]) -> Array:
    """Rows in the order of the residuals as shape (k, c, ...)."""
    parts, used = [], 0
    for x in values.values():
        rows = flat[used : used + x.size]
        parts.append(rows.reshape(x.shape[0], -1, *flat.shape[1:]))
        used += x.size
    return jnp.concatenate(parts, axis=1)
