"""Wrapping surfaces: a cable lies on such a surface only where it bends round it.

The length of a path past a surface depends on its end points in the axes of the surface alone.
Forces follow from virtual work: the gradients of the length by both end points are the directions
of the cable there."""

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
    """A surface that a cable lies on where it bends round it, and leaves where it does not.

    - `wrap`: its shape, such as `CylinderSurface(radius)`;
    - `body` that carries it, with its centre `at` (3,) [m] and its z axis along `axis` (3,); of
      surfaces that are not round, the x axis lies in the plane of `axis` and `across` (3,);
    - `side` (3,) [m]: a point of the body outside of the surface. The cable goes round the surface
      on the side of that point; without it, round the nearer side;
    - `inside`: the cable passes through the surface as through a ring (sphere and cylinder);
    - `width` [rad]: the wrap angle over which the second derivative of the length, which jumps
      where the cable begins to touch, changes smoothly; zero for the exact length.

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
        """Axes of the surface, as columns, in body axes."""
        if self.across is None:
            return exit_frames(self.axis, 1)[:, 0].T
        z = safe_unit(self.axis)
        x = safe_unit(self.across - z * jnp.sum(z * self.across))
        return jnp.stack([x, cross(z, x), z], axis=1)

    def local(self, x) -> Float[Array, " 3"]:
        """A point (3,) [m] of the body in the axes of the surface."""
        return jnp.sum(self.axes * (x - self.at)[:, None], axis=0)

    def encloses(self, x) -> bool:
        """Whether a point (3,) [m] of the body is known to be inside of the surface."""
        known = [known_values(leaf) for leaf in jax.tree.leaves((self, x))]
        if self.inside or any(k is None for k in known) or jnp.shape(self.at) != (3,):
            return False
        return bool(_encloses(self, x))


@jax.jit
def _encloses(guide: Wrap, x):
    return guide.wrap.encloses(guide.local(x))


class Passage(NamedTuple):
    """Of a cable past one surface, before (0) and after (1) it: `parts` (2,) [m], whose gradients
    are the directions of the cable and whose sum is its length; `straight` lengths (2,) [m];
    `points` (2, 3) [m] where it meets and leaves the surface, in the world; `turn` [rad], the angle
    by which it turns; whether it `touches`; `clearance` (2,) [m^2], positive where its neighbours
    are outside of the surface; and as functions the directions of travel `along` (2, 3) in the
    world, and the points (k, 3) [m] at shares (k,) of its arc, `curve`."""

    parts: Float[Array, " 2"]
    straight: Float[Array, " 2"]
    points: Float[Array, "2 3"]
    turn: Float[Array, ""]
    touches: Bool[Array, ""]
    clearance: Float[Array, " 2"]
    along: Callable[[], Float[Array, "2 3"]]
    curve: Callable[[Any], Float[Array, "k 3"]]


def passages(guides: tuple[Guide, ...], R, p, x) -> dict[int, Passage]:
    """Past each surface of a cable, by guide, with the carriers of guides at poses (g, 3, 3), (g,
    3) and the guides at world points `x` (g, 3)."""
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
    """Points of the arc in the axes of the surface; a single point if the cable bends at one point
    or does not touch."""
    arc = surface.curve(path, along, shares)
    bent = path.touches & (jnp.sum((path.second - path.first) ** 2) > 0)
    return jnp.where(bent, arc, path.first)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _parts(inside: bool, surface: Surface, side, width, y0, y1) -> Float[Array, " 2"]:
    """Lengths [m] before and after the middle of the arc."""
    path = surface.path(y0, y1, side, inside, width)
    straight = jnp.stack([safe_norm(path.first - y0), safe_norm(y1 - path.second)])
    return straight + 0.5 * (path.length - jnp.sum(straight))


@_parts.defjvp
def _parts_jvp(inside, values, rates):
    """Each part changes by the motion of its own end against the surface, as if the cable were
    fixed in the middle of its arc: the work of tensions that friction makes differ."""
    length = lambda surface, side, width, y0, y1: surface.path(y0, y1, side, inside, width).length
    slopes = jax.grad(length, (0, 1, 2, 3, 4))(*values)
    shares = [
        sum(jnp.sum(a * b) for a, b in zip(*map(jax.tree.leaves, pair), strict=True))
        for pair in zip(slopes, rates, strict=True)
    ]
    shape = 0.5 * (shares[0] + shares[1] + shares[2])
    return _parts(inside, *values), jnp.stack([shares[3] + shape, shares[4] + shape])


def check_neighbours(guides: tuple[Guide, ...]) -> None:
    """Raise if a surface has an invalid position in the path of a cable."""
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
