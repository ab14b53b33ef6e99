"""Wrapping surfaces, around which a cable bends.

Each surface is described in its own axes, and computes the shortest path of a cable past it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_positive, require_values
from ..._base.precision import float_field
from ...math.safe import safe_norm, safe_unit
from .geodesics import contact, deepest, geodesic_end, length_past
from .wrapping import ROUND_OFF, WrappedPath, wrap

#: number of faces of a drawn surface around and along its axis
_ROUND, _ALONG = 20, 8
#: default length of a drawn cylinder, in radii
_DRAWN = 6.0


class Surface(eqx.Module):
    """A smooth wrapping surface about the origin of its own axes."""

    def path(self, x0, x1, side, inside: bool, width) -> WrappedPath:
        """Shortest path from `x0` to `x1` (3,) [m] past the surface. A point `side` (3,) [m],
        or None, chooses the side; `inside` and `width` [rad] as for `wrapping.wrap`."""
        raise NotImplementedError

    def check_options(self, side, inside: bool) -> None:
        """Raise if the surface does not support a side point or a cable that passes through it."""

    def level(self, x) -> Float[Array, ""]:
        """Level function of a point (3,) [m]: negative inside the surface, zero on it and positive
        outside; near the surface approximately the distance from it [m]."""
        raise NotImplementedError

    def encloses(self, x):
        """Whether a point (3,) [m] is inside by more than round-off."""
        return self.level(x) < -1e3 * ROUND_OFF * self.size()

    def size(self) -> Float[Array, ""]:
        """Characteristic length [m] of the surface."""
        raise NotImplementedError

    def curve(self, path: WrappedPath, along, shares) -> Float[Array, "k 3"]:
        """Points [m] at fractions `shares` (k,) of the arc of a path, which begins in direction
        `along` (3,), for drawing."""
        raise NotImplementedError

    def grid(self, around, upward) -> Float[Array, "3"]:
        """Point (3,) [m] of the surface at an angle `around` the axis, in [0, 2 pi], and a fraction
        `upward` along it, in [0, 1], for drawing."""
        raise NotImplementedError

    def faces(self) -> Float[Array, "f 4 3"]:
        """Corners [m] of the faces for drawing."""
        turn, share = np.linspace(0.0, 2.0 * np.pi, _ROUND + 1), np.linspace(0.0, 1.0, _ALONG + 1)
        points = jnp.stack([jnp.stack([self.grid(a, b) for b in share]) for a in turn])
        corners = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
        return jnp.stack(corners, axis=2).reshape(-1, 4, 3)


class SphereSurface(Surface):
    """A sphere with a `radius` [m]."""

    radius: Float[Array, ""] = float_field(unit="m")

    def __check_init__(self):
        require_positive("radius", self.radius)

    def path(self, x0, x1, side, inside, width):
        return wrap(x0, x1, self.radius, cylinder=False, side=side, inside=inside, width=width)

    def level(self, x):
        return (jnp.sum(x * x) / self.radius - self.radius) / 2.0

    def size(self):
        return self.radius

    def curve(self, path, along, shares):
        outward = safe_unit(path.first)
        onward = safe_unit(along - outward * jnp.sum(outward * along))
        angle = (path.angle * shares)[:, None]
        return self.radius * (jnp.cos(angle) * outward + jnp.sin(angle) * onward)

    def grid(self, around, upward):
        s, c = np.sin(np.pi * upward), -np.cos(np.pi * upward)
        return self.radius * np.array([s * np.cos(around), s * np.sin(around), c])


class CylinderSurface(Surface):
    """A cylinder with a `radius` [m] about its z axis. For the cable its length is infinite;
    `length` [m] is used for drawing, six radii unless given."""

    radius: Float[Array, ""] = float_field(unit="m")
    length: Float[Array, ""] = float_field(unit="m", default=0.0)

    def __check_init__(self):
        require_positive("radius", self.radius)
        require_positive("length", self.length, zero_allowed=True)

    def path(self, x0, x1, side, inside, width):
        return wrap(x0, x1, self.radius, cylinder=True, side=side, inside=inside, width=width)

    def level(self, x):
        return (jnp.sum(x[:2] * x[:2]) / self.radius - self.radius) / 2.0

    def size(self):
        return self.radius

    def curve(self, path, along, shares):
        x, y = path.first[0], path.first[1]
        sign = jnp.where(x * along[1] - y * along[0] < 0, -1.0, 1.0)
        angle = sign * path.angle * shares
        c, s = jnp.cos(angle), jnp.sin(angle)
        height = path.first[2] + shares * (path.second[2] - path.first[2])
        return jnp.stack([c * x - s * y, s * x + c * y, height], axis=1)

    def grid(self, around, upward):
        length = jnp.where(self.length > 0, self.length, _DRAWN * self.radius)
        # the ends are closed by rings of faces
        inner = 1e-6 < upward < 1.0 - 1e-6
        rim = (
            self.radius * np.array([np.cos(around), np.sin(around), 0.0]) * (1.0 if inner else 0.0)
        )
        share = np.clip((upward * _ALONG - 1.0) / (_ALONG - 2.0), 0.0, 1.0)
        return rim + length * (share - 0.5) * np.array([0.0, 0.0, 1.0])


class GeodesicSurface(Surface):
    """A smooth convex surface given by its `level` alone; the path on it is a geodesic, computed
    numerically. The absolute value of `level` must be at most the distance from the surface. To
    define a new surface, derive a class with `level`, `size`, `regular_point` and `grid`."""

    def regular_point(self) -> Float[Array, " 3"]:
        """A point (3,) [m] of the surface that has the y axis as a tangent."""
        raise NotImplementedError

    def check_options(self, side, inside):
        if side is not None or inside:
            kind = type(self).__name__
            raise ValueError(f"side and inside are not supported for {kind}: it is passed outside")

    def path(self, x0, x1, side, inside, width):
        at = contact(self, x0, x1)
        straight = safe_norm(x1 - x0)
        around = length_past(self, x0, x1)
        share = jnp.clip(at.turn / jnp.where(width > 0, width, 1.0), 0.0, 1.0)
        share = share * share * share * (10.0 + share * (6.0 * share - 15.0))
        share = jnp.where(width > 0, share, 1.0)
        length = straight + share * (around - straight)
        here = x0 + deepest(self, x0, x1)[0] * (x1 - x0)
        first, second = (jnp.where(at.touches, x, here) for x in (at.first, at.second))
        turn = jnp.where(at.touches, at.turn, 0.0)
        return WrappedPath(length, turn, first, second, at.touches, turn)

    def curve(self, path, along, shares):
        straight = safe_norm(path.second - path.first)
        chord = jnp.where(path.turn > 1e-6, 0.5 * path.turn, 1.0)
        # the length of an arc of constant curvature between the two points
        arc = straight * jnp.where(path.turn > 1e-6, chord / jnp.sin(jnp.minimum(chord, 1.5)), 1.0)
        return jax.vmap(lambda s: geodesic_end(self, path.first, along, s * arc)[0])(shares)


class EllipsoidSurface(GeodesicSurface):
    """An ellipsoid with semi-axes `semi_axes` (3,) [m]."""

    semi_axes: Float[Array, " 3"] = float_field(unit="m")

    def __check_init__(self):
        require_positive("semi_axes", self.semi_axes)

    def level(self, x):
        scaled = x / self.semi_axes
        return jnp.min(self.semi_axes) * (safe_norm(scaled) - 1.0)

    def size(self):
        return jnp.max(self.semi_axes)

    def regular_point(self):
        return self.semi_axes * jnp.array([1.0, 0.0, 0.0])

    def grid(self, around, upward):
        s, c = np.sin(np.pi * upward), -np.cos(np.pi * upward)
        return self.semi_axes * np.array([s * np.cos(around), s * np.sin(around), c])


class TorusSurface(GeodesicSurface):
    """A torus about its z axis: a tube of `tube_radius` [m] around a circle of `ring_radius` [m].
    The cable bends around it only where the straight line is deepest in the tube.
    """

    ring_radius: Float[Array, ""] = float_field(unit="m")
    tube_radius: Float[Array, ""] = float_field(unit="m")

    def __check_init__(self):
        require_positive("tube_radius", self.tube_radius)
        require_values(
            "ring_radius",
            lambda ring, tube: ring > tube,
            self.ring_radius,
            self.tube_radius,
            expected="more than the tube_radius",
        )

    def level(self, x):
        beside = safe_norm(x[:2]) - self.ring_radius
        return safe_norm(jnp.stack([beside, x[2]])) - self.tube_radius

    def size(self):
        return self.tube_radius

    def regular_point(self):
        return (self.ring_radius + self.tube_radius) * jnp.array([1.0, 0.0, 0.0])

    def grid(self, around, upward):
        tube = 2.0 * np.pi * upward
        out = self.ring_radius + self.tube_radius * np.cos(tube)
        height = self.tube_radius * np.sin(tube)
        return jnp.stack([out * np.cos(around), out * np.sin(around), height])
