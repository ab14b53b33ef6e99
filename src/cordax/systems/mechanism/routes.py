"""Path of a cable from one body over guides to another body.

A guide is an eyelet, a pulley or a wrapping surface on any body, the ground included. All straight
parts and arcs depend only on the poses of the bodies that carry the guides, so the forces on these
bodies are gradients of the length.

In the plane of a pulley with unit normal n and centre c, a cable that travels along t has the
tangent point `c - rho n x t`. Here rho is the signed radius, positive where the cable goes round
counterclockwise. Two guides with signed radii have a common tangent of length
`sqrt(D^2 - (rho_j - rho_i)^2)`; an eyelet is a pulley with zero radius. A point beside the plane
adds its distance from the plane to the straight part."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._base.checks import require, require_values
from ...math.linalg import matvec
from ...math.safe import safe_norm, safe_sqrt, safe_unit
from .body import NAMELESS
from .guides import Eyelet, Frame, Guide, Pulley, Swivelled, SwivelPulley
from .kinematics import cross
from .wraps import Passage, Wrap, check_neighbours, passages

#: number of points with which an arc is drawn
_ARC = 9
#: an arc on a pulley may be negative by up to this fraction of a turn
_BEHIND = 0.25


class RouteState(NamedTuple):
    """Lengths and angles of a cable with k segments.

    - `parts` (k,) [m]: lengths whose gradients are the directions of the segments. Each arc is
      divided between its two segments;
    - `straight` (k,) [m]: lengths of the straight parts;
    - `wrap` (k - 1,) [rad]: angle by which the cable turns at each inner guide."""

    parts: Float[Array, " k"]
    straight: Float[Array, " k"]
    wrap: Float[Array, " k-1"]


class Route(eqx.Module):
    """Path of a cable: its guides in order, both ends included."""

    guides: tuple[Guide, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        enough = len(self.guides) >= 2
        require(enough, "guides", len(self.guides), "two or more, the ends included")
        for a, b in zip(self.guides[:-1], self.guides[1:], strict=True):
            if isinstance(a, Pulley) and isinstance(b, Pulley):
                _check_common_plane(a, b)
        for i, guide in enumerate(self.guides):
            if isinstance(guide, SwivelPulley):
                faced = self.guides[self._faced(i)]
                after = "an Eyelet next to a SwivelPulley"
                require(isinstance(faced, Eyelet), "guides", type(faced).__name__, after)
        check_neighbours(self.guides)

    def _faced(self, i: int) -> int:
        """Index of the guide that a swivelling pulley faces."""
        return i + 1 if i + 1 < len(self.guides) else i - 1

    def _swivelled(self, R, p, x) -> dict[int, Swivelled]:
        """Paths over swivelling pulleys, by index of the guide."""
        return {
            i: guide.way(Frame(R[i], p[i]), x[self._faced(i)])
            for i, guide in enumerate(self.guides)
            if isinstance(guide, SwivelPulley)
        }

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(g.body for g in self.guides)

    @property
    def surfaces(self) -> tuple[int, ...]:
        """Indices of the guides that are wrapping surfaces."""
        return tuple(i for i, g in enumerate(self.guides) if isinstance(g, Wrap))

    def passages(self, R, p) -> dict[int, Passage]:
        """Passage of the cable past each wrapping surface, by index of the guide."""
        if not self.surfaces:
            return {}
        x = p + jnp.sum(R * jnp.stack([g.at for g in self.guides])[:, None], axis=2)
        return passages(self.guides, R, p, x)

    @property
    def _pulleys(self) -> list[int]:
        return [i for i, guide in enumerate(self.guides) if isinstance(guide, Pulley)]

    @property
    def wound(self) -> np.ndarray:
        """Indices (w,) of the pulleys whose arcs are coordinates and have not been set
        (`Pulley.near`)."""
        open_ = lambda guide: isinstance(guide, Pulley) and guide.winds and guide.near is None
        return np.array([i for i, guide in enumerate(self.guides) if open_(guide)], int)

    def winding(self, R, p) -> Float[Array, " w"]:
        """Arcs [rad] on all pulleys that have `winds`."""
        winds = [j for j, i in enumerate(self._pulleys) if self.guides[i].winds]  # pyright: ignore
        if not winds:
            return jnp.zeros(0, p.dtype)
        _, _, way = self._ways(R, p)
        _, arcs = self._arcs(R, way.along, np.array(self._pulleys))
        return jnp.asarray(arcs)[np.array(winds)]

    def at(self, R, p) -> RouteState:
        """Lengths and angles of the cable, with the bodies that carry the guides at poses
        (g, 3, 3), (g, 3)."""
        x, _, way = self._ways(R, p)
        parts = straight = way.straight
        t, last = way.along, len(self.guides) - 1
        swivelled = self._swivelled(R, p, x)
        leaving = {i: s.up for i, s in swivelled.items()}
        for i, s in swivelled.items():
            here = np.arange(last) == min(i, last - 1)
            parts, straight = jnp.where(here, s.whole, parts), jnp.where(here, s.straight, straight)
            t = jnp.where(here[:, None], s.along if i < last else -s.along, t)
        passed = self.passages(R, p)
        if passed:
            parts = _with(parts, passed, "parts")
            straight = _with(straight, passed, "straight")
            if len(passed) < last - 1:  # directions matter at eyelets
                t = _directions(t, passed)
        wrap, order = [], []
        eyelets = [i for i in range(1, last) if not isinstance(self.guides[i], Pulley)]
        if eyelets:
            into = t[np.array(eyelets) - 1]
            out = jnp.stack([leaving.get(i, t[i]) for i in eyelets])
            turn = safe_norm(cross(into, out), axis=1)
            angles = jnp.arctan2(turn, jnp.sum(into * out, axis=1))
            for i, s in swivelled.items():
                arc = (s.whole - s.straight) / self.guides[i].radius  # pyright: ignore
                angles = angles + jnp.where(np.array(eyelets) == i, arc, 0.0)
            for i, s in passed.items():
                angles = jnp.where(np.array(eyelets) == i, s.turn, angles)
            wrap.append(angles)
            order += eyelets
        where = self._pulleys
        if where:
            more, arcs = self._arcs(R, t, np.array(where))
            parts = parts + more
            inner = [j for j, i in enumerate(where) if 0 < i < last]
            wrap.append(arcs if len(inner) == len(where) else arcs[np.array(inner, int)])
            order += [where[j] for j in inner]
        if not wrap:
            return RouteState(parts, straight, jnp.zeros(0, x.dtype))
        angles = wrap[0] if len(wrap) == 1 else jnp.concatenate(wrap)
        if order != sorted(order):
            angles = angles[np.argsort(order)]
        return RouteState(parts, straight, angles)

    def _arcs(self, R, t, where):
        """Contribution of the arcs on pulleys to the parts (k,) [m], and the arcs (w,) [rad].
        `where` (w,) holds the indices of the pulleys among the guides."""
        pulleys = [self.guides[i] for i in where]
        last, sign = len(self.guides) - 1, self._signs()[where]
        radius = sign * jnp.stack([g.radius for g in pulleys])
        has_in, has_out = 1.0 * (where > 0), 1.0 * (where < last)
        axis = jnp.stack([g.axis for g in pulleys])
        zero = jnp.stack([g.zero for g in pulleys])
        R = R[where]
        a = jnp.sum(R * zero[:, None], axis=2)
        b = jnp.sum(R * cross(axis, zero)[:, None], axis=2)
        both = jnp.stack([t[np.maximum(where - 1, 0)], t[np.minimum(where, last - 1)]])
        # directions of travel about the axes, from `zero`
        angle = jnp.arctan2(jnp.sum(both * b, axis=2), jnp.sum(both * a, axis=2))
        into, out = has_in * angle[0], has_out * angle[1]
        arc = sign * (out - into)
        # whole turns are constant between two branch cuts of arctan2, and have no derivative
        inner, winds = has_in * has_out, np.array([g.winds for g in pulleys])  # pyright: ignore
        turns = np.array([g.turns for g in pulleys])  # pyright: ignore
        skipped = jnp.floor(lax.stop_gradient(arc) / (2.0 * jnp.pi) + _BEHIND)
        whole = np.where(winds, turns, inner * turns) - inner * skipped
        if any(g.near is not None for g in pulleys):  # pyright: ignore
            none = jnp.zeros((), t.dtype)
            near = [none if g.near is None else g.near for g in pulleys]  # pyright: ignore
            turned = lax.stop_gradient(jnp.stack(near) - arc) / (2.0 * jnp.pi)
            whole = jnp.where(winds, jnp.floor(turned + 0.5), whole)
        whole = 2.0 * jnp.pi * whole
        before, after = np.zeros((last, len(where))), np.zeros((last, len(where)))
        for j, i in enumerate(where):
            if i > 0:
                before[i - 1, j] = 1.0
            if i < last:
                after[i, j] = 1.0
        # whole turns count to the segment after a pulley, at the last end to the segment before it
        ahead = radius * (out + sign * has_out * whole)
        behind = radius * (into - sign * (1.0 - has_out) * whole)
        more = matvec(jnp.asarray(after, t.dtype), ahead)
        return more - matvec(jnp.asarray(before, t.dtype), behind), arc + whole

    def line(self, R, p) -> Float[Array, "m 3"]:
        """Points of the cable for drawing [m]: its ends and the arcs on inner pulleys, without
        whole turns.

        On a drum the line begins where the cable leaves it. A `SwivelPulley` is drawn as the point
        about which it swivels."""
        places, normals, way = self._ways(R, p)
        points, last, passed = [], len(self.guides) - 1, self.passages(R, p)
        for i, (guide, place, n) in enumerate(zip(self.guides, places, normals, strict=True)):
            if i in passed:
                points.append(passed[i].curve(jnp.linspace(0.0, 1.0, 2 * _ARC)))
                continue
            if not isinstance(guide, Pulley):
                points.append(place[None])
                continue
            sign = -1.0 if guide.clockwise else 1.0
            into = way.along[max(i - 1, 0)]
            out = way.along[min(i, last - 1)]
            turn = jnp.arctan2(jnp.sum(n * cross(into, out)), jnp.sum(into * out))
            behind = 2.0 * jnp.pi * _BEHIND
            turn = sign * (jnp.mod(sign * turn + behind, 2.0 * jnp.pi) - behind)
            angles = (turn * jnp.linspace(0.0, 1.0, _ARC))[:, None]
            # n x t, where the direction of travel t turns from `into` to `out`
            aside = jnp.cos(angles) * cross(n, into) - jnp.sin(angles) * into
            points.append(place - sign * guide.radius * aside)
        return jnp.concatenate(points)

    def arcs(self, R, p) -> Float[Array, " w"]:
        """Angles [rad] on inner pulleys, except those with a fixed number of whole windings. An
        angle is negative where the cable would have left its pulley."""
        inner = enumerate(self.guides[1:-1])
        where = [i for i, g in inner if isinstance(g, Pulley) and (g.winds or g.turns == 0)]
        return self.at(R, p).wrap[np.array(where)] if where else jnp.zeros(0, p.dtype)

    def turn_margin(self, R, p) -> Float[Array, " w"]:
        """Angles [rad] by which the arcs on all pulleys may still change before they become
        ambiguous by one whole turn, where the length would jump."""
        _, _, way = self._ways(R, p)
        wrap, last, margins = self.at(R, p).wrap, len(self.guides) - 1, []
        for i, guide in enumerate(self.guides):
            if not isinstance(guide, Pulley) or guide.winds:
                continue
            if 0 < i < last:
                beyond = wrap[i - 1] - 2.0 * jnp.pi * (guide.turns - _BEHIND)
                margins.append(jnp.minimum(beyond, 2.0 * jnp.pi - beyond))
                continue
            a = jnp.sum(R[i] * guide.zero, axis=1)
            b = jnp.sum(R[i] * cross(guide.axis, guide.zero), axis=1)
            t = way.along[min(i, last - 1)]
            margins.append(jnp.pi - jnp.abs(jnp.arctan2(jnp.sum(t * b), jnp.sum(t * a))))
        return jnp.stack(margins) if margins else jnp.zeros(0, p.dtype)

    def reach(self, R, p) -> Float[Array, " k"]:
        """Existence of each segment [m^2]: positive if no guide lies inside a pulley or a
        surface."""
        x, _, way = self._ways(R, p)
        square, last = way.square, len(self.guides) - 1
        for i, s in self._swivelled(R, p, x).items():
            square = jnp.where(np.arange(last) == min(i, last - 1), s.square, square)
        for i, s in self.passages(R, p).items():
            for end in (0, 1):
                square = jnp.where(np.arange(last) == i - 1 + end, s.clearance[end], square)
        return square

    def _signs(self) -> np.ndarray:
        """Signs of the radii: direction in which the cable goes round each pulley, 0 for other
        guides."""
        sign = lambda g: (-1.0 if g.clockwise else 1.0) if isinstance(g, Pulley) else 0.0
        return np.array([sign(g) for g in self.guides])

    def _ways(self, R, p) -> "tuple[Array, Array, _Ways]":
        """Positions (g, 3) [m] and normals (g, 3) of the guides, and the straight parts between
        them. All guides are treated alike: an eyelet is a pulley with zero radius and no plane."""
        none, flat = jnp.zeros((), p.dtype), jnp.zeros(3, p.dtype)
        x = p + jnp.sum(R * jnp.stack([g.at for g in self.guides])[:, None], axis=2)
        d, signs = x[1:] - x[:-1], self._signs()
        if not signs.any():
            length = safe_norm(d, axis=1)
            ways = _Ways(length, safe_unit(d, axis=1), jnp.sum(d * d, axis=1))
            return x, jnp.zeros_like(x), ways
        own = lambda name, other: jnp.stack(
            [getattr(g, name) if isinstance(g, Pulley) else other for g in self.guides]
        )
        normals = jnp.sum(R * own("axis", flat)[:, None], axis=2)
        n = normals[np.where(signs[:-1] != 0, 0, 1) + np.arange(len(d))]
        rho = signs * own("radius", none)
        beside = jnp.sum(n * d, axis=1)
        e = d - n * beside[:, None]
        square = jnp.sum(e * e, axis=1)
        delta = rho[1:] - rho[:-1]
        tangent = square - delta**2
        h = safe_sqrt(tangent)
        D = jnp.where(square > 0, square, 1.0)
        along = (h[:, None] * e - delta[:, None] * cross(n, e)) / D[:, None]
        return x, normals, _Ways(safe_sqrt(h * h + beside * beside), along, tangent)


class _Ways(NamedTuple):
    """Straight parts of k segments: length of the `straight` part (k,) [m], its direction
    `along` (k, 3) in the plane of the pulleys, and its `square` (k,) [m^2], positive where it
    exists."""

    straight: Float[Array, " k"]
    along: Float[Array, "k 3"]
    square: Float[Array, " k"]


def _with(values, passed: dict[int, Passage], name: str):
    """Replace the values (k,) of segments next to wrapping surfaces by the contributions of the
    passages. A segment between two surfaces gets the sum of both."""
    found: dict[int, list] = {}
    for i, s in passed.items():
        for end in (0, 1):
            found.setdefault(i - 1 + end, []).append(getattr(s, name)[end])
    return jnp.stack([sum(found[k]) if k in found else values[k] for k in range(len(values))])


def _directions(t, passed: dict[int, Passage]):
    """Replace the directions `t` (k, 3) of segments next to wrapping surfaces by those of the
    passages."""
    found = {i - 1 + end: along for i, s in passed.items() for end, along in enumerate(s.along())}
    return jnp.stack([found.get(k, t[k]) for k in range(len(t))])


def _check_common_plane(a: Pulley, b: Pulley) -> None:
    if a.body == b.body != NAMELESS:  # stacked guides of several cables have no body names
        parallel = lambda a, b: abs(abs((a * b).sum()) - 1.0) < 1e-6
        expected = "parallel axes of pulleys next to each other, or an eyelet between them"
        require_values("guides", parallel, a.axis, b.axis, expected=expected)
