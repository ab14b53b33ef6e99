"""Polynomials through samples."""

import jax.numpy as jnp


def lagrange_weights(x, nodes):
    """Lagrange's polynomials on `nodes`, n numbers, at `x`, shape (n,)."""
    weights = []
    for i in range(len(nodes)):
        weight = jnp.ones_like(x)
        for j in range(len(nodes)):
            if j != i:
                weight = weight * (x - nodes[j]) / (nodes[i] - nodes[j])
        weights.append(weight)
    return jnp.stack(weights)
