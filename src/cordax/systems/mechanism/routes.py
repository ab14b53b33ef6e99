"""The way of a cable: from a body over guides to another body.

A guide is an eyelet or a pulley carried by any body, the ground included. Every straight part and
every arc follows from the poses of the carriers alone, so forces on all of them are the gradient of
the length.

In the plane of a pulley with unit normal n, a cable that travels along t passes a centre c at the
tangent point `c - rho n x t`: rho is the radius with a sign, positive where the cable goes round
counterclockwise. Two guides with signed radii share a tangent of length `sqrt(D^2 - (rho_j -
rho_i)^2)`; an eyelet is a pulley without radius. A point beside the plane adds its distance to the
straight part."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._checks import known_values, require, require_positive, require_shape
from ..._precision import float_field
from ...math.safe import safe_norm, safe_sqrt, safe_unit
from ...mechanics.exits import over_pulley, tangent_square
from .body import WORLD
from .kinematics import cross

#: points that an arc is drawn with
_ARC = 9


class Frame(NamedTuple):
    """Pose of a body: axes (3, 3) and origin (3,) [m] in the world."""

    R: Float[Array, "3 3"]
    p: Float[Array, " 3"]

    def point(self, x):
        """World position (3,) of a point of the body."""
        return self.p + self.direction(x)

    def direction(self, x):
        """World components (3,) of a vector of the body."""
        return jnp.sum(self.R * x, axis=1)


class Guide(eqx.Module):
    """Something on a `body` that a cable is attached to or led by."""

    body: eqx.AbstractVar[str]
    at: eqx.AbstractVar[Float[Array, " 3"]]


class Eyelet(Guide):
    """A point (3,) [m] of a body; at the ends of a cable, where it is attached."""

    body: str = eqx.field(static=True, default=WORLD)
    at: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 0.0))

    def __check_init__(self):
        require_shape("at", self.at, (3,))


class Pulley(Guide):
    """A pulley of a `radius` [m] (at the centre line of the cable) with its centre `at` (3,) [m]
    and its `axis` (3,), a unit vector, in the body that carries it. The cable goes round it
    counterclockwise about the axis, or clockwise with `clockwise`; `turns` counts whole windings
    beyond the arc it lies on. At an end of a cable it is a drum: the arc is counted from the
    direction `zero` (3,), perpendicular to the axis, in which a cable leaves it at no arc."""

    body: str = eqx.field(static=True)
    at: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))
    zero: Float[Array, " 3"] = float_field(default=(1.0, 0.0, 0.0))
    clockwise: bool = eqx.field(static=True, default=False)
    turns: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        require_shape("at", self.at, (3,))
        require_positive("radius", self.radius)
        axis, zero = known_values(self.axis), known_values(self.zero)
        if axis is not None and axis.shape == (3,):
            require(bool(abs(np.linalg.norm(axis) - 1) < 1e-5), "axis", axis, "a unit vector")
            if zero is not None and zero.shape == (3,):
                ok = abs(axis @ zero) < 1e-5 and abs(np.linalg.norm(zero) - 1) < 1e-5
                require(bool(ok), "zero", zero, "a unit vector perpendicular to the axis")


class SwivelPulley(Guide):
    """A pulley of a `radius` [m] that swivels about the `axis` (3,), a unit vector, through the
    point `at` (3,) [m] of its carrier and has no inertia: the cable comes along that axis, from
    below, and the pulley always faces the next guide. The first guide of a cable only; its arc
    counts from the axis (`mechanics.exits.PulleyExit` on any body)."""

    body: str = eqx.field(static=True)
    at: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_positive("radius", self.radius)

    def length(self, frame: Frame, x):
        """Arc and straight part to a world point (3,), the straight part, and how far that point is
        from the rim [m^2]."""
        d, up = x - frame.point(self.at), frame.direction(self.axis)
        height = jnp.sum(d * up)
        aside = safe_norm(d - up * height)
        square = tangent_square(aside, height, self.radius)
        return over_pulley(aside, height, self.radius), safe_sqrt(square), square


class RouteState(NamedTuple):
    """Of a cable with k segments: `parts` (k,) [m], lengths whose gradients are the directions of
    the segments (arcs shared between them); `straight` (k,) [m]; `wrap` (k - 1,) [rad], the angle
    by which the cable turns at each inner guide."""

    parts: Float[Array, " k"]
    straight: Float[Array, " k"]
    wrap: Float[Array, " k-1"]


class Route(eqx.Module):
    """Guides in order, the ends included."""

    guides: tuple[Guide, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        enough = len(self.guides) >= 2
        require(enough, "guides", len(self.guides), "two or more, the ends included")
        for a, b in zip(self.guides[:-1], self.guides[1:], strict=True):
            if isinstance(a, Pulley) and isinstance(b, Pulley):
                _check_common_plane(a, b)
            require(
                not isinstance(b, SwivelPulley),
                "guides",
                "a SwivelPulley among them",
                "a SwivelPulley as the first only",
            )
            if isinstance(a, SwivelPulley):
                require(isinstance(b, Eyelet), "guides", type(b).__name__, "an Eyelet after it")

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(g.body for g in self.guides)

    def at(self, frames: Sequence[Frame]) -> RouteState:
        """Lengths and angles with the guides' bodies at `frames`."""
        places = [f.point(g.at) for g, f in zip(self.guides, frames, strict=True)]
        normals = [
            f.direction(g.axis) if isinstance(g, Pulley) else None
            for g, f in zip(self.guides, frames, strict=True)
        ]
        segments = [
            _segment(places[i], places[i + 1], normals[i], normals[i + 1], *self._radii(i))
            for i in range(len(places) - 1)
        ]
        if isinstance(self.guides[0], SwivelPulley):
            whole, straight, _ = self.guides[0].length(frames[0], places[1])
            segments[0] = straight, segments[0][1]
            parts = [whole, *(straight for straight, _ in segments[1:])]
        else:
            parts = [straight for straight, _ in segments]
        wrap = []
        last = len(self.guides) - 1
        for i, (guide, frame) in enumerate(zip(self.guides, frames, strict=True)):
            into = segments[i - 1][1] if i > 0 else None
            out = segments[i][1] if i < last else None
            if not isinstance(guide, Pulley):
                if into is not None and out is not None:
                    turn = safe_norm(cross(into, out))
                    wrap.append(jnp.arctan2(turn, jnp.sum(into * out)))
                continue
            sign = -1.0 if guide.clockwise else 1.0
            angles = [_angle(guide, frame, x) for x in (into, out)]
            arc = sign * ((angles[1] if i < last else 0.0) - (angles[0] if i > 0 else 0.0))
            # whole turns do not change along a motion that is continuous, and have no derivative
            whole = 2.0 * jnp.pi * (guide.turns - jnp.floor(lax.stop_gradient(arc) / (2 * jnp.pi)))
            if 0 < i < last:
                wrap.append(arc + whole)
                parts[i] = parts[i] + guide.radius * whole
            if i < last:
                parts[i] = parts[i] + sign * guide.radius * angles[1]
            if i > 0:
                parts[i - 1] = parts[i - 1] - sign * guide.radius * angles[0]
        stack = lambda x: jnp.stack(x) if x else jnp.zeros(0, places[0].dtype)
        return RouteState(stack(parts), stack([s for s, _ in segments]), stack(wrap))

    def line(self, frames: Sequence[Frame]) -> Float[Array, "m 3"]:
        """The cable as drawn [m]: its ends and the arcs on inner pulleys, whole turns left out; on
        a drum from where it leaves, on a `SwivelPulley` from the point it swivels about."""
        places = [f.point(g.at) for g, f in zip(self.guides, frames, strict=True)]
        normals = [
            f.direction(g.axis) if isinstance(g, Pulley) else None
            for g, f in zip(self.guides, frames, strict=True)
        ]
        ways = [
            _segment(places[i], places[i + 1], normals[i], normals[i + 1], *self._radii(i))[1]
            for i in range(len(places) - 1)
        ]
        points, last = [], len(places) - 1
        for i, (guide, place, n) in enumerate(zip(self.guides, places, normals, strict=True)):
            if not isinstance(guide, Pulley) or n is None:
                points.append(place[None])
                continue
            sign = -1.0 if guide.clockwise else 1.0
            into = ways[max(i - 1, 0)]
            out = ways[min(i, last - 1)]
            turn = jnp.arctan2(jnp.sum(n * cross(into, out)), jnp.sum(into * out))
            turn = sign * jnp.mod(sign * turn, 2.0 * jnp.pi)
            angles = (turn * jnp.linspace(0.0, 1.0, _ARC))[:, None]
            # n x t for the direction of travel t, which turns from `into` to `out`
            aside = jnp.cos(angles) * cross(n, into) - jnp.sin(angles) * into
            points.append(place - sign * guide.radius * aside)
        return jnp.concatenate(points)

    def reach(self, frames: Sequence[Frame]) -> Float[Array, " k"]:
        """Positive where each segment exists [m^2]: no guide inside a pulley."""
        places = [f.point(g.at) for g, f in zip(self.guides, frames, strict=True)]
        values = []
        for i in range(len(places) - 1):
            d = places[i + 1] - places[i]
            a, b = self._radii(i)
            normal = next(
                (
                    frames[j].direction(self.guides[j].axis)  # pyright: ignore
                    for j in (i, i + 1)
                    if isinstance(self.guides[j], Pulley)
                ),
                None,
            )
            if normal is not None:
                d = d - normal * jnp.sum(normal * d)
            values.append(jnp.sum(d * d) - (b - a) ** 2)
        if isinstance(self.guides[0], SwivelPulley):
            values[0] = self.guides[0].length(frames[0], places[1])[2]
        return jnp.stack(values)

    def _radii(self, i: int):
        return tuple(
            0.0 if not isinstance(g, Pulley) else (-g.radius if g.clockwise else g.radius)
            for g in self.guides[i : i + 2]
        )


