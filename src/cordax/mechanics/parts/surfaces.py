"""Surfaces that a cable lies on where it bends round them.

Each surface is described in its own axes, and gives the shortest path of a cable past it."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_positive
from ..._base.precision import float_field
from ...math.safe import safe_unit
from .wrapping import ROUND_OFF, WrappedPath, wrap

#: faces of a drawn surface: round its axis, and along it
_ROUND, _ALONG = 20, 8
#: length of a cylinder as drawn, in radii, where none is given
_DRAWN = 6.0


class Surface(eqx.Module):
    """A smooth surface about the origin of its own axes."""

    def path(self, x0, x1, side, inside: bool, width) -> WrappedPath:
        """The shortest path from `x0` to `x1` (3,) [m] past the surface. A point `side` (3,) [m],
        or None, chooses the side; `inside` and `width` [rad] as for `wrapping.wrap`."""
        raise NotImplementedError

    def check_options(self, inside: bool) -> None:
        """Raise where a cable cannot pass through the surface as through a ring."""

    def level(self, x) -> Float[Array, ""]:
        """A function of a point (3,) [m] that is negative inside of the surface, zero on it and
        positive outside, near the surface about the distance from it [m]."""
        raise NotImplementedError

    def encloses(self, x):
        """Whether a point (3,) [m] is inside by more than round-off."""
        return self.level(x) < -1e3 * ROUND_OFF * self.size()

    def size(self) -> Float[Array, ""]:
        """A length [m] that tells large surfaces from small ones."""
        raise NotImplementedError

    def curve(self, path: WrappedPath, along, shares) -> Float[Array, "k 3"]:
        """Points [m] at `shares` (k,) of the arc of a path, which begins in direction `along` (3,),
        for pictures."""
        raise NotImplementedError

    def grid(self, around, upward) -> Float[Array, "3"]:
        """The point (3,) [m] of the surface at an angle `around` the axis, in [0, 2 pi], and a
        share `upward` in [0, 1], for pictures."""
        raise NotImplementedError

    def faces(self) -> Float[Array, "f 4 3"]:
        """Corners [m] of the faces with which the surface is drawn."""
        turn, share = np.linspace(0.0, 2.0 * np.pi, _ROUND + 1), np.linspace(0.0, 1.0, _ALONG + 1)
        points = jnp.stack([jnp.stack([self.grid(a, b) for b in share]) for a in turn])
        corners = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
        return jnp.stack(corners, axis=2).reshape(-1, 4, 3)


class SphereSurface(Surface):
    """A sphere of a `radius` [m]."""

    radius: Float[Array, ""] = float_field()

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
    """A cylinder of a `radius` [m] about its z axis. The cable sees it unbounded; `length` [m] is
    that of pictures, six radii unless given."""

    radius: Float[Array, ""] = float_field()
    length: Float[Array, ""] = float_field(default=0.0)

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
