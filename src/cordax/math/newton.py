"""Newton's method, differentiated by the implicit function theorem."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .linalg import solve

#: the Jacobian is kept while the ratio of successive corrections is at most this
FAST = 0.1
#: corrections with an old Jacobian are discarded if their ratio to the previous one exceeds this
USELESS = 0.5
#: iterations before any correction is undone: in curved valleys, good ones look stuck at first
PATIENCE = 20
#: part of a correction below which it is not halved again; a new Jacobian is computed instead
SHORTEST = 1.0 / 64.0
#: a radius below this share of the first correction is ignored: the motion starts from rest
BLIND = 1e-3


class Correction(NamedTuple):
    """Newton correction that makes use of the structure of the Jacobian.

    `linearise(x, args)` returns the Jacobian at x, as any pytree A, and `apply(A, r)` solves
    `A dx = r`. `bare(A)`: the part of A that `apply` needs if nothing is differentiated; it is
    carried from one iteration to the next."""

    linearise: Any
    apply: Any
    bare: Any = lambda A: A


def newton(
    residual,
    x0,
    args,
    *,
    tolerance,
    max_iterations: int,
    correction=None,
    measure=None,
    radius=None,
):
    """Solve `residual(x, args) = 0` from `x0` and return `(x, converged, iterations)`.

    **Arguments:**

    - `residual`: function that returns shape (n,).
    - `x0`: initial guess, shape (n,), not differentiated.
    - `args`: a pytree with everything that the solution depends on.
    - `tolerance`: largest remaining error, in units of `measure`. The error is estimated from the
      last correction and the rate at which corrections shrink.
    - `max_iterations`: largest number of iterations.
    - `correction`: a `Correction`; by default the residual is differentiated and the dense system
      is solved.
    - `measure(x, dx)`: size of a correction, by default its largest entry relative to
      `1 + max|x|`.
    - `radius`: initial trust radius, the largest size of a correction in units of `measure`;
      unlimited by default.

    A Jacobian is kept as long as corrections shrink tenfold. A new Jacobian is used for at least
    two corrections if its first one is at most half as long as the correction before.

    Corrections longer than the radius are shortened to it. The radius doubles while corrections
    become shorter and halves when they do not. The reason: with stiff forces, the forces at the
    initial guess have large errors, and the linearisation there may be indefinite. The full
    correction could make the iteration diverge. A line search for a smaller residual does not help:
    along the curved valley of a stiff energy, the residual of a good correction grows before it
    falls. After twenty iterations, a correction within the radius is undone and halved if the next
    one is about as long, as happens where friction changes from stick to slip.

    The derivative is that of the implicit function in both modes. It uses the Jacobian at the
    solution and does not differentiate the iterations. Second derivatives are wrong, because that
    Jacobian is not differentiated."""
    arrays, static = eqx.partition(args, eqx.is_array)
    measure = _relative if measure is None else measure
    radius = jnp.asarray(jnp.inf if radius is None else radius, x0.dtype)
    tolerance = jnp.asarray(tolerance, x0.dtype)
    x0 = lax.stop_gradient(x0)
    shell, bare_shell = None, None  # parts of the Jacobian that are not arrays

    def equations(x, arrays):
        return residual(x, eqx.combine(arrays, static))

    def jacobian(x, arrays):
        nonlocal shell
        if correction is None:
            return jax.jacfwd(equations)(x, arrays)
        filled, shell = eqx.partition(
            correction.linearise(x, eqx.combine(arrays, static)), eqx.is_array
        )
        return filled

    def apply(A, r):
        return solve(A, r) if correction is None else correction.apply(eqx.combine(A, shell), r)

    def bare(A):
        nonlocal bare_shell
        if correction is None:
            return A
        filled, bare_shell = eqx.partition(correction.bare(eqx.combine(A, shell)), eqx.is_array)
        return filled

    def apply_bare(A, r):
        if correction is None:
            return solve(A, r)
        return correction.apply(eqx.combine(A, bare_shell), r)

    # values in the closures of the functions, such as control parameters, have derivatives too
    equations_of, seen = jax.closure_convert(equations, x0, arrays)
    jacobian_of, more = jax.closure_convert(jacobian, x0, arrays)

    @jax.custom_jvp
    def root(x0, known, more, tolerance, radius):
        arrays, seen = known
        residual = lambda x: equations_of(x, arrays, *seen)
        linear = lambda x: bare(jacobian_of(x, arrays, *more))
        limits = tolerance, radius, max_iterations
        return _iterate(residual, linear, apply_bare, measure, x0, *limits)

    def derivative(primals, tangents):
        x, *how = root(*primals)
        _, known, more, *_ = primals
        is_zero = lambda t: isinstance(t, SymbolicZero)
        moving = jax.tree.map(lambda t: not is_zero(t), tangents[1], is_leaf=is_zero)
        moved, still = eqx.partition(known, moving)
        rates = jax.tree.map(lambda t: None if is_zero(t) else t, tangents[1], is_leaf=is_zero)

        def along(moved):
            arrays, seen = eqx.combine(moved, still)
            return equations_of(x, arrays, *seen)

        pushed = jax.jvp(along, (moved,), (rates,))[1]
        dx = -apply(lax.stop_gradient(jacobian_of(x, known[0], *more)), pushed)
        none = np.zeros((), jax.dtypes.float0)
        return (x, *how), (dx, none, none)

    root.defjvp(derivative, symbolic_zeros=True)
    return root(x0, (arrays, seen), more, *lax.stop_gradient((tolerance, radius)))


def corrected(residual, x0, args, count: int, *, tolerance, correction=None, measure=None):
    """Apply `count` Newton corrections to `x0`, each with a new Jacobian; return `(x, converging)`.

    `converging`: whether a further correction with the last Jacobian would be at most half as long
    as the last one, or below `tolerance`. Arguments as in `newton`. The corrections themselves are
    differentiated, with respect to all values that they depend on, including the initial guess."""
    measure = _relative if measure is None else measure
    equations = lambda x: residual(x, args)
    linearise = (
        jax.jacfwd(equations) if correction is None else lambda x: correction.linearise(x, args)
    )
    apply = solve if correction is None else correction.apply
    bare = (lambda A: A) if correction is None else correction.bare
    x = x0
    if count > 1:
        once = lambda x, _: (x - apply(linearise(x), equations(x)), None)
        x, _ = lax.scan(once, x0, length=count - 1)
    A = linearise(x)
    dx = apply(A, equations(x))
    end = x - dx
    arrays, static = eqx.partition(bare(A), eqx.is_array)
    kept = eqx.combine(lax.stop_gradient(arrays), static)
    at, size = lax.stop_gradient((end, measure(x, dx)))
    left = lax.stop_gradient(measure(at, apply(kept, lax.stop_gradient(equations(at)))))
    return end, left <= jnp.maximum(USELESS * size, tolerance)


class _Progress(NamedTuple):
    x: Any
    A: Any  # arrays of the Jacobian
    stale: Any  # whether the Jacobian must be recomputed
    base: Any  # x before the last correction
    way: Any  # last correction as computed
    level: Any  # its size
    part: Any  # part of it that was applied
    radius: Any
    iterations: Any
    done: Any
    failed: Any


def _iterate(residual, linear, apply, measure, x0, tolerance, radius0, max_iterations):
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(linear, x0))

    smallest = jnp.finfo(x0.dtype).tiny

    def correct(now: _Progress) -> _Progress:
        r = residual(now.x)
        A = lax.cond(now.stale, lambda: linear(now.x), lambda: now.A)
        dx = apply(A, r)
        size = measure(now.x, dx)
        first = now.iterations == 0
        last = jnp.where(first, size, now.part * now.level)
        rate = size / jnp.maximum(last, smallest)  # the last correction may be zero
        radius = jnp.where(first & (now.radius < BLIND * size), size, now.radius)
        # corrections below the tolerance may be round-off, which shorter steps do not reduce
        long = size > jnp.maximum(radius, tolerance)
        slow = ~(rate <= FAST)
        helps = rate <= USELESS
        useless = ~now.stale & ~helps
        # For example between stick and slip: corrections stay within the initial radius, but if
        # they are applied in full they do not get shorter. Undo the last one and apply half of it.
        stuck = size > (1.0 - 0.25 * now.part) * now.level
        back = now.stale & (now.iterations >= PATIENCE) & (size <= radius0) & stuck
        back = back & (now.part > SHORTEST)
        done = ~long & (size * jnp.minimum(rate, 1.0) <= tolerance)
        back = back & ~done
        part = jnp.where(long, radius / size, 1.0)
        part = jnp.where(back, 0.5 * now.part, jnp.where(useless, now.part, part))
        again = back | useless
        base, way = (jnp.where(again, *x) for x in ((now.base, now.x), (now.way, dx)))
        longer = jnp.maximum(0.5 * radius, 0.25 * radius0)
        longer = jnp.where((size > now.level) & ~first, longer, 2.0 * radius)
        return _Progress(
            # a useless correction is discarded, and the Jacobian is recomputed at the same x
            jnp.where(useless, now.x, base - part * way),
            A,
            long | back | useless | (slow & ~first & ~(now.stale & helps)),
            base,
            way,
            jnp.where(again, now.level, size),
            part,
            jnp.where(long, longer, radius),
            now.iterations + 1,
            done,
            ~jnp.isfinite(size),
        )

    def unfinished(now: _Progress):
        return ~now.done & ~now.failed & (now.iterations < max_iterations)

    no, one = jnp.asarray(False), jnp.ones_like(radius0)
    start = _Progress(x0, zeros, ~no, x0, x0, jnp.inf * one, one, radius0, jnp.asarray(0), no, no)
    end = lax.while_loop(unfinished, correct, start)
    return end.x, end.done, end.iterations.astype(jnp.int32)


def _relative(x, dx):
    return jnp.max(jnp.abs(dx)) / (1.0 + jnp.max(jnp.abs(x)))