def _segment(x, y, n_x, n_y, rho_x, rho_y):
    """Length of the straight part and its direction (3,) in the plane of the pulleys."""
    d = y - x
    n = n_x if n_x is not None else n_y
    if n is None:
        return safe_norm(d), safe_unit(d)
    beside = jnp.sum(n * d)
    e = d - n * beside
    square = jnp.sum(e * e)
    delta = rho_y - rho_x
    h = safe_sqrt(square - delta**2)
    D = jnp.where(square > 0, square, 1.0)
    t = (h * e - delta * cross(n, e)) / D
    return safe_sqrt(h * h + beside * beside), t


def _angle(guide: Pulley, frame: Frame, t):
    """Direction of travel t about the pulley's axis, from `zero` [rad]."""
    if t is None:
        return 0.0
    a = frame.direction(guide.zero)
    b = frame.direction(cross(guide.axis, guide.zero))
    return jnp.arctan2(jnp.sum(t * b), jnp.sum(t * a))


def _check_common_plane(a: Pulley, b: Pulley) -> None:
    known = [known_values(g.axis) for g in (a, b)]
    if a.body == b.body and all(k is not None for k in known):
        parallel = abs(abs(float(known[0] @ known[1])) - 1.0) < 1e-6  # pyright: ignore
        expected = "pulleys in one plane next to each other, or an eyelet between them"
        require(parallel, "guides", "two pulleys with axes that cross", expected)
