"""Newton's method with the implicit-function derivative."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .linalg import solve


class Correction(NamedTuple):
    """Newton's correction for those who know the structure of the Jacobian: `linearise(x, args)`
    returns it at x, as any pytree A, and `apply(A, r)` solves `A dx = r`."""

    linearise: Any
    apply: Any


def newton(residual, x0, args, *, tolerance, max_iterations: int, correction=None):
    """Solve `residual(x, args) = 0` from `x0` and return `(x, converged)`.

    **Arguments:** `residual`: returns shape (n,); `x0`: shape (n,), not differentiated; `args`: a
    pytree holding everything the solution depends on; `tolerance`: on the largest entry of the
    correction relative to `1 + max|x|`; `max_iterations`: at most this many; `correction`: a
    `Correction`; by default the residual is differentiated, with one evaluation for value and
    Jacobian, and solved densely.

    The iteration runs on stopped gradients; one further correction with the last Jacobian, frozen,
    carries the derivative of the implicit function in both modes, without going through the
    iterations. It also polishes the value. Second derivatives do not come out right: the Jacobian
    is frozen."""
    stopped = jax.tree.map(lax.stop_gradient, eqx.filter(args, eqx.is_array))
    frozen = eqx.combine(stopped, eqx.filter(args, eqx.is_array, inverse=True))

    def linear(x):
        """The Jacobian at x, its arrays only, and the residual."""
        if correction is not None:
            return correction.linearise(x, frozen), residual(x, frozen)
        twice = lambda x: (residual(x, frozen),) * 2
        return jax.jacfwd(twice, has_aux=True)(x)

    def apply(A, r):
        return solve(A, r) if correction is None else correction.apply(A, r)

    shape = eqx.filter_eval_shape(lambda x: linear(x)[0], x0)
    is_shape = lambda x: isinstance(x, jax.ShapeDtypeStruct)
    static = eqx.filter(shape, is_shape, inverse=True)
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), eqx.filter(shape, is_shape))

    def correct(carry):
        x, _, _, i = carry
        A, r = linear(x)
        dx = apply(A, r)
        size = jnp.max(jnp.abs(dx)) / (1.0 + jnp.max(jnp.abs(x)))
        return x - dx, eqx.filter(A, eqx.is_array), size, i + 1

    def unfinished(carry):
        *_, size, i = carry
        # a NaN correction compares false and ends the loop
        return (size > tolerance) & (i < max_iterations)

    x = lax.stop_gradient(x0)
    start = (x, zeros, jnp.asarray(jnp.inf, x.dtype), jnp.asarray(0))
    x, A, size, _ = lax.stop_gradient(lax.while_loop(unfinished, correct, start))
    # A belongs to the point before the last correction, which was below the tolerance
    A = eqx.combine(A, static)
    return x - apply(A, residual(x, args)), size <= tolerance
