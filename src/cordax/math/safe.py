"""Functions with finite derivatives at points where the textbook form divides by zero.

Straight rods, cables of zero length and aligned pulleys are normal configurations: the value and
all derivatives must be finite there."""

import jax.numpy as jnp


def safe_sqrt(x):
    """`sqrt(x)` with value and derivative zero for x <= 0."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)


def safe_norm(x, axis=-1):
    """Euclidean norm with derivative zero (not NaN) at the origin."""
    return safe_sqrt(jnp.sum(x * x, axis=axis))


def safe_unit(x, axis=-1):
    """`x / |x|`, and zero with zero derivative at the origin."""
    square = jnp.sum(x * x, axis=axis, keepdims=True)
    positive = square > 0
    return jnp.where(positive, x / jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


def safe_arctan2(y, x):
    """`arctan2`, and zero with zero derivative at the origin."""
    somewhere = (x != 0) | (y != 0)
    return jnp.where(somewhere, jnp.arctan2(y, jnp.where(somewhere, x, 1.0)), 0.0)


def safe_arccos(x):
    """`arccos` with its argument clipped to [-1, 1] and derivative zero at and beyond the ends."""
    inside = jnp.abs(x) < 1
    return jnp.where(inside, jnp.arccos(jnp.where(inside, x, 0.0)), jnp.where(x > 0, 0.0, jnp.pi))
