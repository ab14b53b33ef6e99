"""Floating-point precision, which cordax never changes without a call by the user."""

import dataclasses
import warnings
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .checks import require_finite, require_shape

_warned = False


def enable_x64(on: bool = True) -> None:
    """Switch JAX to 64-bit floats, or back to 32-bit floats if `on` is False.

    The command line, the tests and the notebooks call this function; importing cordax does not."""
    jax.config.update("jax_enable_x64", on)


def as_float_array(x: Any, name: str = "value") -> Any:
    """Convert `x` to a strongly typed float array of the current default precision.

    Strong typing matters: with a Python float or a weakly typed array as a field, a jitted function
    is traced again for every value and gives no gradient. Tracers and float arrays keep their
    dtype. Raises `ValueError` with the `name` of the field if `x` is not numeric."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating) and not x.weak_type:
        return x
    if type(x) is object:  # a placeholder put there by a JAX transformation
        return x
    if isinstance(x, (jax.Array, list, tuple)) and _holds_tracers(x):
        _refuse_unless(_is_real(jnp.result_type(*jax.tree.leaves(x))), name, x)
        return jnp.asarray(x, dtype=float)
    try:
        # by NumPy: JAX converts a Python number by a computation, which is four times as slow
        values = np.asarray(x)
    except (ValueError, TypeError, OverflowError):
        values = None
    _refuse_unless(values is not None and _is_real(values.dtype) and not _has_bool(x), name, x)
    # with an explicit dtype: otherwise JAX compiles a program for every shape
    return jnp.asarray(values, dtype=jnp.result_type(float))


def finite_array(name: str, x: Any, *shapes: tuple[int, ...]) -> Any:
    """Convert `x` to a float array. Raises `ValueError` unless its shape is one of `shapes` and all
    entries are finite."""
    x = as_float_array(x, name)
    require_shape(name, x, *shapes)
    require_finite(name, x)
    return x


def _is_real(dtype) -> bool:
    return jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)


def _has_bool(x) -> bool:
    """Return whether `x` contains a bool, which NumPy would convert to a number."""
    if isinstance(x, (list, tuple)):
        return any(map(_has_bool, x))
    return isinstance(x, (bool, np.bool_))


def _holds_tracers(x) -> bool:
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(x))


def _refuse_unless(ok: bool, name: str, given, expected="a number or an array of numbers") -> None:
    if not ok:
        text = repr(given)
        text = text if len(text) <= 80 else text[:77] + "..."
        raise ValueError(f"{name}: got {text}, expected {expected}")


class Number:
    """Converter of a numeric field of a module, which names the field in errors.

    If `checked`, values must be finite and have the shape of the annotation, if it fixes one."""

    def __init__(self, checked: bool, optional: bool):
        self.name, self.shape, self.checked, self.optional = "value", None, checked, optional

    def declare(self, name: str, annotation) -> None:
        self.name = name
        # the first type of a union such as `Float[Array, ""] | None`
        annotation = next(iter(get_args(annotation)), annotation)
        dims = str(getattr(annotation, "dim_str", "?")).split()
        if all(d.isdigit() for d in dims):
            self.shape = tuple(map(int, dims))

    def __call__(self, x: Any) -> Any:
        if x is None and self.optional:
            return None
        array = as_float_array(x, self.name)
        if not self.checked:
            return array
        shape = getattr(array, "shape", None)
        if self.shape is not None and shape is not None and shape != self.shape:
            wanted = "a scalar" if self.shape == () else f"shape {self.shape}"
            _refuse_unless(False, self.name, _Text(f"shape {shape}"), wanted)
        if isinstance(array, jax.Array) and not isinstance(array, Tracer):
            _refuse_unless(bool(np.all(np.isfinite(array))), self.name, x, "finite values")
        return array


class _Text(str):
    """Text that is printed without quotation marks."""

    __repr__ = str.__str__


class _DeclaredField(dataclasses.Field):
    """Dataclass field that passes its name and annotation to its converter."""

    __slots__ = ()

    def __set_name__(self, owner, name):
        annotation = vars(owner).get("__annotations__", {}).get(name)
        self.metadata["converter"].declare(name, annotation)


def declared_field(converter, unit: str = "", **kwargs) -> Any:
    """Module field whose converter receives the name and annotation of the field by
    `declare(name, annotation)`. `unit`: unit of its values, such as "N/m"."""
    field = eqx.field(converter=converter, metadata={"unit": unit}, **kwargs)
    field.__class__ = _DeclaredField
    return field


def float_field(*, unit: str = "", checked: bool = True, **kwargs) -> Any:
    """Module field for a physical quantity, converted by `as_float_array`.

    None is accepted if it is the default.

    **Arguments:**

    - `unit`: SI unit such as "N/m", or "-" for a dimensionless quantity. It is shown in tables;
      texts such as "20 mm" in machine files must have this dimension.
    - `checked`: reject NaN, infinity and shapes other than that of the annotation, if it fixes one
      as `Float[Array, ""]` and `Float[Array, " 3"]` do."""
    optional = kwargs.get("default", 0.0) is None
    return declared_field(Number(checked, optional), unit, **kwargs)


def declare_units(**units: str):
    """Decorator that declares units of a function's arguments: `@declare_units(radius="m")`."""

    def mark(function):
        function.units = units
        return function

    return mark


def declared_units(make: Any) -> dict[str, str]:
    """Return units of the fields of a module class or of the arguments of a function, by name."""
    if not isinstance(make, type):
        return getattr(make, "units", {})
    fields = dataclasses.fields(make) if dataclasses.is_dataclass(make) else ()
    return {f.name: f.metadata["unit"] for f in fields if f.metadata.get("unit")}


def warn_if_single(dtype, what: str) -> None:
    """Warn once per process when a stiff machine is simulated in single precision."""
    global _warned
    if jnp.dtype(dtype).itemsize < 8 and not _warned:
        _warned = True
        warnings.warn(
            f"{what} is simulated in {jnp.dtype(dtype).name}. Stiff cables lose most of their "
            f"digits there; "
            "call cordax.enable_x64() before creating arrays unless this is intended.",
            stacklevel=4,
        )
