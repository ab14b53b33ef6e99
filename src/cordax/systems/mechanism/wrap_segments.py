"""Lengths of many tendon segments past spheres and cylinders, with their derivatives.

The geometry is that of `mechanics/parts/wrapping.py`. The derivatives with respect to the end
points are written in closed form, so that forces need no automatic differentiation and all segments
share one program."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.safe import safe_arctan2, safe_norm, safe_sqrt, safe_unit
from ...mechanics.parts.wrapping import ROUND_OFF, wrap
from .kinematics import cross

#: Newton's method for the bend of a segment that passes through a surface: maximum number of
#: iterations, first guess of the sine of the angle of incidence, and tolerance [rad]
_ITERATIONS = 20
_FIRST = 1.0 - 1e-7
_TOLERANCE = 1e-14
#: wrap angle [rad] below which a wrap angle counts as zero
_GRAZING = 1e-12


class Segments(NamedTuple):
    """`length` (k,) [m] of the segments and its derivatives (k, 3) with respect to the end points,
    in surface axes."""

    length: Float[Array, " k"]
    first: Float[Array, "k 3"]
    second: Float[Array, "k 3"]


class _Planes(NamedTuple):
    """End points projected along the axis of a cylinder, or in the plane through the centre of a
    sphere.

    `l0`, `l1` (k,) are the distances from the centre, `dot` and `area` (k,) the scalar product of
    both vectors and the area they span. The unit vectors (k, 3) `out0`, `out1` point away from the
    centre, `across0`, `across1` counterclockwise across. `height` (k,) is the height of the second
    point above the first."""

    l0: Float[Array, " k"]
    l1: Float[Array, " k"]
    dot: Float[Array, " k"]
    area: Float[Array, " k"]
    out0: Float[Array, "k 3"]
    out1: Float[Array, "k 3"]
    across0: Float[Array, "k 3"]
    across1: Float[Array, "k 3"]
    height: Float[Array, " k"]


def _planes(x0, x1, cylinder: np.ndarray) -> _Planes:
    round_ = jnp.asarray(np.where(cylinder[:, None], [1.0, 1.0, 0.0], 1.0), x0.dtype)
    d0, d1 = x0 * round_, x1 * round_
    normal = cross(d0, d1)
    up = jnp.asarray(np.array([0.0, 0.0, 1.0]), x0.dtype)
    axis = jnp.where(cylinder[:, None], up, safe_unit(normal))
    out0, out1 = safe_unit(d0), safe_unit(d1)
    area = jnp.where(cylinder, normal[:, 2], safe_norm(normal))
    return _Planes(
        safe_norm(d0),
        safe_norm(d1),
        jnp.sum(d0 * d1, axis=1),
        area,
        out0,
        out1,
        cross(axis, out0),
        cross(axis, out1),
        jnp.where(cylinder, x1[:, 2] - x0[:, 2], 0.0),
    )


def _straight(x0, x1) -> Segments:
    along = safe_unit(x1 - x0)
    return Segments(safe_norm(x1 - x0), -along, along)


def _raised(plane: _Planes, flat, first, second) -> Segments:
    """Extend a path in the plane, with length `flat` and its derivatives, to a path that also rises
    by the height."""
    length = safe_sqrt(flat * flat + plane.height * plane.height)
    size = jnp.where(length > 0, length, 1.0)
    share, rise = (flat / size)[:, None], (plane.height / size)[:, None]
    up = jnp.array([0.0, 0.0, 1.0], flat.dtype)
    return Segments(length, share * first - rise * up, share * second + rise * up)


def _chosen(condition, a: Segments, b: Segments) -> Segments:
    pick = lambda x, y: jnp.where(condition if x.ndim == 1 else condition[:, None], x, y)
    return Segments(*(pick(x, y) for x, y in zip(a, b, strict=True)))


def outside(x0, x1, radius, side, cylinder: np.ndarray, sided: np.ndarray) -> Segments:
    """Segments past the outside of surfaces, from `x0` to `x1` (k, 3) [m] in surface axes.

    They go round the nearer side or, where `sided`, round the side of the points `side` (k, 3)."""
    plane = materialise(_planes(x0, x1, cylinder))
    whole = _whole_turns(plane, side, sided)
    sign = jnp.where((whole < 0) | ((whole == 0) & (plane.area < 0)), -1.0, 1.0)
    least = radius * (1.0 - ROUND_OFF)
    possible = (plane.l0 >= least) & (plane.l1 >= least) & (radius > 0)
    flat, angle = materialise(
        _around(plane.l0, plane.l1, plane.dot, sign * plane.area, radius, whole)
    )

    def slope(l, out, across, sign):
        size = jnp.where(l > 0, l, 1.0)
        radial = safe_sqrt(l * l - radius * radius) / size
        return radial[:, None] * out + (sign * radius / size)[:, None] * across

    first = slope(plane.l0, plane.out0, plane.across0, -sign)
    second = slope(plane.l1, plane.out1, plane.across1, sign)
    around, straight = _raised(plane, flat, first, second), _straight(x0, x1)
    # a segment may graze a surface in the initial configuration, where the curvature of the
    # length jumps: both paths are the same there, and their mean has the mean derivatives
    grazes = possible & (jnp.abs(angle) < _GRAZING)
    mean = Segments(*(0.5 * (x + y) for x, y in zip(around, straight, strict=True)))
    return _chosen(grazes, mean, _chosen(possible & (angle > 0), around, straight))


@jax.custom_jvp
def _around(l0, l1, dot, area, radius, whole):
    """Length (k,) [m] of the path round the circle, and the angle (k,) [rad] of its arc.

    The length is `sqrt(l0^2 - r^2) + sqrt(l1^2 - r^2) + r angle`. The angle is negative where the
    tangents do not reach the circle. It is the angle between the end points minus `arccos(r/l)` at
    both ends; one arctan2 computes all three. The angle between the end points has the direction
    (`dot`, `area`) and is above pi where `whole` is not zero."""
    h0, h1 = safe_sqrt(l0 * l0 - radius * radius), safe_sqrt(l1 * l1 - radius * radius)
    c, s = radius * radius - h0 * h1, radius * (h0 + h1)
    angle = safe_arctan2(area * c - dot * s, dot * c + area * s)
    angle = jnp.where((whole != 0) & (angle < 0), angle + 2.0 * jnp.pi, angle)
    return h0 + h1 + radius * angle, angle


@_around.defjvp
def _around_jvp(values, rates):
    """Derivative of the length, finite also for end points on the surface. The angle only decides
    between paths and has no derivative."""
    l0, l1, dot, area, radius, _ = values
    l0_rate, l1_rate, dot_rate, area_rate, radius_rate, _ = rates
    length, angle = _around(*values)
    slope = lambda l: safe_sqrt(l * l - radius * radius) / jnp.where(l > 0, l, 1.0)
    square = dot * dot + area * area
    turned = (dot * area_rate - area * dot_rate) / jnp.where(square > 0, square, 1.0)
    rate = slope(l0) * l0_rate + slope(l1) * l1_rate + radius * turned + angle * radius_rate
    return (length, angle), (rate, jnp.zeros_like(angle))


def _whole_turns(plane: _Planes, side, sided: np.ndarray):
    """Whole turns (k,), -1, 0 or 1, of the path past the side point relative to the shortest
    path."""
    if not sided.any():
        return jnp.zeros_like(plane.dot)
    inner = lambda a, b: jnp.sum(a * b, axis=1)
    x, y = inner(plane.out0, side), inner(plane.across0, side)
    side_to_end = x * inner(plane.across0, plane.out1) - y * inner(plane.out0, plane.out1)
    towards = x * inner(plane.out0, plane.out1) + y * inner(plane.across0, plane.out1)
    left = lambda area, dot: (area > 0) | ((area == 0) & (dot < 0))
    both_left = left(y, x) & left(side_to_end, towards)
    both_right = (y < 0) & (side_to_end < 0)
    turned_left = left(plane.area, plane.dot)
    up, down = both_left & (plane.area < 0), both_right & turned_left
    whole = jnp.where(up, 1.0, jnp.where(down, -1.0, 0.0))
    return jnp.where(sided, whole, 0.0)


def inside(x0, x1, radius, cylinder: np.ndarray) -> Segments:
    """Segments through surfaces, bent at one point of the rim where the straight line would miss
    the surface."""
    plane = materialise(_planes(x0, x1, cylinder))
    flip = plane.area < 0
    dd = plane.l0**2 + plane.l1**2 - 2.0 * plane.dot
    along = (plane.l0**2 - plane.dot) / jnp.where(dd > 0, dd, 1.0)
    nearest = safe_sqrt(plane.l0**2 - along * along * dd)
    crosses = (along > 0) & (along < 1) & (nearest <= radius)
    away = (plane.l0 > radius) & (plane.l1 > radius) & (radius > 0)
    misses = away & ~crosses
    l0, l1 = (jnp.where(misses, l, 2.0 * radius + 1.0) for l in (plane.l0, plane.l1))
    turn = jnp.where(misses, safe_arctan2(jnp.abs(plane.area), plane.dot), 0.5)
    bend0, bend1 = _bend(radius / l0, radius / l1, turn)
    # counterclockwise from the first point, or from the second where that is on the right
    angle0 = jnp.where(flip, -(turn - bend1), bend0)
    angle1 = jnp.where(flip, bend1, -(turn - bend0))

    def leg(l, out, across, angle):
        """Length from an end point to the bend, and its derivative with respect to the end
        point."""
        gap = jnp.stack([l - radius * jnp.cos(angle), -radius * jnp.sin(angle)])
        size = jnp.sqrt(jnp.sum(gap * gap, axis=0))
        return size, (gap[0] / size)[:, None] * out + (gap[1] / size)[:, None] * across

    before, first = leg(l0, plane.out0, plane.across0, angle0)
    after, second = leg(l1, plane.out1, plane.across1, angle1)
    return _chosen(misses, _raised(plane, before + after, first, second), _straight(x0, x1))


def _bend(A, B, turn):
    """Angles (k,) [rad] from both end points to the bend.

    `A` and `B` are the ratios of the radius to the distances of the end points, and `turn` is the
    angle between them. Newton's method solves for the sine z of the angle of incidence: `asin(A z)
    + asin(B z) - 2 asin(z) + turn = 0`."""
    error = lambda z, A, B, turn: jnp.arcsin(A * z) + jnp.arcsin(B * z) - 2.0 * jnp.arcsin(z) + turn
    root = lambda c, z: 1.0 / jnp.sqrt(jnp.maximum(1.0 - (c * z) ** 2, 1e-30))
    slope = lambda z: a * root(a, z) + b * root(b, z) - 2.0 * root(1.0, z)
    a, b, t = (lax.stop_gradient(x) for x in (A, B, turn))

    def step(state):
        z, f, count = state
        new = jnp.clip(jnp.where(jnp.abs(f) > _TOLERANCE, z - f / slope(z), z), 0.0, _FIRST)
        return new, error(new, a, b, t), count + 1

    begin = jnp.full_like(a, _FIRST)
    start = error(begin, a, b, t)
    more = lambda state: jnp.any(jnp.abs(state[1]) > _TOLERANCE) & (state[2] < _ITERATIONS)
    # where the first error is positive, the angle of incidence is too close to a right angle to be
    # resolved: keep the first guess
    z, _, _ = lax.while_loop(more, step, (begin, jnp.where(start > 0, 0.0, start), 0))
    # keep the value of the last iterate, with the derivatives of the exact solution
    f = error(z, A, B, turn)
    z = z - (f - lax.stop_gradient(f)) / lax.stop_gradient(slope(z))
    return jnp.arcsin(z) - jnp.arcsin(A * z), jnp.arcsin(z) - jnp.arcsin(B * z)


def by_half_planes(x0, x1, radius, side, cylinder: np.ndarray, sided: np.ndarray) -> Segments:
    """Same as `outside`, with the interpretation of side points before MuJoCo 4.0."""

    def length(ends, radius, side, cylinder, sided):
        path = lambda **kind: wrap(ends[0], ends[1], radius, side_rule="3", **kind).length
        with_side = [path(cylinder=kind, side=side) for kind in (True, False)]
        without = [path(cylinder=kind) for kind in (True, False)]
        pick = lambda pair: jnp.where(cylinder, *pair)
        return jnp.where(sided, pick(with_side), pick(without))

    ends = jnp.stack([x0, x1], axis=1)
    value, slope = jax.vmap(jax.value_and_grad(length))(ends, radius, side, cylinder, sided)
    return Segments(value, slope[:, 0], slope[:, 1])
