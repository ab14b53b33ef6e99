"""Drawing of tendons: straight segments, and arcs round surfaces."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax.constant_gather import take
from ...math.safe import safe_arccos, safe_unit
from ...mechanics.parts.wrapping import wrap
from .elements import Instant
from .points import Ground, place, with_ground
from .tendons import Tendons, Wrapped

#: number of points of each line
_POINTS = 10


def tendon_lines(tendons: Tendons, at: Instant) -> Float[Array, "s k 3"]:
    """All segments as polylines in world axes [m], straight segments first."""
    bodies = with_ground(at.motions)
    x = place(bodies, tendons.sites.carriers(at.tree), tendons.sites.position)
    first, second = (np.array(s, int) for s in tendons.straight[1:])
    share = jnp.linspace(0.0, 1.0, _POINTS, dtype=x.dtype)[:, None]
    straight = take(x, first)[:, None] * (1.0 - share) + take(x, second)[:, None] * share
    return jnp.concatenate(
        [straight, *(_round(tendons, g, at, bodies, x) for g in tendons.wrapped)]
    )


def _round(tendons: Tendons, group: Wrapped, at: Instant, bodies: Ground, x):
    surface, first, second = (np.array(s) for s in (group.surface, group.first, group.second))
    carriers = tendons.surfaces.carriers(at.tree)[surface]
    turned = take(tendons.surfaces.rotation, surface)
    R = jnp.sum(take(bodies.R, carriers)[..., None] * turned[:, None], axis=2)
    centre = place(bodies, carriers, take(tendons.surfaces.position, surface))
    inward = lambda i: jnp.sum(R * (take(x, i) - centre)[:, :, None], axis=1)
    side = inward(np.maximum(group.side, 0))
    cylinder, sided = np.array(group.cylinder), np.array(group.side) >= 0

    def line(x0, x1, radius, side, cylinder, sided):
        def kind(is_cylinder: bool, has_side: bool):
            path = wrap(
                x0,
                x1,
                radius,
                cylinder=is_cylinder,
                side=side if has_side else None,
                inside=group.inside,
                side_rule=tendons.side_rule,
            )
            around = path.first + jnp.zeros((_POINTS - 2, 1), x0.dtype)
            if not group.inside:
                arc = _arc(path.first, path.second, path.angle, is_cylinder)
                around = jnp.where(path.touches, arc, around)
            return around

        pick = lambda has: jnp.where(cylinder, kind(True, has), kind(False, has))
        around = jnp.where(sided, pick(True), pick(False))
        return jnp.concatenate([x0[None], around, x1[None]])

    given = inward(first), inward(second), take(tendons.radius, surface), side, cylinder, sided
    lines = jax.vmap(line)(*given)
    return centre[:, None] + jnp.sum(R[:, None] * lines[:, :, None, :], axis=3)


def _arc(first, second, angle, cylinder: bool):
    """Points of an arc between two points, with an `angle` [rad] about the origin, or about the z
    axis for a cylinder."""
    flat = jnp.array([1.0, 1.0, 0.0 if cylinder else 1.0], first.dtype)
    a, b = first * flat, second * flat
    radius = jnp.sqrt(jnp.sum(a * a))
    e1 = safe_unit(a)
    e2 = safe_unit(b - jnp.sum(b * e1) * e1)
    short = safe_arccos(jnp.sum(safe_unit(b) * e1))
    total = jnp.where(angle > jnp.pi, short - 2.0 * jnp.pi, short)
    share = jnp.linspace(0.0, 1.0, _POINTS - 2, dtype=first.dtype)[:, None]
    circle = radius * (jnp.cos(share * total) * e1 + jnp.sin(share * total) * e2)
    return circle + ((1.0 - share) * first + share * second) * (1.0 - flat)
