"""Checks of user input. Every message names the field, the given value and the expected value."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def require(ok: bool | np.bool_, field: str, given, expected: str) -> None:
    """Raise `ValueError` unless `ok`."""
    if not ok:
        raise ValueError(f"{field}: got {describe(given)}, expected {expected}")


def known_values(x) -> np.ndarray | None:
    """Return the values of `x`, or None if they are traced, so that only shapes can be checked."""
    if isinstance(x, Tracer) or not isinstance(x, (jax.Array, np.ndarray, float, int)):
        return None
    return np.asarray(x)


def require_values(field: str, good: Callable[..., Any], *numbers, expected: str) -> None:
    """Raise `ValueError` unless `good(*numbers)` holds.

    `good` is a function of arrays that uses only operators that NumPy and JAX share. If numbers are
    traced, nothing is raised; inside `hidden_checks` the condition is added to its list."""
    values = [known_values(x) for x in numbers]
    if all(x is not None for x in values):
        require(bool(good(*values).all()), field, numbers[0], expected)
        return
    notes = _hidden.get()
    if notes is not None and all(isinstance(x, (jax.Array, np.ndarray, float)) for x in numbers):
        hidden = [jax.lax.stop_gradient(jnp.asarray(x)) for x in numbers]
        notes.append(jnp.all(good(*hidden)))


_hidden: ContextVar[list | None] = ContextVar("hidden", default=None)


@contextlib.contextmanager
def hidden_checks():
    """Context with a list that collects the checks of traced numbers made inside it.

    Entries are traced booleans, true if the check has passed."""
    token = _hidden.set([])
    try:
        yield _hidden.get()
    finally:
        _hidden.reset(token)


def require_positive(field: str, x, *, zero_allowed: bool = False) -> None:
    """Raise unless every entry is finite and positive (or, if allowed, zero)."""
    # comparisons with NaN are false; a non-negative number below infinity is finite
    good = (lambda x: (x >= 0) & (x < math.inf)) if zero_allowed else _positive
    expected = "finite values >= 0" if zero_allowed else "finite values > 0"
    require_values(field, good, x, expected=expected)


def _positive(x):
    return (x > 0) & (x < math.inf)


def require_finite(field: str, x) -> None:
    """Raise unless every entry is finite."""
    require_values(field, lambda x: abs(x) < math.inf, x, expected="finite values")


def require_direction(field: str, x) -> None:
    """Raise unless `x`, shape (3,), is a vector other than zero."""
    require_shape(field, x, (3,))
    require_values(field, lambda x: (x * x).sum() > 0, x, expected="a vector other than zero")


def require_unit(field: str, x) -> None:
    """Raise unless `x`, shape (3,), has length 1, up to the accuracy of single precision."""
    require_shape(field, x, (3,))
    require_values(field, _is_unit, x, expected="a unit vector")


def _is_unit(x):
    return abs((x * x).sum() - 1.0) < 2e-5


def require_rotation(field: str, x) -> None:
    """Raise unless `x` is a rotation matrix, shape (3, 3), to the accuracy of single precision."""
    require_shape(field, x, (3, 3))
    require_finite(field, x)
    expected = "a rotation: orthogonal columns of length 1, determinant 1"
    require_values(field, _is_rotation, x, expected=expected)


def _is_rotation(R):
    gram = (R[:, :, None] * R[:, None, :]).sum(0) - np.eye(3)
    a, b, c = R.T
    after, before = np.array([1, 2, 0]), np.array([2, 0, 1])  # no lists: R may be traced
    crossed = a[after] * b[before] - a[before] * b[after]
    return (abs(gram).max() < 1e-5) & ((crossed * c).sum() > 0)


def require_inertia(field: str, x) -> None:
    """Raise unless `x` is an inertia matrix, shape (3, 3): symmetric, with non-negative principal
    moments, each of which is at most the sum of the other two."""
    require_symmetric(field, x)
    expected = "principal moments >= 0, each at most the sum of the other two"
    require_values(field, _is_inertia, x, expected=expected)


def require_symmetric(field: str, x) -> None:
    """Raise unless `x`, shape (3, 3), is finite and symmetric."""
    require_shape(field, x, (3, 3))
    require_finite(field, x)
    share = 1e-9 if getattr(x, "dtype", None) == np.float64 else 1e-5
    symmetric = lambda J: abs(J - J.T).max() <= share * abs(J).max()
    require_values(field, symmetric, x, expected="a symmetric matrix")


def _is_inertia(J):
    # the second moment matrix of the mass, tr(J)/2 - J, has no negative eigenvalue if its trace,
    # the sum of its principal minors and its determinant are not negative
    half = 0.5 * (J[0, 0] + J[1, 1] + J[2, 2])
    E = half * np.eye(3) - J
    after, before = np.array([1, 2, 0]), np.array([2, 0, 1])
    minors = E[after, after] * E[before, before] - E[after, before] * E[before, after]
    a, b, c = E
    determinant = (a * (b[after] * c[before] - b[before] * c[after])).sum()
    size = 1e-6 * abs(half)
    return (half >= 0) & (minors.sum() >= -size * half) & (determinant >= -size * half * half)


def require_shape(field: str, x, *shapes: tuple[int, ...]) -> None:
    """Raise unless the shape of `x` is one of `shapes`."""
    shape = getattr(x, "shape", None)
    if shape is not None:
        expected = " or ".join("a scalar" if s == () else f"shape {s}" for s in shapes)
        require(shape in shapes, field, f"shape {shape}", expected)


def require_axes(field: str, x, count: int, expected: str) -> None:
    """Raise unless the array `x` has `count` axes."""
    shape = getattr(x, "shape", None)
    if shape is not None:
        require(len(shape) == count, field, f"shape {shape}", expected)


def require_one_or_each(field: str, x) -> None:
    """Raise unless `x` is one number for all parts or one for each part: shape () or (n,)."""
    shape = getattr(x, "shape", ())
    fits = len(shape) == 0 or (len(shape) == 1 and shape[0] > 0)
    require(fits, field, f"shape {shape}", "one number, or one for each")


def require_known(field: str, name: str, names: Iterable[str]) -> None:
    """Raise unless `name` is one of `names`."""
    names = tuple(names)
    known = isinstance(name, str) and name in names
    require(known, field, _Printed(repr(name)), "one of " + ", ".join(names))


def require_instance(field: str, x, *kinds: type) -> None:
    """Raise unless `x` is an instance of one of the classes `kinds`."""
    require(isinstance(x, kinds), field, x, " or ".join(_named(kind) for kind in kinds))


def require_whole(field: str, x, least: int) -> None:
    """Raise unless `x` is a whole number, at least `least` and below 2^31."""
    whole = isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    expected = f"a whole number >= {least}" + (", below 2^31" if whole and x > least else "")
    require(whole and least <= x < 2**31, field, x, expected)


def require_number(field: str, x, *, positive: bool = True) -> None:
    """Raise unless `x` is one finite, concrete number, and > 0 if `positive`."""
    number = is_number(x) and math.isfinite(x)
    expected = "a finite number > 0" if positive else "a finite number"
    require(number and (x > 0 or not positive), field, x, expected)


def is_number(x) -> bool:
    """Return whether `x` is one real number of Python or NumPy within the range of a float."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.floating, np.integer)):
        return False
    return not isinstance(x, int) or abs(x) < 2**1023


def _named(kind: type) -> str:
    """Return the name of a class with an article, followed by the names of its subclasses, so that
    an error message lists the possible choices."""
    under = [k.__name__ for k in kind.__subclasses__() if not k.__name__.startswith("_")]
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return f"{article} {kind.__name__}" + (f" ({', '.join(under)})" if under else "")


class _Printed(str):
    """Text for `describe` that is already formatted."""


def describe(x) -> str:
    """Return a description of a given value, at most one line long."""
    if isinstance(x, _Printed):
        text = str(x)
    elif isinstance(x, (jax.Array, np.ndarray)) and not isinstance(x, Tracer):
        text = str(np.asarray(x).tolist()) if x.size <= 12 else f"an array of shape {x.shape}"
    else:
        text = str(x)
    text = " ".join(text.split()) or "an empty text"
    if len(text) > 200 and dataclasses.is_dataclass(x) and not isinstance(x, type):
        return type(x).__name__  # a machine or another part: its name is more useful
    return text if len(text) <= 200 else text[:197] + "..."
