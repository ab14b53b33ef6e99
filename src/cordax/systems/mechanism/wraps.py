"""Wrapping surfaces: surfaces that a cable touches only where it bends round them.

The length of a path past a surface depends only on its end points in the axes of the surface.
Forces follow from virtual work: the gradients of the length with respect to both end points are the
directions of the cable there."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..._base.checks import known_values, require, require_direction, require_positive
from ..._base.fields import flag_field, name_field, part_field
from ..._base.precision import float_field
from ...math.safe import safe_norm, safe_unit
from ...mechanics.parts.exits import exit_frames
from ...mechanics.parts.surfaces import Surface
from .body import NAMELESS, WORLD
from .guides import Eyelet, Guide
from .kinematics import cross


class Wrap(Guide):
    """Surface that a cable touches where it bends round it, and leaves where it does not.

    - `wrap`: shape of the surface, such as `CylinderSurface(radius)`;
    - `body`: body that carries the surface, with the centre `at` (3,) [m] and the z axis along
      `axis` (3,); for surfaces that are not round, the x axis lies in the plane of `axis` and
      `across` (3,);
    - `side` (3,) [m]: a point of the body outside of the surface. The cable goes round the surface
      on the side of that point; without it, round the nearer side;
    - `inside`: the cable passes through the surface as through a ring (sphere and cylinder);
    - `width` [rad]: range of wrap angles over which the second derivative of the length is
      smoothed. It jumps where the cable begins to touch the surface. Zero gives the exact length.

    Friction acts over the whole angle by which the cable turns on the surface."""

    wrap: Surface = part_field()
    body: str = name_field(default=WORLD)
    at: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))
    across: Float[Array, " 3"] | None = float_field(default=None)
    side: Float[Array, " 3"] | None = float_field(unit="m", default=None)
    inside: bool = flag_field(default=False)
    width: Float[Array, ""] = float_field(unit="rad", default=0.0)

    def __check_init__(self):
        require_direction("axis", self.axis)
        require_positive("width", self.width, zero_allowed=True)
        self.wrap.check_options(self.side, self.inside)
        if self.across is not None:
            axis, across = known_values(self.axis), known_values(self.across)
            if axis is not None and across is not None and axis.shape == across.shape == (3,):
                spans = float(jnp.linalg.norm(jnp.cross(axis, across))) > 0
                require(spans, "across", across, "a vector that is not parallel to axis")
        if self.side is not None and self.encloses(self.side):
            raise ValueError("side: the side point must be outside of the surface")

    @property
    def axes(self) -> Float[Array, "3 3"]:
        """Axes of the surface as columns, in body axes."""
        if self.across is None:
            return exit_frames(self.axis, 1)[:, 0].T
        z = safe_unit(self.axis)
        x = safe_unit(self.across - z * jnp.sum(z * self.across))
        return jnp.stack([x, cross(z, x), z], axis=1)

    def local(self, x) -> Float[Array, " 3"]:
        """Convert a point (3,) [m] from body axes to the axes of the surface."""
        return jnp.sum(self.axes * (x - self.at)[:, None], axis=0)

    def encloses(self, x) -> bool:
        """Whether a point (3,) [m] of the body is known to lie inside the surface."""
        known = [known_values(leaf) for leaf in jax.tree.leaves((self, x))]
        if self.inside or any(k is None for k in known) or jnp.shape(self.at) != (3,):
            return False
        return bool(_encloses(self, x))


@jax.jit
def _encloses(guide: Wrap, x):
    return guide.wrap.encloses(guide.local(x))


class Passage(NamedTuple):
    """Passage of a cable past one surface. Pairs of values are for the cable before (0) and after
    (1) the surface.

    - `parts` (2,) [m]: lengths whose gradients are the directions of the cable and whose sum is the
      length of the path;
    - `straight` lengths (2,) [m];
    - `points` (2, 3) [m]: where the cable meets and leaves the surface, in the world;
    - `turn` [rad]: angle by which the cable turns;
    - `touches`: whether the cable touches the surface;
    - `clearance` (2,) [m^2]: positive where the neighbouring guides are outside of the surface;
    - `along`: function that returns the directions of travel (2, 3) in the world;
    - `curve`: function that returns the points (k, 3) [m] at fractions (k,) of the arc."""

    parts: Float[Array, " 2"]
    straight: Float[Array, " 2"]
    points: Float[Array, "2 3"]
    turn: Float[Array, ""]
    touches: Bool[Array, ""]
    clearance: Float[Array, " 2"]
    along: Callable[[], Float[Array, "2 3"]]
    curve: Callable[[Any], Float[Array, "k 3"]]


def passages(guides: tuple[Guide, ...], R, p, x) -> dict[int, Passage]:
    """Passage of a cable past each wrapping surface, by index of the guide. The bodies that carry
    the guides have poses (g, 3, 3), (g, 3), and the guides are at world points `x` (g, 3)."""
    return {
        i: _passage(guide, R[i], p[i], x[i - 1], x[i + 1])
        for i, guide in enumerate(guides)
        if isinstance(guide, Wrap)
    }


def _passage(guide: Wrap, R, p, x0, x1) -> Passage:
    surface, axes = guide.wrap, jnp.sum(R[:, :, None] * guide.axes[None], axis=1)
    centre = p + jnp.sum(R * guide.at, axis=1)
    local = lambda x: jnp.sum(axes * (x - centre)[:, None], axis=0)
    world = lambda y: jnp.sum(axes * y, axis=-1)
    y0, y1 = local(x0), local(x1)
    side = None if guide.side is None else guide.local(guide.side)
    given = surface, side, guide.width
    path = surface.path(y0, y1, side, guide.inside, guide.width)
    length = lambda y0, y1: surface.path(y0, y1, side, guide.inside, guide.width).length
    slopes = lambda: jax.grad(length, (0, 1))(y0, y1)
    along = lambda: jnp.stack([-1.0, 1.0])[:, None] * jax.vmap(world)(jnp.stack(slopes()))
    clearance = jnp.ones(2, p.dtype)
    if not guide.inside:
        # points on the surface count as outside
        slack = surface.size() * 1e-6
        levels = jnp.stack([surface.level(y0), surface.level(y1)])
        clearance = (levels + slack) * surface.size()
    return Passage(
        _parts(guide.inside, *given, y0, y1),
        jnp.stack([safe_norm(path.first - y0), safe_norm(y1 - path.second)]),
        centre + jnp.stack([world(path.first), world(path.second)]),
        path.turn,
        path.touches,
        clearance,
        along,
        lambda shares: centre + jax.vmap(world)(_curve(surface, path, -slopes()[0], shares)),
    )


def _curve(surface: Surface, path, along, shares):
    """Points of the arc in the axes of the surface; all equal if the cable bends at a single point
    or does not touch."""
    arc = surface.curve(path, along, shares)
    bent = path.touches & (jnp.sum((path.second - path.first) ** 2) > 0)
    return jnp.where(bent, arc, path.first)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _parts(inside: bool, surface: Surface, side, width, y0, y1) -> Float[Array, " 2"]:
    """Lengths [m] of the path before and after the middle of the arc."""
    path = surface.path(y0, y1, side, inside, width)
    straight = jnp.stack([safe_norm(path.first - y0), safe_norm(y1 - path.second)])
    return straight + 0.5 * (path.length - jnp.sum(straight))


@_parts.defjvp
def _parts_jvp(inside, values, rates):
    """Derivative of both lengths: each changes with the motion of its own end relative to the
    surface, as if the cable were fixed in the middle of its arc. This gives the correct work when
    friction makes the two tensions differ."""
    length = lambda surface, side, width, y0, y1: surface.path(y0, y1, side, inside, width).length
    slopes = jax.grad(length, (0, 1, 2, 3, 4))(*values)
    shares = [
        sum(jnp.sum(a * b) for a, b in zip(*map(jax.tree.leaves, pair), strict=True))
        for pair in zip(slopes, rates, strict=True)
    ]
    shape = 0.5 * (shares[0] + shares[1] + shares[2])
    return _parts(inside, *values), jnp.stack([shares[3] + shape, shares[4] + shape])


def check_neighbours(guides: tuple[Guide, ...]) -> None:
    """Raise if a wrapping surface has an invalid place in the path of a cable."""
    for i, guide in enumerate(guides):
        if not isinstance(guide, Wrap):
            continue
        inner = 0 < i < len(guides) - 1
        if not inner or not all(isinstance(g, Eyelet) for g in (guides[i - 1], guides[i + 1])):
            raise ValueError("guides: a Wrap needs an Eyelet before it and another after it")
        for near in (guides[i - 1], guides[i + 1]):
            if near.body == guide.body != NAMELESS and guide.encloses(near.at):
                raise ValueError(
                    f"guides: the cable is attached to {near.body!r} inside of the surface that it "
                    "wraps round; move the Eyelet out of the surface or leave the Wrap out"
                )
