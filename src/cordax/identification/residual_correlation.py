"""Correlation of the residuals of neighbouring samples, and the resulting covariance of estimates.

Least squares treats errors of neighbouring samples as independent. Where they are correlated, with
covariance R, the covariance of the estimates is

    (J^T J)^-1 (J^T R J) (J^T J)^-1

R is that of an autoregressive process in each channel, whose order minimises Akaike's criterion.
Residuals are smaller and less correlated than the errors, because the fit follows the errors in
part: E[r r^T] = (I - H) R (I - H) with H = J (J^T J)^-1 J^T. The autocovariances of the errors are
therefore chosen so that the expected residuals have the observed autocovariances (Worsley et al.
2002). Because the process is estimated as well, variances have few degrees of freedom
(Satterthwaite), which Student's distribution uses for the intervals.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float, Int, Shaped

from ..math import lapack

#: probability that residuals of independent errors are called correlated
FALSE_ALARM = 1e-3
#: lags of the test, and largest order of the autoregressive process
LAGS = 20
#: number of corrections of the autocovariances for the part of the errors that the fit follows
CORRECTIONS = 3
#: largest correction of a variance, in units of the observed one: beyond it, the fit would follow
#: almost all of the errors, and residuals would give no information on them
LARGEST_CORRECTION = 4.0
#: fewest degrees of freedom: below, Student's quantiles are meaningless
LEAST_FREEDOM = 2.0


class ErrorModel(eqx.Module):
    """Errors of c channels as autoregressive processes: `coefficients`, shape (c, l), zero beyond
    the `order`, shape (c,); variances of the innovations, `innovation`, and numbers of samples,
    `count`, shape (c,). For the residuals: correlation of neighbouring samples, `lag_one`, and the
    number of samples over which they are correlated, `length` (1 if independent), shape (c,);
    `white`: whether the Ljung-Box test accepts all of them as independent."""

    coefficients: Float[Array, "c l"]
    order: Int[Array, " c"]
    innovation: Float[Array, " c"]
    count: Int[Array, " c"]
    lag_one: Float[Array, " c"]
    length: Float[Array, " c"]
    white: Bool[Array, ""]


def seen_first(x: Float[Array, "k c ..."], seen: Bool[Array, "k c"]) -> Array:
    """Move recorded samples of each channel to the front, in order, so that adjacent rows are
    neighbouring samples of one sensor even if other sensors have instants in between."""
    order = jnp.argsort(~seen, axis=0, stable=True)
    return jnp.take_along_axis(x, order.reshape(*order.shape, *(1,) * (x.ndim - 2)), axis=0)


def error_covariance(
    residuals: list[Array], slopes: list[Array], seen: list[Array], half: Float[Array, "p p"]
) -> tuple[ErrorModel, Float[Array, "p p"], Float[Array, " p"]]:
    """Model of the errors, covariance of the estimates, shape (p, p), and the variance of each
    variance over its square, shape (p,).

    For several recordings: `residuals` (k, c) and their Jacobians `slopes` (k, c, p), zero where
    nothing was recorded (`seen`, shape (k, c)); `half` is a square root of the inverse of J^T J,
    priors included: `half @ half.T = (J^T J)^-1`, so that `J @ half` is orthonormal."""
    residuals = [seen_first(r, s) for r, s in zip(residuals, seen, strict=True)]
    slopes = [seen_first(J @ half, s) for J, s in zip(slopes, seen, strict=True)]
    waves = [_transform(J, 2 * len(J)) for J in slopes]
    counts = [jnp.sum(s, axis=0) for s in seen]
    measured = [_autocovariance(r, n) for r, n in zip(residuals, counts, strict=True)]
    raw = [g[:, : _lags(g) + 1] for g in measured]

    def processes(corrected):
        return [_autoregression(g, n) for g, n in zip(corrected, counts, strict=True)]

    def estimate_covariance(fitted):
        spectra = [_spectrum(a, s, len(w))[0] for (a, s, _), w in zip(fitted, waves, strict=True)]
        pairs = zip(waves, spectra, strict=True)
        middle = sum(score_covariance(w, s) for w, s in pairs)
        return spectra, middle

    def correct(corrected, _):
        spectra, middle = estimate_covariance(processes(corrected))
        lost = [
            _followed(w, s, middle) / jnp.maximum(n, 1)[:, None]
            for w, s, n in zip(waves, spectra, counts, strict=True)
        ]
        return [_add(g, x[:, : g.shape[1]]) for g, x in zip(raw, lost, strict=True)], None

    corrected, _ = jax.lax.scan(correct, raw, None, CORRECTIONS)
    fitted = processes(corrected)
    spectra, middle = estimate_covariance(fitted)
    found = half @ middle @ half.T
    variances = [
        _variance_of_variance(w @ half.T, s, *process, n)
        for w, s, process, n in zip(waves, spectra, fitted, counts, strict=True)
    ]
    least = jnp.finfo(found.dtype).tiny
    relative = sum(variances) / jnp.maximum(jnp.diagonal(found), jnp.sqrt(least)) ** 2
    return _model(fitted, counts, measured), found, relative


def _add(observed: Float[Array, "c l"], lost: Float[Array, "c l"]) -> Float[Array, "c l"]:
    """Corrected autocovariances; the correction is scaled down where it is too large."""
    most = LARGEST_CORRECTION * observed[:, :1]
    return observed + lost * jnp.minimum(1.0, most / jnp.maximum(lost[:, :1], most))


def _lags(autocovariance: Float[Array, "c k"]) -> int:
    return max(1, min(LAGS, autocovariance.shape[1] // 8))


def _model(fitted, counts, measured) -> ErrorModel:
    """Join the channels of all recordings in one model; shorter processes are padded with zeros."""
    coefficients, innovations, orders = zip(*fitted, strict=True)
    widest = max(a.shape[1] for a in coefficients)
    padded = [jnp.pad(a, ((0, 0), (0, widest - a.shape[1]))) for a in coefficients]
    described = [_describe(g, n) for g, n in zip(measured, counts, strict=True)]
    lag_one, length, statistics, freedoms = zip(*described, strict=True)
    join = jnp.concatenate
    return ErrorModel(
        join(padded),
        join(orders),
        join(innovations),
        join(counts),
        join(lag_one),
        join(length),
        sum(statistics) <= _limit(sum(freedoms)),
    )


def _along_time(transform, x: Shaped[Array, "k ..."]) -> Shaped[Array, "f ..."]:
    """Apply `transform` to every row along the first axis, one after the other: XLA rejects
    operands of several dimensions whose layout is not row-major (jaxlib 0.10, with dimensions of
    size 1)."""
    rows = jax.lax.map(transform, x.reshape(len(x), -1).T)
    return rows.T.reshape(-1, *x.shape[1:])


def _transform(x: Float[Array, "k ..."], size: int) -> Complex[Array, "f ..."]:
    """Fourier transform along the first axis, padded with zeros to `size` samples."""
    return _along_time(lambda row: jnp.fft.rfft(row, size), x)


def _inverse_transform(x: Shaped[Array, "f ..."]) -> Float[Array, "k ..."]:
    return _along_time(jnp.fft.irfft, x)


def _autocovariance(r: Float[Array, "k c"], count: Int[Array, " c"]) -> Float[Array, "c k"]:
    """Autocovariances: sums of products of samples l apart, divided by the number of samples."""
    k = len(r)
    power = jnp.abs(_transform(r, 2 * k)) ** 2
    return _inverse_transform(power)[:k].T / jnp.maximum(count, 1)[:, None]


def _describe(covariance: Float[Array, "c k"], count: Int[Array, " c"]):
    """Correlation of neighbours, number of samples over which residuals are correlated, the
    Ljung-Box statistic (chi-squared if errors are independent) and its degrees of freedom."""
    c, k = covariance.shape
    correlation = covariance / jnp.maximum(covariance[:, :1], jnp.finfo(covariance.dtype).tiny)
    lags = max(1, min(LAGS, k // 4))
    # a sensor with few samples has fewer lags
    lag = jnp.arange(1, lags + 1)
    number = jnp.maximum(count, 1)[:, None]
    scale = number * (number + 2) / jnp.maximum(number - lag, 1)
    counts = lag <= jnp.maximum(number // 4, 1)
    statistic = jnp.sum(jnp.where(counts, scale * correlation[:, 1 : lags + 1] ** 2, 0.0))
    # tapered (Bartlett) beyond twice the lag at which the correlation first vanishes
    vanishes = jnp.argmax(jnp.concatenate([correlation, -jnp.ones((c, 1))], 1) <= 0, axis=1)
    reach = 2.0 * jnp.maximum(vanishes, 1)
    taper = jnp.clip(1.0 - jnp.arange(k) / reach[:, None], 0.0, 1.0)
    length = jnp.maximum(2.0 * jnp.sum(taper * correlation, axis=1) - 1.0, 1.0)
    return correlation[:, min(1, k - 1)], length, statistic, jnp.sum(counts)


def _limit(freedom) -> Array:
    """Quantile of chi-squared (Wilson-Hilferty cube: within 0.3 % from 8 degrees of freedom on)."""
    from scipy.stats import norm

    a = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - a + norm.isf(FALSE_ALARM) * jnp.sqrt(a)) ** 3


def _autoregression(covariance: Float[Array, "c l"], count: Int[Array, " c"]):
    """Coefficients, shape (c, l - 1), variances of innovations and orders of the autoregressive
    processes with these autocovariances, by Levinson-Durbin recursion over the orders."""
    g = jnp.where(count[:, None] > 0, covariance, 0.0)
    top = g.shape[1] - 1
    tiny = jnp.finfo(g.dtype).tiny
    number = jnp.maximum(count, 2)
    # correlation over more lags than samples cannot be estimated
    bound = 1.0 - 1.0 / number
    place = jnp.arange(top)

    def raise_order(carry, m):  # from order m to order m + 1
        a, s, valid = carry
        back = jnp.take(g, jnp.abs(m - place), axis=1)  # lags m, m - 1, ...
        inner = jnp.sum(jnp.where(place < m, a * back, 0.0), axis=1)
        exact = (g[:, m + 1] - inner) / s
        reflection = jnp.clip(exact, -bound, bound)
        flipped = jnp.take(a, jnp.clip(m - 1 - place, 0, top - 1), axis=1)
        below = jnp.where(place < m, a - reflection[:, None] * flipped, 0.0)
        a = jnp.where(place == m, reflection[:, None], below)
        s = s * (1.0 - reflection**2)
        # corrected autocovariances may not belong to any process: then only lower orders are used
        usable = valid & ((m == 0) | (jnp.abs(exact) <= bound))
        valid = valid & (jnp.abs(exact) <= bound)
        return (a, s, valid), (a, s, usable)

    floor = jnp.sqrt(jnp.finfo(g.dtype).eps)  # keeps very smooth residuals solvable
    first = jnp.zeros_like(g[:, 1:]), jnp.maximum((1.0 + floor) * g[:, 0], tiny), count >= 0
    _, later = jax.lax.scan(raise_order, first, jnp.arange(top))
    a, s, usable = (jnp.concatenate([x[None], y]) for x, y in zip(first, later, strict=True))
    order = jnp.arange(top + 1)[:, None]
    # few samples allow low orders only
    criterion = number * jnp.log(s) + 2.0 * order
    usable = usable & (order <= jnp.maximum(number // 8, 1))
    best = jnp.argmin(jnp.where(usable, criterion, jnp.inf), axis=0)
    channel = jnp.arange(len(g))
    return a[best, channel], jnp.where(count > 0, s[best, channel], 0.0), best


def _spectrum(a: Float[Array, "c l"], innovation: Float[Array, " c"], size: int):
    """Power spectrum at `size` frequencies from 0 to half the sampling rate, shape (f, c), and the
    transfer function from errors to innovations."""
    lag = jnp.pad(-a, ((0, 0), (1, 0))).at[:, 0].set(1.0)
    transfer = _transform(lag.T, 2 * (size - 1))
    return innovation / jnp.abs(transfer) ** 2, transfer


def _both_sides(size: int) -> Float[Array, " f"]:
    """Weight of each frequency from 0 to half the sampling rate in a two-sided mean."""
    once = jnp.full(size, 2.0).at[jnp.array([0, size - 1])].set(1.0)
    return once / (2 * (size - 1))


def score_covariance(waves: Array, spectrum: Float[Array, "f c"]) -> Float[Array, "p p"]:
    """`J^T R J` for mutually independent channels: `waves` (f, c, p) is the Fourier transform of J,
    padded to twice its length, `spectrum` that of the autocovariances in R."""
    weights = _both_sides(len(waves))[:, None] * spectrum
    return jnp.einsum("fc,fci,fcj->ij", weights, waves.conj(), waves).real


def _followed(waves, spectrum, middle) -> Float[Array, "c k"]:
    """Difference between the autocovariances of errors and residuals, summed over samples: those of
    H R + R H - H R H with H = Q Q^T; `waves` is the Fourier transform of Q, `middle` Q^T R Q."""
    leverage = jnp.sum(jnp.abs(waves) ** 2, axis=2)
    explained = jnp.einsum("fci,ij,fcj->fc", waves.conj(), middle, waves).real
    return _inverse_transform(2.0 * spectrum * leverage - explained).T


def _variance_of_variance(waves, spectrum, a, innovation, order, count):
    """Variances of the estimated variances, shape (p,), to first order in the errors of the
    process: its innovation variance s has variance 2 s^2/n, its coefficients have covariance
    s T^-1/n with the Toeplitz matrix T of autocovariances. `waves` (f, c, p) is the Fourier
    transform of J (J^T J)^-1."""
    sides = _both_sides(len(waves))[:, None, None]
    share = jnp.abs(waves) ** 2 * spectrum[:, :, None] * sides
    variance = jnp.sum(share, axis=0)  # variance due to each channel, shape (c, p)
    _, transfer = _spectrum(a, innovation, len(waves))
    m = a.shape[1]
    turn = -1j * jnp.pi * jnp.arange(1, m + 1) / (len(waves) - 1)
    turns = jnp.exp(turn * jnp.arange(len(waves))[:, None])
    slope = 2.0 * jnp.einsum("fm,fcp->cmp", turns, share / transfer[:, :, None]).real
    used = jnp.arange(m) < order[:, None]
    slope = jnp.where(used[:, :, None], slope, 0.0)
    number = jnp.maximum(count, 1)[:, None]
    # relative to the variance of innovations, for good scaling
    unit = _spectrum(a, jnp.ones_like(innovation), len(waves))[0]
    lags = _inverse_transform(unit)[:m].T
    lag = jnp.abs(jnp.arange(m)[:, None] - jnp.arange(m))
    both = used[:, :, None] & used[:, None, :]
    toeplitz = jnp.where(both, lags[:, lag], jnp.eye(m))
    spread = jnp.einsum("cmp,cmp->cp", slope, jax.vmap(lapack.lu)(toeplitz, slope)) / number
    return jnp.sum(2.0 * variance**2 / number + jnp.maximum(spread, 0.0), axis=0)
