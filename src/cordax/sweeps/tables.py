"""Tables of variants: columns of parameter values by name, with one row for each variant."""

from collections.abc import Mapping, Sequence

import numpy as np

from .._base.checks import require, require_whole
from ..math import sampling

Table = dict[str, np.ndarray]


def grid(values: Mapping[str, Sequence[float]]) -> Table:
    """Table of all combinations of values, given by name. Its columns have shape (n,) each; the
    last name changes fastest."""
    axes = {name: _numbers(name, column) for name, column in values.items()}
    require(len(axes) > 0, "values", values, "at least one name with its values")
    for name, axis in axes.items():
        require(axis.ndim == 1, name, f"shape {axis.shape}", "a list of numbers")
    columns = np.meshgrid(*axes.values(), indexing="ij")
    return {name: x.ravel() for name, x in zip(axes, columns, strict=True)}


def latin_hypercube(
    ranges: Mapping[str, tuple[float, float]],
    count: int,
    *,
    seed: int = 0,
    log: bool | Sequence[str] = False,
) -> Table:
    """Table of `count` random rows, spread evenly (Latin hypercube sampling).

    Each range (low, high) is divided into `count` equal parts, and each part contains one row.
    `log`: divide ranges by equal ratios, True for all of them, or a list of names."""
    require_whole("count", count, 1)
    require(len(ranges) > 0, "ranges", ranges, "at least one name with its range")
    table = {}
    shares = sampling.latin_hypercube(count, len(ranges), seed).T
    for share, (name, ends) in zip(shares, ranges.items(), strict=True):
        pair = _numbers(name, ends)
        ratios = log if isinstance(log, bool) else name in log
        fits = pair.shape == (2,) and pair[0] < pair[1] and (pair[0] > 0 or not ratios)
        require(fits, name, ends, _RANGE[ratios])
        low, high = np.log(pair) if ratios else pair
        column = low + share * (high - low)
        table[name] = np.exp(column) if ratios else column
    return table


_RANGE = {False: "(low, high) with low < high", True: "(low, high) with 0 < low < high"}


def variation(text: str) -> tuple[str, np.ndarray]:
    """Parse `name=from:to:count`, `name=from:to:count:log` or `name=1,2,5` to a name and its
    values."""
    name, sign, values = (part.strip() for part in text.partition("="))
    expected = "name=from:to:count, name=from:to:count:log or name=value,value"
    require(sign == "=" and name != "" and values != "", "vary", repr(text), expected)
    if ":" not in values:
        return name, _numbers(f"vary {name}", [_number(text, x) for x in values.split(",")])
    low, high, count, kind, *more = [*values.split(":"), "", ""]
    known = kind in ("", "lin", "log") and more in ([], [""], ["", ""]) and count != ""
    require(known, "vary", repr(text), expected)
    require(count.strip().isdigit() and int(count) > 0, "vary", repr(text), "a whole count > 0")
    ends = _number(text, low), _number(text, high)
    if kind == "log":
        require(min(ends) > 0, "vary", repr(text), "ends > 0 for equal ratios (log)")
        return name, np.geomspace(*ends, int(count))
    return name, np.linspace(*ends, int(count))


def checked(table: Mapping[str, Sequence[float]]) -> Table:
    """Check that columns are finite and of equal length; return arrays (n,) or (n, ...)."""
    ok = isinstance(table, Mapping) and len(table) > 0
    require(ok, "vary", table, "a table: name to a column of numbers, such as grid({...})")
    columns = {name: _numbers(name, column) for name, column in table.items()}
    lengths = {name: len(x) if x.ndim else 0 for name, x in columns.items()}
    equal = len(set(lengths.values())) == 1 and 0 not in lengths.values()
    require(equal, "vary", lengths, "columns of one length, at least one row; grid({...}) combines")
    return columns


def _numbers(name: str, values) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    require(bool(np.all(np.isfinite(numbers))), name, values, "finite numbers")
    return numbers


def _number(text: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        require(False, "vary", repr(text), f"numbers, not {word!r}")
        raise
