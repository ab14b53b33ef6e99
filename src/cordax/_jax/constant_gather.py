"""`take`: entries of an array at constant indices.

`x[index]` with a NumPy array compares, adds and converts indices in the program. XLA moves these
operations out of the time loop before it recognises them as constants. Expressions that depend on
them are then compiled and computed once per use, for example in a machine and in the controller
that holds it."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import features

_IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS


def take(x, index, axis: int = 0):
    """Return `jnp.take(x, index, axis)` for a NumPy array `index` (...) of entries >= 0."""
    index, n = np.asarray(index), x.shape[axis]
    if index.size and not (0 <= index.min() and index.max() < n):
        raise IndexError(f"places {index.min()} to {index.max()} of {n}")
    if not features.is_on("constant gather"):
        return jnp.take(x, index, axis)
    places = index.reshape(-1)
    if not np.array_equal(places, np.arange(n)):
        others = tuple(i for i in range(x.ndim) if i != axis)
        sizes = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
        numbers = lax.GatherDimensionNumbers(others, (axis,), (axis,))
        x = lax.gather(x, places[:, None].astype(np.int32), numbers, sizes, mode=_IN_BOUNDS)
    return x.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def entries(A, i, j):
    """Return `A[i, j]` of a matrix, for NumPy arrays of indices that broadcast."""
    return take(A.reshape(-1), np.asarray(i) * A.shape[1] + np.asarray(j))
