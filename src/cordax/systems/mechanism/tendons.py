"""Tendons: lines through sites and round surfaces, or combinations of joint coordinates.

All tendons are evaluated together, so that the compiled program does not grow with their number."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_shape
from ..._base.fields import names_field, part_field
from ..._base.precision import as_float_array, float_field
from ..._jax.constant_gather import take
from ..._jax.materialise import materialise
from ...math.linalg import matmul
from ...math.safe import safe_norm, safe_unit
from . import dynamics, wrap_segments
from .elements import Instant, spread
from .kinematics import cross
from .points import Ground, Sites, acceleration, place, velocity, with_ground


class Straight(NamedTuple):
    """Straight segments, static: `tendon`, first and second site, each a tuple of k indices."""

    tendon: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()


class Wrapped(NamedTuple):
    """Segments past surfaces, static: as `Straight`, with indices of the `surface` and of the
    `side` site (-1 for none), whether the surface is a `cylinder` or a sphere, and whether all of
    these tendons pass through their surface."""

    tendon: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    surface: tuple[int, ...]
    side: tuple[int, ...]
    cylinder: tuple[bool, ...]
    inside: bool


class Coupling(NamedTuple):
    """Tendons of joint coordinates, static: indices of the tendon, coordinate and velocity of each
    term."""

    tendon: tuple[int, ...] = ()
    coordinate: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()


def _arrays(parts) -> Any:
    return parts if type(parts) is object else tuple(as_float_array(x) for x in parts)


class TendonState(NamedTuple):
    """`length` (n,) [m], `rate` (n,) [m/s], and for wrenches: the ends of all segments in the world
    (k, 3) [m] and the derivatives (k, 3) of the tendon's length by them."""

    length: Float[Array, " n"]
    rate: Float[Array, " n"]
    ends: Float[Array, "k 3"]
    slopes: Float[Array, "k 3"]


