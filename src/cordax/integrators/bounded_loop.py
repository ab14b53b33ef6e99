"""Loops with a data-dependent number of passes that support forward and reverse mode."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .._jax.tracing import depending_on


def repeat(going, go, times: int):
    """Function that applies `go` repeatedly to its argument while `going` is true for it, at most
    `times` times or a few more. It supports forward and reverse mode.

    The loop is nested three deep: most steps take one pass, and skipped passes take time too."""

    def loop(inner):
        once = lambda now, _: (lax.cond(going(now), inner, lambda now: now, now), None)
        return lambda now: lax.scan(once, now, length=math.ceil(times ** (1 / 3)))[0]

    for _ in range(3):
        go = loop(go)
    return go


def while_recorded(going, go, begin, times: int):
    """`lax.while_loop(going, go, begin)` with at most `times` passes, for forward and reverse mode.

    `going` must not close over arrays. Derivatives need the argument of every pass: there is
    storage for `times` of them, and each pass is computed again. Reverse mode loops over the passes
    that were taken, so `go` is compiled once for it, whatever the limit."""
    go = eqx.filter_closure_convert(go, begin)
    return _while(go, begin, going=going, times=times)


@eqx.filter_custom_jvp
def _while(go, begin, *, going, times):
    more = lambda now: going(now[1]) & (now[0] < times)
    return lax.while_loop(more, lambda now: (now[0] + 1, go(now[1])), (jnp.int32(0), begin))[1]


@_while.def_jvp
def _while_jvp(primals, tangents, *, going, times):
    go, begin = primals
    shape = lambda x: jnp.zeros((times, *jnp.shape(x)), jnp.result_type(x))

    def keep(now):
        i, carry, rows = now
        rows = jax.tree.map(lambda all, one: all.at[i].set(one), rows, carry)
        return i + 1, go(carry), rows

    more = lambda now: going(now[1]) & (now[0] < times)
    start = jnp.int32(0), begin, jax.tree.map(shape, begin)
    count, end, rows = lax.while_loop(more, keep, start)
    # only arrays that are differentiated take part
    wanted = jax.tree.map(lambda t: t is not None, tangents[0], is_leaf=_is_none)
    by, rest = eqx.partition(go, wanted)

    def once(i):
        """Pass i as a function of its differentiated arguments."""
        row = jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, 0, False), rows)
        state, held = eqx.partition(row, eqx.is_inexact_array)
        one = lambda by, state: _floats(eqx.combine(by, rest)(eqx.combine(state, held)))
        return one, state

    def forward(i, d_by, d_state):
        one, state = once(i)
        return jax.jvp(one, (by, state), (d_by, d_state))[1]

    def push(given):
        """Tangents of the final value."""
        d_by, d_begin = given
        step = lambda now: (now[0] + 1, forward(now[0], d_by, now[1]))
        return lax.while_loop(lambda now: now[0] < count, step, (jnp.int32(0), d_begin))[1]

    def push_all(given):
        """Tangents of the final value, in a form that JAX can differentiate again."""
        d_by, d_begin = given
        step = lambda d, i: (lax.cond(i < count, lambda: forward(i, d_by, d), lambda: d), None)
        return lax.scan(step, d_begin, jnp.arange(times))[0]

    def pull(ct):
        """Cotangents of the differentiated arrays of `go` and of the initial value."""

        def backward(now):
            i, ct, total = now
            one, state = once(i)
            more, ct = jax.vjp(one, by, state)[1](ct)
            return i - 1, ct, jax.tree.map(jnp.add, total, more)

        zero = jax.tree.map(jnp.zeros_like, by)
        _, ct, total = lax.while_loop(lambda now: now[0] >= 0, backward, (count - 1, ct, zero))
        return total, ct

    full = lambda x, t: (
        None if not eqx.is_inexact_array(x) else jnp.zeros_like(x) if t is None else t
    )
    d_begin = jax.tree.map(full, begin, tangents[1], is_leaf=_is_none)
    d_end = _linear(push, pull, push_all, (tangents[0], d_begin), _floats(end))
    return end, d_end


def _linear(push, pull, differentiable, x, like):
    """`push(x)`, a linear function with the transpose `pull`; the result is a pytree like `like`.
    `differentiable`: the same function as `push`, used by JAX for further derivatives.

    The result is computed as the second part of the solution of `[1, 0; -push, 1] z = [x; 0]`,
    because JAX has rules for linear systems in both modes and in batches."""
    add = lambda a, b: jax.tree.map(jnp.add, a, b)
    # to JAX the whole right-hand side must appear linear in `x`
    x, zero = depending_on((x, jax.tree.map(jnp.zeros_like, like)), x)
    matrix = lambda z: (z[0], jax.tree.map(jnp.subtract, z[1], differentiable(z[0])))
    solve = lambda _, b: (b[0], add(b[1], push(b[0])))
    transposed = lambda _, b: (add(b[0], pull(b[1])), b[1])
    return lax.custom_linear_solve(matrix, (x, zero), solve, transposed)[1]


_floats = lambda tree: eqx.filter(tree, eqx.is_inexact_array)
_is_none = lambda x: x is None
