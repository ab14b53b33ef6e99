"""Spans of a recording in which a machine moves freely."""

from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from .._base.checks import require
from .signals import scatter


def spans(
    t: Float[np.ndarray, " k"],
    *,
    gap: float,
    constant: list[tuple[str, Float[np.ndarray, " k"], float | None]],
    energy: Float[np.ndarray, " k"] | None,
    least: float,
    rise: float,
) -> list[tuple[int, int]]:
    """Find the longest spans of free motion; return the first and last row of each.

    A span has no interval longer than `gap`. The channels in `constant` (name, values, tolerance)
    change within it by no more than their tolerance. The `energy`, if given, stays above
    the share `least` of its largest value, and never rises by more than the share `rise` of that
    value above its lowest value so far."""
    usable = np.ones(len(t), bool)
    if energy is not None:
        top = float(np.nanmax(energy))
        require(np.isfinite(top) and top > 0, "energy", top, "a positive largest value")
        usable = energy >= least * top  # False where NaN
    limits = [
        (
            x,
            6.0 * scatter(x) + 1e-9 * float(np.nanmax(np.abs(x)))
            if tolerance is None
            else tolerance,
        )
        for _, x, tolerance in constant
    ]
    found: list[tuple[int, int]] = []
    first, lows, highs, lowest = 0, [np.inf] * len(limits), [-np.inf] * len(limits), np.inf

    def close(last: int) -> None:
        if last > first:
            found.append((first, last))

    def restart(i: int) -> None:
        nonlocal first, lows, highs, lowest
        first, lowest = i, np.inf
        lows, highs = [np.inf] * len(limits), [-np.inf] * len(limits)

    for i in range(len(t)):
        if i > first and t[i] - t[i - 1] > gap:
            close(i - 1)
            restart(i)
        if not usable[i]:
            close(i - 1)
            restart(i + 1)
            continue
        changed = any(
            max(high, x[i]) - min(low, x[i]) > limit
            for (x, limit), low, high in zip(limits, lows, highs, strict=True)
            if np.isfinite(x[i])
        )
        if changed or (energy is not None and energy[i] > lowest + rise * top):
            close(i - 1)
            restart(i)
        for c, (x, _) in enumerate(limits):
            if np.isfinite(x[i]):
                lows[c], highs[c] = min(lows[c], x[i]), max(highs[c], x[i])
        if energy is not None:
            lowest = min(lowest, energy[i])
    close(len(t) - 1)
    return found


def pieces(
    t: Float[np.ndarray, " k"], span: tuple[int, int], shortest: float, longest: float
) -> list[Bool[np.ndarray, " k"]]:
    """Divide a span into equal windows that are not longer than `longest` [s]; return their rows.

    If equal windows would be shorter than `shortest` [s], windows of the largest length are
    returned, without the remainder."""
    begin, end = t[span[0]], t[span[1]]
    if end - begin < shortest * (1.0 - 1e-9):
        return []
    count = max(1, int(np.ceil((end - begin) / longest * (1.0 - 1e-9))))
    length = (end - begin) / count
    if length < shortest * (1.0 - 1e-9):
        count, length = count - 1, longest
    edges = begin + length * np.arange(count + 1)
    inside = (np.arange(len(t)) >= span[0]) & (np.arange(len(t)) <= span[1])
    slack = 1e-9 * (end - begin)
    rows = [
        inside & (t >= a - slack) & ((t <= b + slack) if i == count - 1 else (t < b - slack))
        for i, (a, b) in enumerate(pairwise(edges))
    ]
    return [r for r in rows if np.sum(r) > 1]
