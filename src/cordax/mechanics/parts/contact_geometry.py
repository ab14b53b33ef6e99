"""Contact points, normals and gaps of two shapes, for each kind of pair.

A function of this module takes two shapes and the world poses of their bodies, and returns a fixed
number of contact candidates (`Touch`), so that `vmap` evaluates pairs of one kind together."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._base.checks import require
from .shapes import Box, Capsule, Cylinder, HeightField, Plane, Shape, Sphere, round_surface

#: gap [m] of candidates that do not touch
FAR = 1e3
#: weight of a penalty towards the middle of a segment in the search for its closest point
MIDDLE = 1e-6
#: squared length [m^2] below which a segment counts as a point
POINT = 1e-18
#: fraction of an edge next to its ends that belongs to the corners
_CORNER = 1e-9
#: fraction of a side next to its ends where only the end touches
_END = 0.05
#: iterations of a golden section search: they locate the minimum to 1e-9 of the interval
_SECTIONS = 44


class Pose(NamedTuple):
    """Pose of a body in the world: rotation `R` (3, 3) and position `p` (3,) [m]."""

    R: Float[Array, "3 3"]
    p: Float[Array, " 3"]

    def out(self, x):
        """World position of points (..., 3) of the body."""
        return self.p + jnp.sum(self.R * x[..., None, :], axis=-1)

    def into(self, x):
        """Position in the body of a world point (3,)."""
        return jnp.sum(self.R * (x - self.p)[:, None], axis=0)

    def direction(self, x):
        return jnp.sum(self.R * x, axis=-1)

    def direction_into(self, x):
        return jnp.sum(self.R * x[:, None], axis=0)


class Touch(NamedTuple):
    """Candidates for contact: `gap` (k,) [m], negative in contact; `point` (k, 3) [m] in the world,
    half way between both surfaces; `normal` (k, 3), unit vectors from the second to the first."""

    gap: Float[Array, " k"]
    point: Float[Array, "k 3"]
    normal: Float[Array, "k 3"]

    def swapped(self) -> "Touch":
        return Touch(self.gap, self.point, -self.normal)


#: function of two shapes of certain kinds, each with the pose of its body
Narrow = Callable[[Any, Pose, Any, Pose], Touch]


def candidates(first: type[Shape], second: type[Shape]) -> list[tuple[bool, Narrow]]:
    """Functions that compute the contact of shapes of two kinds, each with whether it takes the
    second shape first."""
    # a ball touches everything at one point
    for a, b, swap in ((first, second, False), (second, first, True)):
        if a is Sphere and b.has_surface:
            return [(swap, corners)]
    if first is Capsule and second is Capsule:
        return [(False, capsules)]
    if first is Box and second is Box:
        return [(False, boxes)]
    found: list[tuple[bool, Narrow]] = []
    for a, b, swap in ((first, second, False), (second, first, True)):
        if a in (Plane, HeightField) or not b.has_surface:
            continue
        if b is Capsule and a in (Box, Cylinder):  # the capsule touches them
            continue
        found.append((swap, corners))
        if a in (Capsule, Cylinder) and b in (Box, Cylinder):
            found.append((swap, between))
    given = f"{first.__name__} and {second.__name__}"
    require(bool(found), "pairs", given, "shapes of which one has a surface and the other points")
    return found


def corners(a: Shape, at: Pose, b: Shape, on: Pose) -> Touch:
    """Contact of the points of `a` with the surface of `b`."""
    facing = on.direction(b.surface(on.into(at.out(a.middle())))[1])
    return _on_surface(at.out(a.points(-at.direction_into(facing))), a.roundness(), b, on)


def _on_surface(x, radius, b: Shape, on: Pose) -> Touch:
    """Contact of balls of a radius [m] about world points (k, 3) with the surface of `b`."""
    distance, normal = jax.vmap(lambda x: b.surface(on.into(x)))(x)
    normal = jax.vmap(on.direction)(normal)
    gap = distance - radius
    return Touch(gap, x - (radius + 0.5 * gap)[:, None] * normal, normal)


def between(a: Capsule | Cylinder, at: Pose, b: Shape, on: Pose) -> Touch:
    """Contact of the side of a capsule or cylinder with a convex surface, at its deepest point
    between the ends. The ends touch by `corners`."""
    facing = on.direction(b.surface(on.into(at.out(a.middle())))[1])
    start, end = at.out(a.segment(-at.direction_into(facing)))
    way = end - start
    s = deepest_share(on.into(start), on.direction_into(way), b)
    touch = _on_surface((start + s * way)[None], a.roundness(), b, on)
    inner = (s > _END) & (s < 1.0 - _END)
    return touch._replace(gap=jnp.where(inner, touch.gap, FAR))


def deepest_share(start, way, b: Shape) -> Float[Array, ""]:
    """Position, as a fraction of its length, at which a segment is closest to a convex shape `b`.
    The segment goes along `way` (3,) from `start` (3,), in the axes of the shape."""
    s = _deepest(*lax.stop_gradient((start, way, b)))

    def slope(s):
        """Derivative of the distance along the segment."""
        return jnp.sum(b.surface(start + s * way)[1] * way)

    # one step of Newton's method provides the derivative of the position of the minimum
    rate, curvature = jax.jvp(slope, (s,), (jnp.ones_like(s),))
    curved = curvature > 1e-6 * jnp.sum(way * way)
    step = jnp.where(curved, rate / jnp.where(curved, curvature, 1.0), 0.0)
    return jnp.clip(s - step, 0.0, 1.0)


def _deepest(start, way, b: Shape):
    """Result of `deepest_share` without a derivative, by golden section search."""
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    distance = lambda s: b.surface(start + s * way)[0]

    def cut(_, interval):
        low, high = interval
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        lower = distance(left) < distance(right)
        return jnp.where(lower, low, left), jnp.where(lower, right, high)

    whole = jnp.zeros((), way.dtype), jnp.ones((), way.dtype)
    low, high = lax.fori_loop(0, _SECTIONS, cut, whole)
    return 0.5 * (low + high)


def capsules(a: Capsule, at: Pose, b: Capsule, on: Pose) -> Touch:
    """Contact of two capsules at the closest points of their segments; half way along the common
    part if they are parallel."""
    p, d = at.out(a.start), at.direction(a.end - a.start)
    r, e = on.out(b.start), on.direction(b.end - b.start)
    s, t = closest_shares(p, d, r, e)
    distance, normal = round_surface(p - r + s * d - t * e, a.radius + b.radius)
    point = r + t * e + normal * (b.radius + 0.5 * distance)
    return Touch(distance[None], point[None], normal[None])


def closest_shares(p, d, r, e) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Positions, as fractions of their lengths, at which two segments are closest: along `d` from
    `p` and along `e` from `r` (3,). Half way along the common part if they are parallel."""
    dd, ee, de = jnp.sum(d * d), jnp.sum(e * e), jnp.sum(d * e)
    gap = p - r
    # |gap + s d - t e|^2 plus a small penalty for s and t away from the middle, which makes the
    # cost strictly convex for parallel segments
    small_s, small_t = MIDDLE * dd + POINT, MIDDLE * ee + POINT
    A, B, C = dd + small_s, ee + small_t, de
    f, g = 0.5 * small_s - jnp.sum(d * gap), 0.5 * small_t + jnp.sum(e * gap)

    def cost(s, t):
        x = gap + s * d - t * e
        return jnp.sum(x * x) + small_s * (s - 0.5) ** 2 + small_t * (t - 0.5) ** 2

    determinant = A * B - C * C
    inner_s, inner_t = (B * f + C * g) / determinant, (A * g + C * f) / determinant
    ends = jnp.array([0.0, 1.0], dd.dtype)
    at_s = jnp.clip((g + C * ends) / B, 0.0, 1.0)
    at_t = jnp.clip((f + C * ends) / A, 0.0, 1.0)
    inside = (inner_s >= 0) & (inner_s <= 1) & (inner_t >= 0) & (inner_t <= 1)
    s = jnp.concatenate([jnp.where(inside, inner_s, 0.0)[None], ends, at_t])
    t = jnp.concatenate([jnp.where(inside, inner_t, at_s[0])[None], at_s, ends])
    best = jnp.argmin(jax.vmap(cost)(*lax.stop_gradient((s, t))))
    return s[best], t[best]


