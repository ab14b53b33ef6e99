"""Ropes as circular arcs, as a first guess: gaps are closed by angles, never by stretch."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .platform import Platform


def arcs(chord: Float[Array, "2 m"], length: Float[Array, " m"], count: int):
    """Stretches and angles (2, s, m) of sagging ropes over chords from root to end [m]; ropes that
    are too short are straight and stretched."""
    span = jnp.sqrt(jnp.sum(chord**2, axis=0))
    direction = jnp.arctan2(chord[0], -chord[1])
    # angles differ from the chord's by +-opening, spread evenly: the sides cancel, and
    # mean(cos) = span / length
    spread = (jnp.arange(count) - 0.5 * (count - 1)) / max(count - 1, 1) * 2.0
    cosine = jnp.clip(span / length, 0.0, 1.0)

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        wide = jnp.mean(jnp.cos(spread[:, None] * middle), axis=0) < cosine
        return jnp.where(wide, low, middle), jnp.where(wide, middle, high)

    bounds = jnp.zeros_like(span), jnp.full_like(span, jnp.pi)
    opening = lax.fori_loop(0, 60, halve, bounds)[0]
    # to sag, the angle grows along a rope that goes to +x
    side = jnp.where(chord[0] >= 0, 1.0, -1.0)
    angle = direction + side * spread[:, None] * opening
    stretch = jnp.broadcast_to(jnp.maximum(span - length, 0.0) / count, angle.shape)
    return jnp.stack([stretch, angle])


def below(platform: Platform, roots: Float[Array, "m 2"], length: Float[Array, " m"]):
    """A pose (3,) of the platform that ropes can reach: in the middle, at most as deep as the
    shortest rope allows."""
    chords = roots - platform.attachments
    middle = jnp.mean(chords, axis=0)
    across = (chords - middle)[:, 0]
    reach = jnp.sqrt(jnp.maximum(length**2 - across**2, 0.01 * length**2))
    depth = jnp.min(chords[:, 1] - 0.95 * reach - middle[1])
    return jnp.stack([middle[0], middle[1] + depth, 0.0 * depth])
