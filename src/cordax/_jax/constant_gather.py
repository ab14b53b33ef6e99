"""`take` and `add_at`: gather entries of an array at constant indices, and sum rows by index.

`x[index]` with a NumPy array compares, adds and converts indices in the program. XLA moves these
operations out of the time loop before it recognises them as constants. Expressions that depend on
them are then compiled and computed once per use, for example in a machine and in the controller
of this machine. The reverse-mode derivative of `x[index]` is a scatter operation, which XLA's CPU
backend compiles slowly and never into one function with the loop around it. Here the two functions
are transposes of each other, and both are gather operations."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import features

_IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS
#: numbers of rows that one operation of `add_at` may sum
_WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
#: cost of one additional operation of `add_at`, in rows
_OPERATION = 12


def take(x, index, axis: int = 0):
    """Return `jnp.take(x, index, axis)` for a NumPy array `index` (...) of entries >= 0."""
    index, n = np.asarray(index), x.shape[axis]
    if index.size and not (0 <= index.min() and index.max() < n):
        raise IndexError(f"places {index.min()} to {index.max()} of {n}")
    if not features.is_on("constant gather"):
        return jnp.take(x, index, axis)
    places = index.reshape(-1)
    if not np.array_equal(places, np.arange(n)):
        x = _take_p.bind(jnp.asarray(x), index=tuple(places.tolist()), axis=axis)
    return x.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def add_at(x, index, size: int):
    """Return sums (size, ...) of the rows of `x` (k, ...) with the same entry of a NumPy array
    `index` (k,); rows with entries >= size are dropped."""
    places = np.minimum(np.asarray(index, int), size)
    if places.shape != x.shape[:1] or places.min(initial=0) < 0:
        raise IndexError(f"places {places} for an array {x.shape}")
    if not features.is_on("constant gather"):
        return jnp.zeros((size, *x.shape[1:]), x.dtype).at[places].add(x, mode="drop")
    return _sum_p.bind(jnp.asarray(x), index=tuple(places.tolist()), size=size, axis=0)


def entries(A, i, j):
    """Return `A[i, j]` of a matrix, for NumPy arrays of indices that broadcast."""
    return take(A.reshape(-1), np.asarray(i) * A.shape[1] + np.asarray(j))


def _gather(x, index, axis: int):
    others = tuple(i for i in range(x.ndim) if i != axis)
    sizes = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    numbers = lax.GatherDimensionNumbers(others, (axis,), (axis,))
    places = np.asarray(index, np.int32)[:, None]
    return lax.gather(x, places, numbers, sizes, mode=_IN_BOUNDS)


def _sums(x, index, size: int, axis: int):
    if not size or not len(index):
        return jnp.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    for table in _tables(index, size):
        x = functools.reduce(lax.add, [_listed(x, column, axis) for column in table.T])
    return x


def _listed(x, places: np.ndarray, axis: int):
    """Gather the rows at `places` (k,); rows are zero where `places` is -1."""
    rows = _gather(x, np.maximum(places, 0), axis)
    if (places >= 0).all():
        return rows
    mask = (places >= 0).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    return jnp.where(mask, rows, jnp.zeros((), x.dtype))


@functools.lru_cache(maxsize=1024)
def _tables(index: tuple[int, ...], size: int) -> list[np.ndarray]:
    """Return, for each operation, indices (groups, width) of the rows that it sums; -1 for none.

    Large groups are summed in several parts, and the next operation sums these parts."""
    members: list[list[int]] = [[] for _ in range(size)]
    for place, group in enumerate(index):
        if group < size:
            members[group].append(place)
    counts = np.array([len(m) for m in members])
    tables = []
    for width in _widths(tuple(counts.tolist())):
        pieces, following = [], []
        for rows in members:
            parts = [rows[k : k + width] for k in range(0, max(len(rows), 1), width)]
            following.append(list(range(len(pieces), len(pieces) + len(parts))))
            pieces += [part + [-1] * (width - len(part)) for part in parts]
        tables.append(np.array(pieces, int).reshape(-1, width))
        members = following
    return tables


@functools.lru_cache(maxsize=1024)
def _widths(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the widths of operations that minimise the work, for groups of `counts` rows."""
    sizes = np.maximum(np.array(counts), 1)
    most = int(sizes.max())
    cost = lambda widths: _work(sizes, widths)
    choices = [(most,)] if most <= _WIDTHS[-1] else []
    choices += [(w, *_widths(tuple((-(-sizes // w)).tolist()))) for w in _WIDTHS[1:] if w < most]
    return min(choices, key=cost)


def _work(sizes: np.ndarray, widths: tuple[int, ...]) -> int:
    work = 0
    for width in widths:
        sizes = -(-sizes // width)
        work += int(sizes.sum()) * width + _OPERATION
    return work


def _batched(primitive):
    def rule(args, dims, *, axis, **kwargs):
        (x,), (dim,) = args, dims
        return primitive.bind(x, axis=axis + (dim <= axis), **kwargs), dim

    return rule


def _linear(primitive, transposed):
    """Register the derivatives of a linear primitive with one operand."""

    def jvp(primals, tangents, **kwargs):
        return primitive.bind(*primals, **kwargs), primitive.bind(*tangents, **kwargs)

    def transpose(cotangent, operand, **kwargs):
        if type(cotangent) is ad.Zero:
            return [ad.Zero(operand.aval)]
        return [transposed(cotangent, operand, **kwargs)]

    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose


_take_p, _sum_p = Primitive("constant_gather"), Primitive("constant_sum")
#: primitives with the functions that implement them
IMPLEMENTATIONS = {_take_p: _gather, _sum_p: _sums}
for _p, _function in IMPLEMENTATIONS.items():
    _p.def_impl(_function)
    batching.primitive_batchers[_p] = _batched(_p)
    mlir.register_lowering(_p, mlir.lower_fun(_function, multiple_results=False))


def _resized(x, size: int, axis: int):
    return x.update(shape=(*x.shape[:axis], size, *x.shape[axis + 1 :]))


_take_p.def_abstract_eval(lambda x, *, index, axis: _resized(x, len(index), axis))
_sum_p.def_abstract_eval(lambda x, *, index, size, axis: _resized(x, size, axis))


def _sum_of_cotangents(cotangent, operand, *, index, axis):
    size = operand.aval.shape[axis]
    return _sum_p.bind(cotangent, index=index, size=size, axis=axis)


def _taken_cotangents(cotangent, operand, *, index, size, axis):
    # rows that were dropped have index `size`
    if size in index:
        shape = (*cotangent.shape[:axis], 1, *cotangent.shape[axis + 1 :])
        cotangent = jnp.concatenate([cotangent, jnp.zeros(shape, cotangent.dtype)], axis)
    return _take_p.bind(cotangent, index=index, axis=axis)


_linear(_take_p, _sum_of_cotangents)
_linear(_sum_p, _taken_cotangents)