class _Face(NamedTuple):
    """A face of a box: its centre, outward normal, and two edges from the centre to its sides."""

    centre: Float[Array, " 3"]
    normal: Float[Array, " 3"]
    u: Float[Array, " 3"]
    v: Float[Array, " 3"]

    def corners(self):
        u, v = self.u, self.v
        return self.centre + jnp.stack([u + v, v - u, -u - v, u - v])

    def along(self, x, n):
        """Distance along the unit vector `n` from points (k, 3) to the plane of the face."""
        return jnp.sum((self.centre - x) * self.normal, axis=-1) / jnp.sum(n * self.normal)

    def covers(self, x):
        """Whether points (k, 3) of the plane lie in the face, its edges included."""
        share = lambda edge: jnp.sum((x - self.centre) * edge, axis=-1) / jnp.sum(edge * edge)
        reach = 1.0 + _CORNER
        return (jnp.abs(share(self.u)) <= reach) & (jnp.abs(share(self.v)) <= reach)


def boxes(a: Box, at: Pose, b: Box, on: Pose) -> Touch:
    """Contact of two boxes: the corners of the overlap of the two faces that face each other along
    the axis of least overlap. That axis is the normal of a face of one of the boxes, even if two
    edges cross."""
    axes = [jnp.sum(pose.R[:, :, None] * box.turned, axis=1) for pose, box in ((at, a), (on, b))]
    centres = [pose.out(box.centre) for pose, box in ((at, a), (on, b))]
    halves = [0.5 * a.sizes, 0.5 * b.sizes]
    every = jnp.concatenate([axes[1].T, axes[0].T])  # (6, 3)
    reach = sum(
        jnp.sum(jnp.abs(jnp.sum(every[:, :, None] * axis, axis=1)) * half, axis=1)
        for axis, half in zip(axes, halves, strict=True)
    )
    between = jnp.sum(every * (centres[0] - centres[1]), axis=1)
    apart = lax.stop_gradient(jnp.abs(between) - reach)
    # a small bias, so that round-off does not choose between equal axes
    apart = apart - 1e-9 * jnp.max(jnp.abs(reach)) * np.arange(6)
    chosen = jnp.argmax(apart)
    n = every[chosen] * jnp.where(between[chosen] >= 0, 1.0, -1.0)
    below = _face(centres[0], axes[0], halves[0], -n)
    above = _face(centres[1], axes[1], halves[1], n)
    gaps, points, there = [], [], []
    for face, other, sign in ((below, above, -1.0), (above, below, 1.0)):
        x = face.corners()
        reach = other.along(x, n)
        gaps.append(sign * reach)
        points.append(x + 0.5 * reach[:, None] * n)
        there.append(other.covers(x + reach[:, None] * n))
    gap, point, crossing = _crossings(below.corners(), above.corners(), n)
    gap = jnp.concatenate([*gaps, gap])
    there = jnp.concatenate([*there, crossing]) & jnp.isfinite(gap)
    gap = jnp.where(there, gap, FAR)
    point = jnp.where(there[:, None], jnp.concatenate([*points, point]), centres[0])
    return Touch(gap, point, jnp.broadcast_to(n, point.shape))


