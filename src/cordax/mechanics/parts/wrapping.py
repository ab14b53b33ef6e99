"""Shortest paths of a cable around a sphere or a cylinder, in closed form.

Seen along the axis of a cylinder, or in the plane of both end points and the centre of a sphere,
the surface is a circle of radius r. End points at distances `d0` and `d1` from its centre, `phi`
apart as seen from there, are joined by two tangents and an arc of the angle `theta = phi -
arccos(r/d0) - arccos(r/d1)`. The cable touches if theta > 0; its length in the plane is then
`I(d0) + I(d1) + r phi` with `I(d) = sqrt(d^2 - r^2) - r arccos(r/d)`. The derivative of I by d is
`sqrt(d^2 - r^2)/d`, finite even if the end point is on the surface. On a cylinder the path is a
helix, so the lengths in the plane and along the axis add like the legs of a right triangle."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from ...math.safe import safe_arccos, safe_arctan2, safe_norm, safe_sqrt, safe_unit

#: rules by which a side point chooses the path: that of MuJoCo 4.0 and the earlier one
SIDE_RULES = ("4.0", "3")
#: largest number of iterations for the point of reflection inside a surface
_ITERATIONS = 60
#: fraction of the radius by which round-off may move a point of the surface inside
ROUND_OFF = 1e-9


class WrappedPath(NamedTuple):
    """Path of one cable past one surface: `length` [m] from end point to end point; wrap
    `angle` [rad] about the centre or axis, zero without contact; `first` and `second` (3,)
    [m], where it meets and leaves the surface, in the axes of the surface (if it does not touch,
    both are the point nearest to the surface); whether it `touches`; and its `turn` [rad], the
    integral of its curvature along the surface, which is less than `angle` on a helix."""

    length: Float[Array, ""]
    angle: Float[Array, ""]
    first: Float[Array, " 3"]
    second: Float[Array, " 3"]
    touches: Bool[Array, ""]
    turn: Float[Array, ""]


class _Plane(NamedTuple):
    """End points `d0`, `d1` (2,) [m] and a side point (2,) or None in the plane of the circle,
    heights `z0`, `z1` [m] above it, and the vectors (2, 3) that span it."""

    d0: Float[Array, " 2"]
    d1: Float[Array, " 2"]
    side: Float[Array, " 2"] | None
    z0: Float[Array, ""]
    z1: Float[Array, ""]
    span: Float[Array, "2 3"]


def wrap(
    x0,
    x1,
    radius,
    *,
    cylinder: bool,
    side=None,
    inside: bool = False,
    width=0.0,
    side_rule: str = "4.0",
) -> WrappedPath:
    """Shortest path from `x0` to `x1` (3,) [m] past a sphere of a `radius` [m] about the origin or
    a `cylinder` of infinite length about the z axis; all points in the axes of the surface.

    - `side` (3,) [m]: a point outside the surface. The cable goes around the surface on the same
      side as the path from `x0` over `side` to `x1`; without it, around the nearer side.
    - `inside`: the cable passes through the surface, which acts as a ring: if the straight line
      would miss the ring, the cable bends at one point of its rim.
    - `width` [rad]: wrap angle over which the second derivative of the length, which jumps when the
      cable begins to touch, changes smoothly; zero for the exact length.
    - `side_rule`: "4.0", or "3" for the half-plane rule of MuJoCo before 4.0. In some poses the
      latter differs from MuJoCo 3.17 by one whole turn about the surface.

    If an end point is inside the surface, the path is the straight line."""
    plane = _cylinder_plane(x0, x1, side) if cylinder else _sphere_plane(x0, x1, side)
    straight = safe_norm(x1 - x0)
    l0, l1 = safe_norm(plane.d0), safe_norm(plane.d1)
    least = radius * (1.0 - ROUND_OFF)
    outside = (l0 >= least) & (l1 >= least) & (radius > 0)
    if inside:
        return _through(plane, straight, radius, outside & (l0 > radius) & (l1 > radius))
    turn, sign, allowed = _direction(plane, l0, l1, radius, side_rule)
    angle = turn - safe_arccos(_ratio(radius, l0)) - safe_arccos(_ratio(radius, l1))
    flat = involute(l0, radius) + involute(l1, radius) + radius * turn
    dz = plane.z1 - plane.z0
    around = safe_sqrt(flat * flat + dz * dz) if cylinder else flat
    share = jnp.where(outside & allowed, _step(angle, width), 0.0)
    touches = outside & allowed & (angle > 0)
    length = straight + jnp.where(share > 0, share * (around - straight), 0.0)
    first, second = _tangent_points(plane, l0, l1, radius, sign, flat, angle)
    nearest = _nearest(plane, x0, x1)
    pick = lambda point: jnp.where(touches, point, nearest)
    angle = jnp.where(touches, angle, 0.0)
    turned = angle * flat / jnp.where(around > 0, around, 1.0)
    return WrappedPath(length, angle, pick(first), pick(second), touches, turned)


@jax.custom_jvp
def involute(d, r):
    """`sqrt(d^2 - r^2) - r arccos(r/d)` [m]: length of a tangent from distance `d` [m] minus the
    arc of the circle of radius `r` [m] below it; zero for d <= r."""
    return safe_sqrt(d * d - r * r) - r * safe_arccos(_ratio(r, d))


@involute.defjvp
def _involute_jvp(values, rates):
    (d, r), (d_rate, r_rate) = values, rates
    angle = safe_arccos(_ratio(r, d))
    slope = safe_sqrt(d * d - r * r) / jnp.where(d > 0, d, 1.0)
    return involute(d, r), slope * d_rate - angle * r_rate


def _ratio(r, d):
    return r / jnp.where(d > 0, d, 1.0)


def _step(angle, width):
    """Smooth step from 0 to 1 over angles within `width` of zero, twice differentiable; a jump if
    `width` is 0."""
    s = jnp.clip(0.5 * (1.0 + angle / jnp.where(width > 0, width, 1.0)), 0.0, 1.0)
    smooth = s * s * s * (10.0 + s * (6.0 * s - 15.0))
    return jnp.where(width > 0, smooth, jnp.where(angle > 0, 1.0, 0.0))


def _cylinder_plane(x0, x1, side) -> _Plane:
    span = jnp.eye(2, 3, dtype=x0.dtype)
    return _Plane(x0[:2], x1[:2], None if side is None else side[:2], x0[2], x1[2], span)


def _sphere_plane(x0, x1, side) -> _Plane:
    """Plane through the centre and both points; its first axis points to `x0`."""
    normal = _cross(x0, x1)
    area, l0 = safe_norm(normal), safe_norm(x0)
    along = safe_unit(x0)
    across = _cross(safe_unit(normal), along)
    span, zero = jnp.stack([along, across]), jnp.zeros_like(l0)
    size = jnp.where(l0 > 0, l0, 1.0)
    d0 = jnp.stack([l0, zero])
    d1 = jnp.stack([jnp.sum(x0 * x1), area]) / size
    in_plane = None if side is None else jnp.sum(span * side, axis=1)
    return _Plane(d0, d1, in_plane, zero, zero, span)


def _direction(plane: _Plane, l0, l1, radius, side_rule: str):
    """Angle [rad] by which the path turns about the centre, the sign of that turn, and whether the
    path may touch at all."""
    turn = _angle(plane.d0, plane.d1)
    always = jnp.ones_like(turn, bool)
    if plane.side is None:
        sign = jnp.where(turn < 0, -1.0, 1.0)
        return sign * turn, sign, always
    if side_rule == "3":
        return _half_plane_rule(plane, turn, l0, l1, radius)
    over_side = _angle(plane.d0, plane.side) + _angle(plane.side, plane.d1)
    # the number of whole turns has no derivative: the side point only chooses among paths
    whole = jnp.round(lax.stop_gradient(over_side - turn) / (2.0 * jnp.pi))
    turn = turn + 2.0 * jnp.pi * whole
    sign = jnp.where(turn < 0, -1.0, 1.0)
    return sign * turn, sign, always


def _half_plane_rule(plane: _Plane, turn, l0, l1, radius):
    """Rule of MuJoCo before 4.0: the cable touches if the straight line crosses the circle or
    passes the centre on the side opposite to the side point. It goes around on the side whose
    tangent points are nearer to the side point."""
    assert plane.side is not None
    d0, d1, side = (lax.stop_gradient(x) for x in (plane.d0, plane.d1, safe_unit(plane.side)))
    near = _nearest_in_plane(d0, d1)
    allowed = (jnp.sum(near * near) <= radius * radius) | (jnp.sum(near * side) < 0)
    a0, a1 = safe_arccos(_ratio(radius, l0)), safe_arccos(_ratio(radius, l1))
    goods, turns = [], []
    for sign in (1.0, -1.0):
        first, second = _tangent(d0, l0, radius, sign), _tangent(d1, l1, radius, -sign)
        crossing = _cross_each_other(d0, first, d1, second)
        goods.append(jnp.where(crossing, -1e4, jnp.sum(safe_unit(first + second) * side)))
        way = sign * turn
        # the arc must not be negative: if the angle is too small, whole turns are added
        whole = jnp.ceil(lax.stop_gradient(a0 + a1 - way) / (2.0 * jnp.pi))
        turns.append(way + 2.0 * jnp.pi * whole)
    one = goods[0] >= goods[1]
    allowed = allowed & (jnp.where(one, goods[0], goods[1]) > -1e3)
    return jnp.where(one, turns[0], turns[1]), jnp.where(one, 1.0, -1.0), allowed


def _tangent(d, length, radius, sign):
    """Point where the tangent from `d` (2,) touches the circle, on the side given by `sign`."""
    square = jnp.where(length > 0, length * length, 1.0)
    height = safe_sqrt(length * length - radius * radius)
    aside = jnp.stack([-d[1], d[0]])
    return (radius * radius * d + sign * radius * height * aside) / square


def _cross_each_other(a, b, c, d):
    """Whether the segments ab and cd have a point in common."""
    u, w, gap = b - a, d - c, c - a
    area = u[0] * w[1] - u[1] * w[0]
    safe = jnp.where(area != 0, area, 1.0)
    s = (gap[0] * w[1] - gap[1] * w[0]) / safe
    t = (gap[0] * u[1] - gap[1] * u[0]) / safe
    return (area != 0) & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)


def _tangent_points(plane: _Plane, l0, l1, radius, sign, flat, angle):
    """Tangent points in the axes of the surface, (3,) each [m]; heights are proportional to the
    length of the unrolled path."""
    first = _tangent(plane.d0, l0, radius, sign)
    second = _tangent(plane.d1, l1, radius, -sign)
    before = safe_sqrt(l0 * l0 - radius * radius)
    share = before / jnp.where(flat > 0, flat, 1.0)
    after = (before + radius * angle) / jnp.where(flat > 0, flat, 1.0)
    return _raised(plane, first, share), _raised(plane, second, after)


def _raised(plane: _Plane, point, share):
    """Convert a point (2,) of the plane to a point (3,) at a fraction `share` of the height."""
    height = plane.z0 + share * (plane.z1 - plane.z0)
    up = jnp.array([0.0, 0.0, 1.0], point.dtype)
    return jnp.sum(point[:, None] * plane.span, axis=0) + height * up


def _through(plane: _Plane, straight, radius, outside) -> WrappedPath:
    """Path through a ring, bent at the point of the circle that makes it shortest."""
    near = _nearest_in_plane(plane.d0, plane.d1)
    misses = outside & (jnp.sum(near * near) > radius * radius)
    d0 = jnp.where(misses, plane.d0, jnp.array([2.0, 0.0]) * jnp.where(radius > 0, radius, 1.0))
    d1 = jnp.where(misses, plane.d1, jnp.array([0.0, 2.0]) * jnp.where(radius > 0, radius, 1.0))
    turn = _reflection(d0, d1, radius)
    along = d0 / safe_norm(d0)
    c, s = jnp.cos(turn), jnp.sin(turn)
    point = radius * jnp.stack([c * along[0] - s * along[1], s * along[0] + c * along[1]])
    before, after = safe_norm(point - d0), safe_norm(point - d1)
    flat, dz = before + after, plane.z1 - plane.z0
    around = safe_sqrt(flat * flat + dz * dz)
    length = jnp.where(misses, around, straight)
    bend = safe_arctan2(
        jnp.abs(_area(point - d0, d1 - point)), jnp.sum((point - d0) * (d1 - point))
    )
    here = jnp.where(misses, point, near)
    gap = jnp.where(misses, before / flat, _share(plane.d0, plane.d1))
    where = _raised(plane, here, gap)
    bend = jnp.where(misses, bend, 0.0)
    turned = 2.0 * jnp.arcsin(flat / jnp.where(around > 0, around, 1.0) * jnp.sin(0.5 * bend))
    return WrappedPath(length, bend, where, where, misses, turned)


def _reflection(d0, d1, radius):
    """Angle [rad] from `d0` (2,) to the point of the circle at which `|p - d0| + |p - d1|` is
    smallest, by Newton's method within a bracket; its derivative is that of a last Newton step."""
    total = _angle(d0, d1)

    def slopes(a, d0, d1, radius):
        """First and second derivative of the length with respect to the angle."""
        u = d0 / safe_norm(d0)
        c, s = jnp.cos(a), jnp.sin(a)
        out = jnp.stack([c * u[0] - s * u[1], s * u[0] + c * u[1]])
        tangent = jnp.stack([-out[1], out[0]])
        first, second = jnp.zeros_like(a), jnp.zeros_like(a)
        for d in (d0, d1):
            gap = radius * out - d
            size = safe_norm(gap)
            slope = jnp.sum(gap * tangent) / size
            first = first + radius * slope
            bend = radius * radius * (1.0 - slope * slope) - radius * jnp.sum(gap * out)
            second = second + bend / size
        return first, second

    still = tuple(lax.stop_gradient(x) for x in (d0, d1, radius))
    goal = lax.stop_gradient(total)
    h0, h1 = safe_norm(still[0]) - still[2], safe_norm(still[1]) - still[2]
    sign = jnp.where(goal < 0, -1.0, 1.0)

    def step(state):
        a, low, high, _, count = state
        first, second = slopes(sign * a, *still)
        first = sign * first
        low, high = jnp.where(first < 0, a, low), jnp.where(first < 0, high, a)
        newton = a - first / jnp.where(second > 0, second, 1.0)
        good = (second > 0) & (newton > low) & (newton < high)
        new = jnp.where(good, newton, 0.5 * (low + high))
        return new, low, high, jnp.abs(new - a), count + 1

    begin = jnp.abs(goal) * h0 / jnp.where(h0 + h1 > 0, h0 + h1, 1.0)
    state = (begin, jnp.zeros_like(begin), jnp.abs(goal), jnp.ones_like(begin), 0)
    more = lambda state: (state[3] > 1e-16) & (state[4] < _ITERATIONS)
    a = sign * lax.while_loop(more, step, state)[0]
    first, second = slopes(a, d0, d1, radius)
    second = lax.stop_gradient(second)
    firm = second > 1e-9 * still[2]
    return a - jnp.where(firm, first / jnp.where(firm, second, 1.0), 0.0)


def _angle(a, b):
    """Angle from `a` to `b` (2,), counterclockwise, in (-pi, pi]."""
    return safe_arctan2(_area(a, b), jnp.sum(a * b))


def _area(a, b):
    return a[0] * b[1] - a[1] * b[0]


def _cross(a, b):
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def _share(d0, d1):
    """Fraction of the segment from `d0` to `d1` up to the point nearest to the origin, in
    [0, 1]."""
    gap = d1 - d0
    square = jnp.sum(gap * gap)
    return jnp.clip(-jnp.sum(d0 * gap) / jnp.where(square > 0, square, 1.0), 0.0, 1.0)


def _nearest_in_plane(d0, d1):
    return d0 + _share(d0, d1) * (d1 - d0)


def _nearest(plane: _Plane, x0, x1):
    return x0 + _share(plane.d0, plane.d1) * (x1 - x0)
