"""Polynomials through equidistant samples."""

import jax.numpy as jnp


def lagrange_weights(x, n: int):
    """Lagrange's polynomials on the nodes 0 ... n - 1 at `x`, shape (n,)."""
    weights = []
    for i in range(n):
        weight = jnp.ones_like(x)
        for j in range(n):
            if j != i:
                weight = weight * (x - j) / (i - j)
        weights.append(weight)
    return jnp.stack(weights)
