"""Ropes in space as circular arcs, as a first guess."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._jax.program_cache import kept_filter_jit
from ....math.safe import safe_norm
from ..initial_arcs import arcs


@kept_filter_jit
def hanging_arcs(chord: Float[Array, "3 m"], length, count: int) -> Float[Array, "3 s m"]:
    """Nodes [m], relative to the root, of sagging ropes of a length (m,) [m] over chords from root
    to end: arcs in the vertical plane of the chord; ropes that are too short are straight and
    stretched."""
    across = safe_norm(chord[:2], axis=0)
    upright = across == 0.0
    safe = jnp.where(upright, 1.0, across)
    x, y = jnp.where(upright, 1.0, chord[0] / safe), jnp.where(upright, 0.0, chord[1] / safe)
    stretch, angle = arcs(jnp.stack([across, chord[2]]), length, count)
    segment = length / count + stretch
    out = jnp.cumsum(segment * jnp.sin(angle), axis=0)
    return jnp.stack([x * out, y * out, jnp.cumsum(-segment * jnp.cos(angle), axis=0)])