class Tendons(eqx.Module):
    """Paths of n tendons.

    - `sites`: the points they pass; `radius` (g,) [m] of the surfaces, carried by `surfaces`
      (spheres about their origin, cylinders about their z axis);
    - `straight`, `wrapped`, `coupling`: the segments;
    - `straight_share`, `wrapped_share`: factor of the length of each segment, one over the divisor
      of a pulley branch; `coefficient`: of each joint term [m/rad];
    - `side_rule`: "4.0" or "3", see `mechanics.parts.wrapping.wrap`."""

    names: tuple[str, ...] = names_field()
    sites: Sites = part_field()
    surfaces: Sites = part_field()
    radius: Float[Array, " g"] = float_field(unit="m")
    straight_share: Float[Array, " s"] = float_field()
    coefficient: Float[Array, " c"] = float_field(unit="m/rad")
    straight: Straight = eqx.field(static=True, default=Straight())
    wrapped: tuple[Wrapped, ...] = eqx.field(static=True, default=())
    coupling: Coupling = eqx.field(static=True, default=Coupling())
    wrapped_share: tuple[Float[Array, " w"], ...] = eqx.field(
        converter=lambda x: _arrays(x), default=()
    )
    side_rule: str = eqx.field(static=True, default="4.0")

    def __check_init__(self):
        require_shape("radius", self.radius, (len(self.surfaces.names),))
        require_shape("straight_share", self.straight_share, (len(self.straight.tendon),))
        require_shape("coefficient", self.coefficient, (len(self.coupling.tendon),))

    @property
    def n(self) -> int:
        return len(self.names)

    def at(self, at: Instant) -> TendonState:
        """Lengths, their rates, and the segment ends and derivatives that are used for forces."""
        bodies = with_ground(at.motions)
        carriers = self.sites.carriers(at.tree)
        x = place(bodies, carriers, self.sites.position)
        x_rate = velocity(take(bodies.V, carriers), x)
        lengths, rates, ends, slopes = [], [], [], []
        a, b = np.array(self.straight.first, int), np.array(self.straight.second, int)
        if len(a):
            gap, gap_rate = take(x, b) - take(x, a), take(x_rate, b) - take(x_rate, a)
            along = safe_unit(gap)
            share = self.straight_share
            lengths.append(share * safe_norm(gap))
            rates.append(share * jnp.sum(along * gap_rate, axis=1))
            ends += [take(x, a), take(x, b)]
            slopes += [-share[:, None] * along, share[:, None] * along]
        for group, share in zip(self.wrapped, self.wrapped_share, strict=True):
            length, rate, end, slope = self._wrapped(group, at, bodies, x, x_rate)
            lengths.append(share * length)
            rates.append(share * rate)
            ends += end
            slopes += [share[:, None] * s for s in slope]
        q, v = np.array(self.coupling.coordinate, int), np.array(self.coupling.velocity, int)
        if len(q):
            lengths.append(self.coefficient * take(at.q, q))
            rates.append(self.coefficient * take(at.v, v))
        join = lambda parts: jnp.concatenate(parts) if parts else jnp.zeros(0, x.dtype)
        rows = lambda parts: jnp.concatenate(parts) if parts else jnp.zeros((0, 3), x.dtype)
        both = jnp.stack([join(lengths), join(rates)], axis=1)
        total = matmul(jnp.asarray(self._sums, both.dtype), both)
        return materialise(TendonState(total[:, 0], total[:, 1], rows(ends), rows(slopes)))

    @property
    def _tendons(self) -> list[tuple[int, ...]]:
        """Index of the tendon of each segment and joint term."""
        return [self.straight.tendon, *(g.tendon for g in self.wrapped), self.coupling.tendon]

    @property
    def _sums(self) -> np.ndarray:
        """Matrix (n, k) that sums segments and joint terms to tendons."""
        tendon = np.concatenate([np.array(t, int) for t in self._tendons])
        return (np.arange(self.n)[:, None] == tendon).astype(float)

    def _wrapped(self, group: Wrapped, at: Instant, bodies: Ground, x, x_rate):
        """Lengths, rates, both end points and derivatives of the lengths by them."""
        surface = np.array(group.surface)
        carriers = self.surfaces.carriers(at.tree)[surface]
        turned = take(self.surfaces.rotation, surface)
        R = jnp.sum(take(bodies.R, carriers)[..., None] * turned[:, None], axis=2)
        centre = place(bodies, carriers, take(self.surfaces.position, surface))
        twist = take(bodies.V, carriers)
        inward = lambda p: jnp.sum(R * (p - centre)[:, :, None], axis=1)
        outward = lambda g: jnp.sum(R * g[:, None, :], axis=2)
        a, b = np.array(group.first), np.array(group.second)
        side = inward(take(x, np.maximum(group.side, 0)))
        first, second = take(x, a), take(x, b)
        ends = (inward(first), inward(second))
        value, *slopes = materialise(self._segments(group, ends, take(self.radius, surface), side))
        slopes = [outward(slope) for slope in slopes]
        moving = lambda i, p: take(x_rate, i) - velocity(twist, p)
        rate = jnp.sum(slopes[0] * moving(a, first) + slopes[1] * moving(b, second), axis=1)
        return value, rate, [first, second], slopes

    def _segments(self, group: Wrapped, ends, radius, side) -> wrap_segments.Segments:
        x0, x1 = ends
        cylinder, sided = np.array(group.cylinder), np.array(group.side) >= 0
        if group.inside:
            return wrap_segments.inside(x0, x1, radius, cylinder)
        if self.side_rule == "4.0" or not sided.any():
            return wrap_segments.outside(x0, x1, radius, side, cylinder, sided)
        return wrap_segments.by_half_planes(x0, x1, radius, side, cylinder, sided)

    def effort(self, at: Instant, state: TendonState, force):
        """Joint forces (n_v,) or None, and wrenches (N, 6) or None, of generalised `force` (n,) [N]
        along the lengths: a force < 0 pulls."""
        joint = wrenches = None
        if self.coupling.tendon:
            along = self.coefficient * take(force, np.array(self.coupling.tendon))
            joint = spread(np.array(self.coupling.velocity), at.tree.n_v, along)
        tendon, onto = self._segment_ends(at.tree)
        if len(tendon):
            each = take(force, tendon)[:, None] * state.slopes
            each = jnp.concatenate([cross(state.ends, each), each], axis=1)
            wrenches = matmul(jnp.asarray(onto, each.dtype), each)
        return joint, wrenches

    def _segment_ends(self, tree) -> tuple[np.ndarray, np.ndarray]:
        """Tendon of each segment end (k,), and onto which bodies its force acts, (N, k): on the
        body of the site, and with the opposite sign on that of the surface."""
        sites = self.sites.carriers(tree)
        groups = [
            (self.straight.tendon, self.straight.first),
            (self.straight.tendon, self.straight.second),
        ]
        backs = [np.full(len(self.straight.tendon), -1)] * 2
        surfaces = self.surfaces.carriers(tree)
        for g in self.wrapped:
            groups += [(g.tendon, g.first), (g.tendon, g.second)]
            backs += [surfaces[np.array(g.surface)]] * 2
        tendon = np.concatenate([np.array(t, int) for t, _ in groups])
        body = sites[np.concatenate([np.array(s, int) for _, s in groups])]
        back = np.concatenate(backs)
        index = np.arange(tree.n_bodies)[:, None]
        return tendon, (index == body).astype(float) - (index == back)

    def jacobian(self, at: Instant, state: TendonState, which=None) -> Float[Array, "n n_v"]:
        """Derivatives of the lengths by the joint coordinates [m, m/rad], or of some of them."""
        which = np.arange(self.n) if which is None else np.asarray(which, int)

        def row(force):
            joint, wrenches = self.effort(at, state, force)
            total = jnp.zeros(at.tree.n_v, force.dtype) if joint is None else joint
            if wrenches is not None:
                total = total + dynamics.joint_forces(at.tree, at.motions.poses, wrenches)
            return total

        return jax.vmap(row)(jnp.asarray(np.eye(self.n)[which], at.q.dtype))

    def acceleration(self, at: Instant) -> Float[Array, " n"]:
        """Second rates of the lengths [m/s^2] at zero joint accelerations; of straight segments
        alone."""
        bodies, carriers = with_ground(at.motions), self.sites.carriers(at.tree)
        x = place(bodies, carriers, self.sites.position)
        x_rate = velocity(take(bodies.V, carriers), x)
        bias = acceleration(bodies, carriers, x)
        a, b = np.array(self.straight.first, int), np.array(self.straight.second, int)
        gap, gap_rate, push = (take(y, b) - take(y, a) for y in (x, x_rate, bias))
        along, size = safe_unit(gap), safe_norm(gap)
        sideways = jnp.sum(gap_rate * gap_rate, axis=1) - jnp.sum(along * gap_rate, axis=1) ** 2
        second = jnp.sum(along * push, axis=1) + sideways / jnp.where(size > 0, size, 1.0)
        onto = np.arange(self.n)[:, None] == np.array(self.straight.tendon, int)
        return matmul(jnp.asarray(onto, x.dtype), (self.straight_share * second)[:, None])[:, 0]
