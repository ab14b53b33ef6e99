"""Time loops that differ in what reverse-mode differentiation stores."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

ADJOINTS = ("scan", "checkpointed", "forward")


def loop(body, carry, n: int, adjoint: str):
    """Run `lax.scan(body, carry, arange(n))` with one of `ADJOINTS`."""
    if adjoint == "scan":
        return lax.scan(body, carry, jnp.arange(n))
    if adjoint == "forward":
        return _forward(body, carry, n)
    return _checkpointed(body, carry, n)


#: largest size of the stored rows [bytes] for which `flat` stores every step, for each of
#: `ADJOINTS`: with "scan" they must fit into the CPU cache beside everything else it stores, with
#: checkpoints only into memory
_FLAT_BYTES = {"scan": 4_000_000, "checkpointed": 64_000_000, "forward": 0}


def fits_flat(keep, carry, steps: int, adjoint: str) -> bool:
    """Whether storing the result of `keep` after each of `steps` steps needs little memory."""
    shapes = jax.tree.leaves(jax.eval_shape(keep, carry))
    return steps * sum(x.size * x.dtype.itemsize for x in shapes) <= _FLAT_BYTES[adjoint]


def flat(step, keep, carry, n: int, every: int, count=None, adjoint: str = "scan"):
    """Run `n` blocks of `every` steps in one loop and return `keep(carry)` at the end of each
    block.

    With `count`, only the first `count` blocks run. The loop stores `keep(carry)` after every step
    and selects rows afterwards: a nested loop takes five times as long to compile in reverse mode.
    """

    def one(carry, i):
        carry, _ = step(carry, i)
        return carry, keep(carry)

    indices = jnp.arange(n * every)
    if count is None:
        carry, rows = loop(one, carry, n * every, adjoint)
    else:
        carry, rows = counted_reverse(one, carry, indices, count * every)
    return carry, jax.tree.map(lambda x: x[every - 1 :: every], rows)


def counted(body, carry, n: int, count, shapes=None):
    """Run `lax.scan(body, carry, arange(count))` where `count`, at most `n`, is data.

    Results have `n` rows, which are zero from row `count` on. Reverse mode is not supported.
    `shapes` of a row, if they are known, avoid tracing `body` a second time."""
    return _forward(body, carry, n, count, shapes)


def each(function, *arrays, count=None, reverse=False):
    """Apply `function` to every row of `arrays`, like `vmap`.

    With `count`, only the first `count` rows are computed and the others are zero. This supports
    forward mode or, with `reverse`, reverse mode.

    On CPU the rows run one after another in a loop that is compiled into one function. For the few
    hundred operations of typical outputs this takes half the time of `vmap`, because all
    intermediate values stay in the cache.
    """
    if reverse:
        return counted_reverse(lambda _, row: ((), function(*row)), (), arrays, count)[1]
    if count is not None:
        row = lambda i: jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, 0, False), arrays)
        n = jax.tree.leaves(arrays)[0].shape[0]
        return counted(lambda _, i: ((), function(*row(i))), (), n, count)[1]
    if jax.default_backend() != "cpu":
        return jax.vmap(function)(*arrays)
    return lax.map(lambda row: function(*row), arrays)


#: largest number of iterations between checkpoints
_BLOCK = 16


def _checkpointed(body, carry, n):
    """Run blocks of iterations; reverse mode stores one carry per block and repeats the block.

    About sqrt(n) blocks would need the least memory. Blocks are smaller, because the data that a
    block stores should stay in the cache and carries are small. Time of a gradient of the neck,
    relative to a run: 4.2 with blocks of 16, 4.6 with 48, 6.0 with 128 (`benchmarks/neck.py
    gradient_long`)."""
    size = min(max(1, math.isqrt(n)), _BLOCK)
    blocks, rest = divmod(n, size)
    inner = jax.checkpoint(lambda c, i: lax.scan(body, c, i))
    carry, ys = lax.scan(inner, carry, jnp.arange(blocks * size).reshape(blocks, size))
    ys = jax.tree.map(lambda y: y.reshape(blocks * size, *y.shape[2:]), ys)
    if rest:
        carry, tail = inner(carry, jnp.arange(blocks * size, n))
        ys = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, tail)
    return carry, ys


def _forward(body, carry, n, count=None, shapes=None):
    """Run a while loop that stores nothing for reverse mode; JAX then rejects reverse mode."""
    shapes = jax.eval_shape(body, carry, jnp.asarray(0))[1] if shapes is None else shapes
    ys = jax.tree.map(lambda s: jnp.zeros((n, *s.shape), s.dtype), shapes)

    def iterate(state):
        i, carry, ys = state
        carry, y = body(carry, i)
        return i + 1, carry, jax.tree.map(lambda all, one: all.at[i].set(one), ys, y)

    count = n if count is None else count
    start = (jnp.asarray(0), carry, ys)
    _, carry, ys = lax.while_loop(lambda state: state[0] < count, iterate, start)
    return carry, ys


def counted_reverse(body, carry, xs, count):
    """Run `lax.scan(body, carry, xs)` for the first `count` rows, where `count` is data.

    Results are zero from row `count` on. Reverse mode stores the carry before each row and computes
    the row again; JAX rejects forward mode."""
    first = jax.tree.map(lambda x: x[0], xs)
    given = eqx.filter_closure_convert(body, carry, first), carry, xs
    return fixed_integers(_repeated(*fixed_integers((given, count))))


def fixed_integers(tree):
    """Return the same tree with its integers marked as not differentiated.

    JAX treats integers that a differentiated function returns as differentiated. `_repeated` does
    not accept these, and the next program would be a different one."""
    whole = lambda x: eqx.is_array(x) and not eqx.is_inexact_array(x)
    same = lambda x: lax.bitwise_or(x, jnp.zeros_like(x)) if whole(x) else x
    return jax.tree.map(same, tree)


def _repeat(given, count):
    body, carry, xs = given

    def keep(carry, i):
        new, y = body(carry, _row(xs, i))
        return new, (carry, y)

    n = jax.tree.leaves(xs)[0].shape[0]
    carry, (before, ys) = _forward(keep, carry, n, count)
    return (carry, ys), before


_row = lambda tree, i: jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, 0, False), tree)
_floats = lambda tree: eqx.filter(tree, eqx.is_inexact_array)


@eqx.filter_custom_vjp
def _repeated(given, count):
    return _repeat(given, count)[0]


@_repeated.def_fwd
def _repeated_fwd(perturbed, given, count):
    out, before = _repeat(given, count)
    return out, (before, out, perturbed)


@_repeated.def_bwd
def _repeated_bwd(residuals, cotangents, _, given, count):
    before, out, (wanted, _, wanted_rows) = residuals
    body, _, xs = given
    zero = lambda x, ct: jnp.zeros_like(x) if ct is None and x is not None else ct
    cotangents = jax.tree.map(zero, _floats(out), cotangents, is_leaf=lambda x: x is None)
    numbers, rest = eqx.partition(body, wanted)
    rows, others = eqx.partition(xs, wanted_rows)

    def back(now):
        i, ct, total, ct_rows = now
        state, held = eqx.partition(_row(before, i), eqx.is_inexact_array)
        fixed = _row(others, i)

        def once(numbers, state, row):
            function = eqx.combine(numbers, rest)
            return _floats(function(eqx.combine(state, held), eqx.combine(row, fixed)))

        pull = jax.vjp(once, numbers, state, _row(rows, i))[1]
        more, ct, ct_row = pull((ct, _row(cotangents[1], i)))
        total = jax.tree.map(jnp.add, total, more)
        ct_rows = jax.tree.map(lambda all, one: all.at[i].set(one), ct_rows, ct_row)
        return i - 1, ct, total, ct_rows

    zeros = lambda tree: jax.tree.map(jnp.zeros_like, tree)
    begin = jnp.asarray(count) - 1, cotangents[0], zeros(numbers), zeros(rows)
    _, ct, total, ct_rows = lax.while_loop(lambda now: now[0] >= 0, back, begin)
    return total, ct, ct_rows
