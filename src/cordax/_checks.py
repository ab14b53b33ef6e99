"""Checks of user input: every message names the field, what was given and what is expected."""

from collections.abc import Iterable

import jax
import numpy as np
from jax.core import Tracer


def require(ok: bool, field: str, given, expected: str) -> None:
    """Raise `ValueError` unless `ok`."""
    if not ok:
        raise ValueError(f"{field}: got {_describe(given)}, expected {expected}")


def known_values(x) -> np.ndarray | None:
    """The numbers in `x`, or None where a JAX transformation hides them (then only shapes can be
    checked)."""
    if isinstance(x, Tracer) or not isinstance(x, (jax.Array, np.ndarray, float, int)):
        return None
    return np.asarray(x)


def require_positive(field: str, x, *, zero_allowed: bool = False) -> None:
    """Raise unless every entry is finite and positive (or, if allowed, zero)."""
    values = known_values(x)
    if values is not None:
        ok = np.all(np.isfinite(values)) and np.all(values >= 0 if zero_allowed else values > 0)
        require(bool(ok), field, x, "finite values >= 0" if zero_allowed else "finite values > 0")


def require_finite(field: str, x) -> None:
    values = known_values(x)
    if values is not None:
        require(bool(np.all(np.isfinite(values))), field, x, "finite values")


def require_shape(field: str, x, *shapes: tuple[int, ...]) -> None:
    """Raise unless the shape of `x` is one of `shapes`."""
    shape = getattr(x, "shape", None)
    if shape is not None:
        expected = " or ".join("a scalar" if s == () else f"shape {s}" for s in shapes)
        require(shape in shapes, field, f"shape {shape}", expected)


def require_known(field: str, name: str, names: Iterable[str]) -> None:
    """Raise unless `name` is one of `names`."""
    names = tuple(names)
    require(name in names, field, repr(name), "one of " + ", ".join(names))


def _describe(x) -> str:
    if isinstance(x, (jax.Array, np.ndarray)):
        return str(np.asarray(x).tolist()) if x.size <= 12 else f"an array of shape {x.shape}"
    return str(x)
