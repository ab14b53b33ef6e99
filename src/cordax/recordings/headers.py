"""Names and units in the column headers of logs: `angle [deg]`, `Time (ms)`, `t / s`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .._base.checks import require
from .._base.quantities import parsed

TIME = "time"
#: names of time columns, in lower case
TIME_NAMES = ("time", "t", "timestamp", "time_stamp", "elapsed", "elapsed_time", "zeit")
#: spellings of units that `quantities` does not know
_SPELLINGS = {
    "°": "deg", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad",
    "sec": "s", "second": "s", "seconds": "s", "msec": "ms", "milliseconds": "ms", "usec": "us",
    "meter": "m", "metre": "m", "meters": "m", "metres": "m", "newton": "N", "newtons": "N",
    "Nm": "N m", "hz": "Hz",
}  # fmt: skip
_SIGNS = str.maketrans({"µ": "u", "μ": "u", "²": "^2", "³": "^3", "·": " ", "*": " ", "⋅": " "})
#: SI units of quantities by their powers of (m, kg, s, rad)
_SI = {
    (0, 0, 1, 0): "s", (1, 0, 0, 0): "m", (0, 0, 0, 1): "rad", (0, 1, 0, 0): "kg",
    (1, 0, -1, 0): "m/s", (1, 0, -2, 0): "m/s^2", (0, 0, -1, 1): "rad/s", (0, 0, -2, 1): "rad/s^2",
    (1, 1, -2, 0): "N", (2, 1, -2, 0): "N m", (0, 1, -2, 0): "N/m", (-1, 1, -2, 0): "Pa",
    (0, 0, -1, 0): "Hz", (0, 0, 0, 0): "1",
}  # fmt: skip


class Column(NamedTuple):
    """A column of a table: the `header` as written, the `name` without its unit, the `unit` in SI
    (None if the header has none, "?" if it is unknown) and the `factor` that converts values to
    SI units."""

    header: str
    name: str
    unit: str | None
    factor: float

    @property
    def description(self) -> str | None:
        """Text on the interpretation of the header; None if the header is the name alone."""
        if self.unit == "?":
            return f"{self.header!r} is {self.name}: unit not known, values unchanged"
        if self.unit is not None and self.factor != 1.0:
            return f"{self.header!r} is {self.name} [{self.unit}], times {self.factor:.9g}"
        if self.unit is not None:
            return f"{self.header!r} is {self.name} [{self.unit}]"
        return None if self.header == self.name else f"{self.header!r} is {self.name}"


def read_headers(
    where: str,
    headers: Sequence[str],
    units: Sequence[str] | None = None,
    *,
    needs_time: bool = True,
) -> list[Column]:
    """Read column headers; one of them becomes the column `time` [s].

    `units`: texts of a separate row of units, if the table has one. Raises `ValueError`, whose
    message begins with `where`, without a time column (if one is needed), with an unknown unit of
    time, and for names that appear twice."""
    headers = [header.strip() for header in headers]
    columns = [_column(h, "" if units is None else units[i]) for i, h in enumerate(headers)]
    times = [i for i, c in enumerate(columns) if c.name == TIME]
    times = times or [i for i, c in enumerate(columns) if c.name.lower() in TIME_NAMES]
    listed = ", ".join(headers)
    found = len(times) > 0 or not needs_time
    require(found, where, listed, "a column named 'time' [s], Time, t or timestamp")
    several = ", ".join(headers[i] for i in times)
    require(len(times) <= 1, where, f"the time columns {several}", "one time column")
    for i in times:
        known = columns[i].unit in (None, "s")
        require(known, where, repr(columns[i].header), "a time in s, ms, us, ns, min or h")
        columns[i] = columns[i]._replace(name=TIME)
    names = [c.name for c in columns]
    twice = sorted({n for n in names if names.count(n) > 1})
    require(not twice, where, f"{', '.join(twice)} more than once", "different column names")
    return columns


def interpretation(columns: Sequence[Column]) -> dict[str, str]:
    """Notes for `Recording.about` on headers that are more than names: `interpretation`, how they
    were read, and `units`, the SI units of the columns that have one."""
    lines = [c.description for c in columns if c.description is not None]
    if not lines:
        return {}
    units = [f"{c.name} {c.unit}" for c in columns if c.unit not in (None, "?")]
    notes = {"interpretation": "; ".join(lines)}
    return notes | ({"units": ", ".join(units)} if units else {})


def is_unit(text: str) -> bool:
    """Whether a text is a unit that can be converted to SI units."""
    return _converted(text) is not None


def _column(header: str, unit: str) -> Column:
    name, text = header, unit.strip().strip("[]()")
    match = re.fullmatch(r"(.*\S)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))", header)
    slash = re.fullmatch(r"([^/]*[^/\s])\s*/\s*([^/]+)", header)
    if match:
        inside = (match[2] or match[3] or "").strip()
        index = match[2] is not None and re.fullmatch(r"[\d,\s]*", inside)
        if not index and (match[2] is not None or is_unit(inside)):
            name, text = match[1], inside
    elif slash and is_unit(slash[2]):
        name, text = slash[1], slash[2]
    if not text:
        return Column(header, name, None, 1.0)
    converted = _converted(text)
    if converted is None:
        return Column(header, name, "?", 1.0)
    return Column(header, name, *converted)


def _converted(text: str) -> tuple[str, float] | None:
    """SI unit and conversion factor of a unit, or None if it is unknown. A single `g` counts as
    unknown, because it may be gram or standard gravity."""
    plain = text.translate(_SIGNS).strip()
    words = re.split(r"([\s/^()-]+)", plain)
    spelled = "".join(_SPELLINGS.get(word, word) for word in words)
    if plain == "g" or not spelled or not re.fullmatch(r"[A-Za-z%1][\w\s/^%()-]*|-", spelled):
        return None
    try:
        scale, powers = parsed("unit", spelled)
    except ValueError:
        return None
    return _SI.get(powers, "SI"), scale  # pyright: ignore[reportArgumentType, reportCallIssue]
