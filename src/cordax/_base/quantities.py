"""Conversion of texts with units to SI: "20 mm", "30 deg", "1.5 kN/m"."""

import math
import re

from .checks import require

#: basic units: factor to SI and powers of (m, kg, s, rad)
_UNITS: dict[str, tuple[float, tuple[int, int, int, int]]] = {
    "m": (1.0, (1, 0, 0, 0)),
    "g": (1e-3, (0, 1, 0, 0)),
    "t": (1e3, (0, 1, 0, 0)),
    "s": (1.0, (0, 0, 1, 0)),
    "min": (60.0, (0, 0, 1, 0)),
    "h": (3600.0, (0, 0, 1, 0)),
    "rad": (1.0, (0, 0, 0, 1)),
    "deg": (math.pi / 180.0, (0, 0, 0, 1)),
    "rpm": (math.pi / 30.0, (0, 0, -1, 1)),
    "Hz": (1.0, (0, 0, -1, 0)),
    "N": (1.0, (1, 1, -2, 0)),
    "Pa": (1.0, (-1, 1, -2, 0)),
    "J": (1.0, (2, 1, -2, 0)),
    "W": (1.0, (2, 1, -3, 0)),
}
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z%].*)")


def is_quantity(text: str) -> bool:
    """Return whether a text is a number followed by text that may be a unit."""
    return _QUANTITY.fullmatch(text) is not None


def quantity(where: str, text: str, unit: str = "") -> float:
    """Convert a text such as "20 mm" to a number in SI units.

    Raises `ValueError` if `unit` is given and has another dimension. `where`: name in errors."""
    match = _QUANTITY.fullmatch(text)
    assert match is not None
    factor, powers = parsed(where, match[2])
    if unit:
        wanted = parsed(where, unit)[1]
        # angles are dimensionless, but Hz (turns per second) is not accepted for rad/s
        angles = powers[3] == wanted[3] or (powers[3] == 0 and "Hz" not in match[2])
        require(powers[:3] == wanted[:3] and angles, where, text, f"a quantity in {unit}")
    return float(match[1]) * factor


def parsed(where: str, unit: str) -> tuple[float, tuple[int, ...]]:
    """Return the factor to SI and the powers of (m, kg, s, rad) of a unit such as `N m`, `kg m^2`
    or `1/m`."""
    whole, powers = 1.0, [0, 0, 0, 0]
    sign = 1
    for mark, name, power in re.findall(r"([/*· ]?)\s*([A-Za-z]+|1|%|-)(?:\^?(-?\d+))?", unit):
        sign = -1 if mark == "/" else sign if mark else 1
        if name in ("1", "-"):
            continue
        if name == "%":
            whole *= 0.01
            continue
        known = _known(name)
        require(known is not None, where, repr(unit), f"units of {', '.join(_UNITS)}")
        assert known is not None
        exponent = sign * int(power or 1)
        whole *= known[0] ** exponent
        powers = [a + exponent * b for a, b in zip(powers, known[1], strict=True)]
    return whole, tuple(powers)


def _known(name: str) -> tuple[float, tuple[int, ...]] | None:
    for prefix, scale in _PREFIXES.items():
        base = name.removeprefix(prefix)
        if name.startswith(prefix) and base in _UNITS:
            factor, powers = _UNITS[base]
            return scale * factor, powers
    return None
