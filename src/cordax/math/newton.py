"""Newton's method with the implicit-function derivative."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from .linalg import solve


def newton(residual, x0, args, *, tolerance, max_iterations: int):
    """Solve `residual(x, args) = 0` from `x0` and return `(x, converged)`.

    **Arguments:** `residual`: returns shape (n,); `x0`: shape (n,), not differentiated; `args`: a
    pytree holding everything the solution depends on; `tolerance`: on the largest entry of the
    correction relative to `1 + max|x|`; `max_iterations`: at most this many.

    The iteration runs on stopped gradients; one further correction with the last Jacobian, frozen,
    carries the derivative of the implicit function in both modes, without going through the
    iterations. It also polishes the value. Second derivatives do not come out right: the Jacobian
    is frozen."""
    stopped = jax.tree.map(lax.stop_gradient, eqx.filter(args, eqx.is_array))
    static = eqx.filter(args, eqx.is_array, inverse=True)

    def value_twice(x):
        r = residual(x, eqx.combine(stopped, static))
        return r, r

    def correct(carry):
        x, _, _, i = carry
        A, r = jax.jacfwd(value_twice, has_aux=True)(x)
        dx = solve(A, r)
        size = jnp.max(jnp.abs(dx)) / (1.0 + jnp.max(jnp.abs(x)))
        return x - dx, A, size, i + 1

    def unfinished(carry):
        *_, size, i = carry
        # a NaN correction compares false and ends the loop
        return (size > tolerance) & (i < max_iterations)

    x = lax.stop_gradient(x0)
    n, inf = x.shape[0], jnp.asarray(jnp.inf, x.dtype)
    start = (x, jnp.zeros((n, n), x.dtype), inf, jnp.asarray(0))
    x, A, size, _ = lax.stop_gradient(lax.while_loop(unfinished, correct, start))
    # A belongs to the point before the last correction, which was below the tolerance
    return x - solve(A, residual(x, args)), size <= tolerance
