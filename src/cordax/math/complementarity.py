"""Small linear complementarity problems."""

import jax.numpy as jnp
from jax import lax

from .linalg import matvec, solve


def active_set(A, b, one_sided, candidates, *, tolerance: float = 1e-12):
    """Which rows act in `A x - b = w`, A symmetric positive definite, where rows that are not
    `one_sided` have w = 0, one-sided candidates have x >= 0, w >= 0 and x w = 0, and all others
    have x = 0.

    **Arguments:** `A`: shape (m, m); `b`: shape (m,); `one_sided`, `candidates`: bool, shape (m,).
    Returns 1 where a row acts, 0 elsewhere, shape (m,).

    Principal pivoting by the least index (Murty 1974): finite, and it cannot cycle. Only the set is
    returned, without derivatives: solve once more with it."""
    m = b.shape[0]
    A, b = lax.stop_gradient((A, b))
    scale = jnp.sqrt(jnp.diagonal(A))
    scale = jnp.where(scale > 0, scale, 1.0)
    A, b = A / scale[:, None] / scale, b / scale
    size = tolerance * (1.0 + jnp.max(jnp.abs(b)))

    def wrong(acting):
        x = masked_solve(A, b, acting)
        w = matvec(A, x) - b
        free = one_sided & candidates
        return free & jnp.where(acting > 0, x < -size, w < -size)

    def swap(carry):
        acting, _, i = carry
        first = jnp.argmax(wrong(acting))
        acting = acting.at[first].set(1.0 - acting[first])
        return acting, jnp.any(wrong(acting)), i + 1

    start = jnp.where(one_sided & ~candidates, 0.0, 1.0).astype(b.dtype)
    acting, _, _ = lax.while_loop(
        lambda c: c[1] & (c[2] < 20 * m), swap, (start, jnp.any(wrong(start)), jnp.asarray(0))
    )
    return acting


def masked_solve(A, b, acting):
    """`A x = b` on the acting rows, x = 0 on the others."""
    A = A * acting[:, None] * acting + jnp.diag(1.0 - acting)
    return solve(A, b * acting, spd=True, nan_if_singular=True)
