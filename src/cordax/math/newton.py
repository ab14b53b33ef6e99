"""Newton's method with the implicit-function derivative."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .linalg import solve

#: corrections that shrink faster than this keep the Jacobian they were computed with
FAST = 0.1
#: corrections with an old Jacobian that shrink no faster than this are thrown away
USELESS = 0.5
#: iterations that go ahead whatever happens; good ones along curved valleys look stuck at first
PATIENCE = 20
#: parts of a correction below this are not tried: on with a new Jacobian
SHORTEST = 1.0 / 64.0
#: a radius below this share of the first correction says nothing: the motion starts from rest
BLIND = 1e-3


class Correction(NamedTuple):
    """Newton's correction for those who know the structure of the Jacobian: `linearise(x, args)`
    returns it at x, as any pytree A, and `apply(A, r)` solves `A dx = r`. `bare(A)`: as much of A
    as `apply` needs where nothing is differentiated; iterations carry it along."""

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

    **Arguments:** `residual`: returns shape (n,); `x0`: shape (n,), not differentiated; `args`: a
    pytree holding everything the solution depends on; `tolerance`: on the error that is left,
    estimated from the last correction and how fast corrections shrink, in units of `measure`;
    `max_iterations`: at most this many; `correction`: a `Correction`; by default the residual is
    differentiated and solved densely; `measure(x, dx)`: the size of a correction, by default its
    largest entry relative to `1 + max|x|`; `radius`: how far, in units of `measure`, a correction
    is trusted at first, unlimited by default.

    A Jacobian is kept as long as corrections shrink tenfold, and a new one for two corrections at
    least where the first is half as long as the one before. Corrections longer than the radius are
    cut back to it; it doubles while they become shorter and halves when they do not. Where forces
    are stiff, a first guess is far off in forces, the linearisation there may be indefinite, and
    its correction would throw the iteration away. A search for a smaller residual does not help:
    along the curved valley of a stiff energy the residual of a good correction grows before it
    falls. After twenty iterations a correction within the radius that leaves one as long as
    itself, as where friction turns from stick to slip, is taken back and halved.

    The derivative is that of the implicit function in both modes, with the Jacobian at the solution
    and without going through the iterations. Second derivatives do not come out right: that
    Jacobian is not differentiated."""
    arrays, static = eqx.partition(args, eqx.is_array)
    measure = _relative if measure is None else measure
    radius = jnp.asarray(jnp.inf if radius is None else radius, x0.dtype)
    tolerance = jnp.asarray(tolerance, x0.dtype)
    x0 = lax.stop_gradient(x0)
    shell, bare_shell = None, None  # of the Jacobian: what is no array

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

    # also what the functions close over, a controller's numbers, has derivatives
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
    """`count` of Newton's corrections of `x0`, each with a Jacobian of its own: `(x, converging)`,
    the latter whether one more with the last Jacobian would be at most half as long or below
    `tolerance`. Arguments as in `newton`; the derivative is that of the corrections themselves, by
    all that they depend on, the guess included."""
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
    stale: Any  # whether it must be renewed
    base: Any  # where the last correction started,
    way: Any  # that correction as computed,
    level: Any  # its size,
    part: Any  # and the part of it that was taken
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
        rate = size / jnp.maximum(last, smallest)  # nothing may be left to correct
        radius = jnp.where(first & (now.radius < BLIND * size), size, now.radius)
        # what is below the tolerance may be round-off, which no cutting back makes shorter
        long = size > jnp.maximum(radius, tolerance)
        slow = ~(rate <= FAST)
        helps = rate <= USELESS
        useless = ~now.stale & ~helps
        # A step between stick and slip, say: corrections are no longer than the motion, but taken
        # whole they do not get shorter. Back, and half of it.
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
            # a useless correction leaves x where it is, with a new Jacobian to come
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