def _face(centre, axes, half, n) -> _Face:
    """Face of a box whose outward normal is closest to the direction `n`."""
    towards = jnp.sum(axes * n[:, None], axis=0)
    i = jnp.argmax(jnp.abs(lax.stop_gradient(towards)))
    outwards = axes[:, i] * jnp.where(towards[i] >= 0, 1.0, -1.0)
    edge = lambda k: axes[:, (i + k) % 3] * half[(i + k) % 3]
    return _Face(centre + half[i] * outwards, outwards, edge(1), edge(2))


def _crossings(first, second, n):
    """Crossings of the edges of two polygons (4, 3) as seen along `n`: gaps (16,) along `n`, points
    (16, 3) and whether each pair of edges crosses."""
    d, e = jnp.roll(first, -1, axis=0) - first, jnp.roll(second, -1, axis=0) - second
    p, d = (jnp.repeat(x, 4, axis=0) for x in (first, d))
    r, e = (jnp.tile(x, (4, 1)) for x in (second, e))
    turned = jnp.cross(n, e)
    seen = jnp.sum(turned * d, axis=1)
    crossed = jnp.abs(seen) > 1e-6 * jnp.sqrt(jnp.sum(d * d, axis=1) * jnp.sum(e * e, axis=1))
    seen = jnp.where(crossed, seen, 1.0)
    s = jnp.sum(turned * (r - p), axis=1) / seen
    t = jnp.sum(jnp.cross(n, d) * (r - p), axis=1) / seen
    inside = lambda x: (x > _CORNER) & (x < 1.0 - _CORNER)
    x, y = p + s[:, None] * d, r + t[:, None] * e
    return jnp.sum((x - y) * n, axis=1), 0.5 * (x + y), crossed & inside(s) & inside(t)
