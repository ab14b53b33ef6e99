"""Resampling, thinning and filtering of sampled signals with gaps."""

import numpy as np

from .._base.checks import require

#: largest relative difference of sampling intervals that count as equal
EVEN = 0.02
#: intervals longer than this multiple of the median are gaps
GAP = 5.0


def gap_length(t: np.ndarray) -> float:
    """Interval [s] above which samples at the instants `t` [s], shape (k,), have a gap."""
    return GAP * float(np.median(np.diff(t)))


def interpolate(t: np.ndarray, x: np.ndarray, new: np.ndarray, gap: float | None) -> np.ndarray:
    """Interpolate `x`, shape (k, ...), at the instants `new` [s], linearly between the samples that
    are not NaN. The result is NaN outside of these and within gaps longer than `gap` [s]."""
    flat = x.reshape(len(t), -1)
    out = np.full((len(new), flat.shape[1]), np.nan)
    for c in range(flat.shape[1]):
        seen = np.isfinite(flat[:, c])
        if np.sum(seen) < 2:
            continue
        at, values = t[seen], flat[seen, c]
        longest = gap_length(at) if gap is None else gap
        out[:, c] = np.interp(new, at, values, left=np.nan, right=np.nan)
        after = np.clip(np.searchsorted(at, new), 1, len(at) - 1)
        rounding = 1e-9 * (at[-1] - at[0])
        on_sample = np.minimum(np.abs(new - at[after - 1]), np.abs(new - at[after])) <= rounding
        out[(at[after] - at[after - 1] > longest) & ~on_sample, c] = np.nan
    return out.reshape(len(new), *x.shape[1:])


def thinned(x: np.ndarray, every: int) -> np.ndarray:
    """Copy of `x`, shape (k, ...), with each `every`-th value of a channel and NaN elsewhere."""
    flat = x.reshape(len(x), -1)
    out = np.full(flat.shape, np.nan)
    for c in range(flat.shape[1]):
        rows = np.flatnonzero(~np.isnan(flat[:, c]))[::every]
        out[rows, c] = flat[rows, c]
    return out.reshape(x.shape)


def low_pass(name: str, t: np.ndarray, x: np.ndarray, cutoff: float, order: int) -> np.ndarray:
    """Filter `x`, shape (k, ...), with a Butterworth low-pass, forwards and backwards.

    There is no phase shift. At `cutoff` [Hz] half of the power is left after both passes. Spans
    between gaps are filtered separately. `name`: name of the channel in error messages."""
    from scipy.signal import butter, sosfiltfilt

    flat = x.reshape(len(t), -1)
    out = np.full(flat.shape, np.nan)
    for c in range(flat.shape[1]):
        rows = np.flatnonzero(np.isfinite(flat[:, c]))
        if rows.size < 2:
            out[rows, c] = flat[rows, c]
            continue
        at = t[rows]
        interval = float(np.median(np.diff(at)))
        cuts = np.flatnonzero(np.diff(at) > GAP * interval) + 1
        uneven = [
            part.size > 2 and np.ptp(np.diff(t[part])) > EVEN * interval
            for part in np.split(rows, cuts)
        ]
        require(
            not any(uneven), f"filter: {name}", "uneven sampling", "resample(...) before filter"
        )
        rate = 1.0 / interval
        nyquist = 0.5 * rate
        require(cutoff < nyquist, "cutoff", f"{cutoff:g} Hz", f"less than {nyquist:g} Hz ({name})")
        # two passes: each leaves the square root of 1/2 of the power at the cutoff
        sharper = (np.sqrt(2.0) - 1.0) ** (-0.5 / order)
        edge = np.tan(np.pi * cutoff / rate) * sharper
        sos = butter(
            order, min(np.arctan(edge) / np.pi * rate, 0.999 * nyquist), fs=rate, output="sos"
        )
        for part in np.split(rows, cuts):
            pad = min(part.size - 1, int(3 * rate / cutoff))
            out[part, c] = sosfiltfilt(sos, flat[part, c], padlen=pad) if pad > 0 else flat[part, c]
    return out.reshape(x.shape)


def scatter(x: np.ndarray) -> float:
    """Estimate the standard deviation of measurement errors in `x`, shape (k,), evenly sampled.

    Third differences of independent errors have 20 times the variance of the errors."""
    x = np.diff(x[np.isfinite(x)], n=3)
    return float(np.sqrt(np.mean(x**2) / 20.0)) if x.size else 0.0
