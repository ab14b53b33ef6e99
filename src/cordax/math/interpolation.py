"""Polynomial interpolation."""

import jax.numpy as jnp


def lagrange_weights(x, nodes):
    """Values at `x` of the n Lagrange polynomials of `nodes` (n numbers), shape (n,)."""
    weights = []
    for i in range(len(nodes)):
        weight = jnp.ones_like(x)
        for j in range(len(nodes)):
            if j != i:
                weight = weight * (x - nodes[j]) / (nodes[i] - nodes[j])
        weights.append(weight)
    return jnp.stack(weights)
