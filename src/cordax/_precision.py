"""Floating-point precision: cordax never changes it behind the user's back."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

_warned = False


def enable_x64(on: bool = True) -> None:
    """Switch JAX to 64-bit floats. Called by the command line, the tests and the notebooks, never
    on import."""
    jax.config.update("jax_enable_x64", on)


def as_float_array(x: Any) -> Any:
    """A strongly typed float array of the current default precision.

    Strong typing matters: a Python float or a weakly typed array as a field retraces a jitted
    function for every value and gets no gradient. Tracers and float arrays keep their dtype."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating) and not x.weak_type:
        return x
    if type(x) is object:  # a placeholder put there by a JAX transformation
        return x
    if isinstance(x, (int, float, np.ndarray, np.generic)):
        # by way of NumPy: JAX converts a Python number by a computation, four times as slow
        return jnp.asarray(np.asarray(x, dtype=jnp.result_type(float)))
    return jnp.asarray(x, dtype=float)


def float_field(**kwargs) -> Any:
    """A module field holding a physical number or array of numbers, converted by
    `as_float_array`."""
    return eqx.field(converter=as_float_array, **kwargs)


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
