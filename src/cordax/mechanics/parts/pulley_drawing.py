"""Pulleys and drums for drawing: wedges with gaps between them, which make rotation visible."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..scene import Bodies

_WEDGES = 5
_ARC = np.linspace(0.0, np.pi / _WEDGES, 5)
_START = 2.0 * np.pi / _WEDGES * np.arange(_WEDGES)
#: corners of the wedges of a wheel of radius one, shape (wedges, corners, 2)
_WHEEL = np.stack(
    [
        np.concatenate([[[0.0, 0.0]], np.stack([np.cos(a + _ARC), np.sin(a + _ARC)], axis=1)])
        for a in _START
    ]
)


def wheels(
    centre: Float[Array, "n d"],
    along: Float[Array, "n d"],
    aside: Float[Array, "n d"],
    angle: Float[Array, " n"],
    radius: Float[Array, "..."],
) -> Bodies:
    """n wheels at their `centre` [m], with a `radius` [m] each or one for all, turned by `angle`
    [rad] from the direction `along` towards `aside`, unit vectors in the plane of the wheel."""
    n, d = centre.shape
    c, s = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    columns = [c * along + s * aside, c * aside - s * along]
    corners = jnp.asarray(_WHEEL, centre.dtype)
    if d == 3:
        columns.append(jnp.cross(along, aside))
        corners = jnp.concatenate([corners, jnp.zeros_like(corners[..., :1])], axis=-1)
    faces = jnp.broadcast_to(radius, (n,))[:, None, None, None] * corners
    return Bodies(centre, jnp.stack(columns, axis=-1), faces)


def joined(*groups: Bodies) -> Bodies:
    """Concatenate groups of bodies whose faces have the same number of corners."""
    parts = [(g.position, g.rotation, g.faces) for g in groups]
    return Bodies(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))
