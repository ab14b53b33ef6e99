"""The time loop, with a choice of what reverse-mode differentiation stores."""

import math

import jax
import jax.numpy as jnp
from jax import lax

ADJOINTS = ("scan", "checkpointed", "forward")


def loop(body, carry, n: int, adjoint: str):
    """`lax.scan(body, carry, arange(n))` under one of `ADJOINTS`."""
    if adjoint == "scan":
        return lax.scan(body, carry, jnp.arange(n))
    if adjoint == "forward":
        return _forward(body, carry, n)
    return _checkpointed(body, carry, n)


#: bytes of stored rows up to which `flat` keeps them all
_FLAT_BYTES = 4_000_000


def fits_flat(keep, carry, steps: int) -> bool:
    """Whether what is to `keep` after every one of so many steps is little."""
    shapes = jax.tree.leaves(jax.eval_shape(keep, carry))
    return steps * sum(x.size * x.dtype.itemsize for x in shapes) <= _FLAT_BYTES


def flat(step, keep, carry, n: int, every: int):
    """`n` times `every` steps, and what is to `keep` of the carry after each `every` of them, in
    one loop that keeps it after every step: two nested loops take five times as long to compile in
    reverse mode."""

    def one(carry, i):
        carry, _ = step(carry, i)
        return carry, keep(carry)

    carry, rows = lax.scan(one, carry, jnp.arange(n * every))
    return carry, jax.tree.map(lambda x: x[every - 1 :: every], rows)


def counted(body, carry, n: int, count):
    """`lax.scan(body, carry, arange(count))` for a `count` that is data, at most `n`: results of
    `n` rows, zero from the `count`-th on. Without reverse mode."""
    return _forward(body, carry, n, count)


def each(function, *arrays, count=None):
    """`function` applied to every row of `arrays`, like `vmap`; with `count` to the first ones
    only, zero in the others, and without reverse mode.

    On CPU row after row, in a loop compiled into one function: half the time of `vmap` for the few
    hundred operations that outputs take, because all intermediate numbers stay in the cache.
    """
    if count is not None:
        row = lambda i: jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, 0, False), arrays)
        n = jax.tree.leaves(arrays)[0].shape[0]
        return counted(lambda _, i: ((), function(*row(i))), (), n, count)[1]
    if jax.default_backend() != "cpu":
        return jax.vmap(function)(*arrays)
    return lax.map(lambda row: function(*row), arrays)


def _checkpointed(body, carry, n):
    """Blocks of about sqrt(n) iterations: reverse mode keeps one carry per block and repeats the
    block."""
    size = max(1, math.isqrt(n))
    blocks, rest = divmod(n, size)
    inner = jax.checkpoint(lambda c, i: lax.scan(body, c, i))
    carry, ys = lax.scan(inner, carry, jnp.arange(blocks * size).reshape(blocks, size))
    ys = jax.tree.map(lambda y: y.reshape(blocks * size, *y.shape[2:]), ys)
    if rest:
        carry, tail = inner(carry, jnp.arange(blocks * size, n))
        ys = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, tail)
    return carry, ys


def _forward(body, carry, n, count=None):
    """A while loop: nothing is stored for reverse mode, which JAX then refuses."""
    shapes = jax.eval_shape(body, carry, jnp.asarray(0))[1]
    ys = jax.tree.map(lambda s: jnp.zeros((n, *s.shape), s.dtype), shapes)

    def iterate(state):
        i, carry, ys = state
        carry, y = body(carry, i)
        return i + 1, carry, jax.tree.map(lambda all, one: all.at[i].set(one), ys, y)

    count = n if count is None else count
    start = (jnp.asarray(0), carry, ys)
    _, carry, ys = lax.while_loop(lambda state: state[0] < count, iterate, start)
    return carry, ys
