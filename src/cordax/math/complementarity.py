"""Small linear complementarity problems."""

import jax.numpy as jnp
from jax import lax

from .linalg import matvec, solve


def active_set(A, b, one_sided, candidates, *, tolerance: float = 1e-12):
    """Find the active rows of the linear complementarity problem `A x - b = w`.

    `A` is symmetric positive definite. Rows that are not `one_sided` have w = 0. Rows that are
    one-sided and `candidates` have x >= 0, w >= 0 and x w = 0. All other rows have x = 0.

    **Arguments:** `A`: shape (m, m); `b`: shape (m,); `one_sided`, `candidates`: bool, shape (m,).
    Returns 1 where a row is active, 0 elsewhere, shape (m,).

    The method is principal pivoting by the least index (Murty 1974), which is finite and cannot
    cycle. It returns the active set only, without derivatives; `masked_solve` gives x."""
    m = b.shape[0]
    A, b = lax.stop_gradient((A, b))
    scale = jnp.sqrt(jnp.diagonal(A))
    scale = jnp.where(scale > 0, scale, 1.0)
    A, b = A / scale[:, None] / scale, b / scale
    size = tolerance * (1.0 + jnp.max(jnp.abs(b)))

    free = one_sided & candidates

    def swap(carry):
        acting, _, i = carry
        x = masked_solve(A, b, acting, unrolled=False)
        w = matvec(A, x) - b
        wrong = free & jnp.where(acting > 0, x < -size, w < -size)
        first = jnp.argmax(wrong)
        some = wrong[first]
        return (
            acting.at[first].set(jnp.where(some, 1.0 - acting[first], acting[first])),
            some,
            i + 1,
        )

    start = jnp.where(one_sided & ~candidates, 0.0, 1.0).astype(b.dtype)
    acting, _, _ = lax.while_loop(
        lambda c: c[1] & (c[2] < 20 * m), swap, (start, jnp.asarray(True), jnp.asarray(0))
    )
    return acting


def masked_solve(A, b, acting, *, unrolled: bool = True):
    """Solve `A x = b` on the active rows, with x = 0 on the others; `unrolled` as in `solve`."""
    A = A * acting[:, None] * acting + jnp.diag(1.0 - acting)
    return solve(A, b * acting, spd=True, nan_if_singular=True, unrolled=unrolled)
