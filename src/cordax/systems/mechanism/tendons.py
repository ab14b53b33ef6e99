"""Tendons: lines through sites and round surfaces, or linear combinations of joint coordinates.

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
from ..._jax.constant_gather import add_at, take
from ..._jax.materialise import materialise
from ...math.safe import safe_norm, safe_unit
from . import dynamics, wrap_segments
from .elements import Instant, spread
from .kinematics import cross
from .points import Ground, Sites, acceleration, place, velocity, with_ground


class Straight(NamedTuple):
    """Straight segments (static): index of the `tendon`, of the first and of the second site, each
    a tuple of k indices."""

    tendon: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()


class Wrapped(NamedTuple):
    """Segments past surfaces (static). The fields are those of `Straight` and in addition the
    indices of the `surface` and of the `side` site (-1 for none), whether the surface is a
    `cylinder` or a sphere, and whether all of these tendons pass through the inside of their
    surface."""

    tendon: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    surface: tuple[int, ...]
    side: tuple[int, ...]
    cylinder: tuple[bool, ...]
    inside: bool


class Coupling(NamedTuple):
    """Tendons that are linear combinations of joint coordinates (static): indices of tendon,
    coordinate and velocity of each term."""

    tendon: tuple[int, ...] = ()
    coordinate: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()


def _arrays(parts) -> Any:
    return parts if type(parts) is object else tuple(as_float_array(x) for x in parts)


class TendonState(NamedTuple):
    """Lengths and rates of the tendons, and the data from which wrenches are computed.

    `length` (n,) [m], `rate` (n,) [m/s], the ends of all segments in the world (k, 3) [m] and the
    derivatives (k, 3) of the tendon length with respect to these ends."""

    length: Float[Array, " n"]
    rate: Float[Array, " n"]
    ends: Float[Array, "k 3"]
    slopes: Float[Array, "k 3"]


class Tendons(eqx.Module):
    """Paths of n tendons.

    - `sites`: points through which the tendons pass; `radius` (g,) [m] of the surfaces, whose
      frames are `surfaces` (spheres are centred at the origin, cylinders on the z axis);
    - `straight`, `wrapped`, `coupling`: the segments;
    - `straight_share`, `wrapped_share`: factor on the length of each segment, the reciprocal of the
      divisor of a pulley branch; `coefficient`: factor of each joint term [m/rad];
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
        """Lengths and rates of the tendons, with the segment ends and derivatives from which forces
        are computed."""
        bodies, points = with_ground(at.motions), self._moving_points(at)
        lengths, rates, ends, slopes = [], [], [], []
        a, b, share = self._straight(at.tree, moving=True)
        if len(a):
            (x0, x0_rate), (x1, x1_rate) = points(a), points(b)
            gap, gap_rate = x1 - x0, x1_rate - x0_rate
            along = safe_unit(gap)
            lengths.append(share * safe_norm(gap))
            rates.append(share * jnp.sum(along * gap_rate, axis=1))
            ends += [x0, x1]
            slopes += [-share[:, None] * along, share[:, None] * along]
        for group, share in zip(self.wrapped, self.wrapped_share, strict=True):
            length, rate, end, slope = self._wrapped(group, at, bodies, points)
            lengths.append(share * length)
            rates.append(share * rate)
            ends += end
            slopes += [share[:, None] * s for s in slope]
        q, v = np.array(self.coupling.coordinate, int), np.array(self.coupling.velocity, int)
        if len(q):
            lengths.append(self.coefficient * take(at.q, q))
            rates.append(self.coefficient * take(at.v, v))
        join = lambda parts: jnp.concatenate(parts) if parts else jnp.zeros(0, at.q.dtype)
        rows = lambda parts: jnp.concatenate(parts) if parts else jnp.zeros((0, 3), at.q.dtype)
        both = jnp.stack([join(lengths), join(rates)], axis=1)
        moving = ~self._rigid(at.tree)
        straight = np.array(self.straight.tendon, int)[moving]
        tendon = [straight, *(g.tendon for g in self.wrapped), self.coupling.tendon]
        total = add_at(both, np.concatenate([np.array(t, int) for t in tendon]), self.n)
        length = total[:, 0] + self._rigid_length(at.tree)
        return materialise(TendonState(length, total[:, 1], rows(ends), rows(slopes)))

    def _moving_points(self, at: Instant):
        """Return a function from site indices to world positions and velocities (k, 3). It covers
        the ends of all segments whose length changes."""
        a, b, _ = self._straight(at.tree, moving=True)
        ends = [np.array(x, int) for g in self.wrapped for x in (g.first, g.second, g.side)]
        used = np.unique(np.concatenate([a, b, *ends]))
        used = used[used >= 0]
        if not len(used):
            return lambda index: (jnp.zeros((0, 3)), jnp.zeros((0, 3)))
        bodies, carriers = with_ground(at.motions), self.sites.carriers(at.tree)[used]
        x = place(bodies, carriers, take(self.sites.position, used))
        x, x_rate = materialise((x, velocity(take(bodies.V, carriers), x)))
        rows = lambda index: np.searchsorted(used, np.maximum(index, used[0]))
        return lambda index: (take(x, rows(index)), take(x_rate, rows(index)))

    def _rigid(self, tree) -> np.ndarray:
        """Mask of the straight segments between two sites of one body: their length is constant and
        their forces cancel."""
        carriers = self.sites.carriers(tree)
        first, second = np.array(self.straight.first, int), np.array(self.straight.second, int)
        return carriers[first] == carriers[second]

    def _straight(self, tree, *, moving: bool):
        """First sites, second sites and shares of the straight segments: of those that change their
        length if `moving`, else of the rigid ones."""
        which = np.flatnonzero(self._rigid(tree) != moving)
        pick = lambda index: np.array(index, int)[which]
        return (
            pick(self.straight.first),
            pick(self.straight.second),
            take(self.straight_share, which),
        )

    def _rigid_length(self, tree) -> Float[Array, " n"]:
        """Constant part [m] of the lengths, from the rigid segments."""
        a, b, share = self._straight(tree, moving=False)
        gap = take(self.sites.position, b) - take(self.sites.position, a)
        tendon = np.array(self.straight.tendon, int)[self._rigid(tree)]
        return add_at(share * safe_norm(gap), tendon, self.n)

    def _wrapped(self, group: Wrapped, at: Instant, bodies: Ground, points):
        """Lengths and rates of segments past surfaces, both end points, and the derivatives of the
        lengths with respect to them."""
        surface = np.array(group.surface)
        carriers = self.surfaces.carriers(at.tree)[surface]
        turned = take(self.surfaces.rotation, surface)
        centre = take(self.surfaces.position, surface)
        side = self._side(group, at, points, carriers, centre, turned)
        R = jnp.sum(take(bodies.R, carriers)[..., None] * turned[:, None], axis=2)
        R, centre = materialise((R, place(bodies, carriers, centre)))
        inward = lambda p: jnp.sum(R * (p - centre)[:, :, None], axis=1)
        outward = lambda g: jnp.sum(R * g[:, None, :], axis=2)
        (first, first_rate), (second, second_rate) = (
            points(np.array(x)) for x in (group.first, group.second)
        )
        ends = materialise((inward(first), inward(second)))
        side = inward(side) if self._side_moves(group, at.tree) else side
        value, *slopes = materialise(self._segments(group, ends, take(self.radius, surface), side))
        slopes = materialise([outward(slope) for slope in slopes])
        twist = take(bodies.V, carriers)
        moving = lambda rate, p: rate - velocity(twist, p)
        towards = slopes[0] * moving(first_rate, first) + slopes[1] * moving(second_rate, second)
        return value, jnp.sum(towards, axis=1), [first, second], slopes

    def _side_moves(self, group: Wrapped, tree) -> bool:
        """Whether any side site is on a different body than its surface."""
        sided = np.array(group.side) >= 0
        sites = self.sites.carriers(tree)[np.array(group.side, int)[sided]]
        return bool(np.any(sites != self.surfaces.carriers(tree)[np.array(group.surface)[sided]]))

    def _side(self, group: Wrapped, at: Instant, points, carriers, centre, turned):
        """Side sites (k, 3): in world axes if any of them moves relative to its surface, else in
        surface axes."""
        side = np.array(group.side)
        if self._side_moves(group, at.tree):
            return points(side)[0]
        local = take(self.sites.position, np.maximum(side, 0))
        return jnp.sum(turned * (local - centre)[:, :, None], axis=1)

    def _segments(self, group: Wrapped, ends, radius, side) -> wrap_segments.Segments:
        x0, x1 = ends
        cylinder, sided = np.array(group.cylinder), np.array(group.side) >= 0
        if group.inside:
            return wrap_segments.inside(x0, x1, radius, cylinder)
        if self.side_rule == "4.0" or not sided.any():
            return wrap_segments.outside(x0, x1, radius, side, cylinder, sided)
        return wrap_segments.by_half_planes(x0, x1, radius, side, cylinder, sided)

    def effort(self, at: Instant, state: TendonState, force):
        """Joint forces (n_v,) or None, and wrenches (N, 6) or None, from generalised forces
        `force` (n,) [N] along the tendon lengths. A negative force pulls."""
        joint = wrenches = None
        if self.coupling.tendon:
            along = self.coefficient * take(force, np.array(self.coupling.tendon))
            joint = spread(np.array(self.coupling.velocity), at.tree.n_v, along)
        tendon, site, surface = self._segment_ends(at.tree)
        if len(tendon):
            pull = take(force, tendon)[:, None] * state.slopes
            each = materialise(jnp.concatenate([cross(state.ends, pull), pull], axis=1))
            wrapped = np.flatnonzero(surface >= 0)
            back = -take(each, wrapped)
            onto = np.concatenate([site, surface[wrapped]])
            wrenches = add_at(jnp.concatenate([each, back]), onto, at.tree.n_bodies)
        return joint, wrenches

    def _segment_ends(self, tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each segment end (k,): the tendon, the body of the site, on which its force acts, and
        the body of the surface, on which the opposite force acts (-1 without a surface)."""
        sites, surfaces = self.sites.carriers(tree), self.surfaces.carriers(tree)
        moving = ~self._rigid(tree)
        straight = np.array(self.straight.tendon, int)[moving]
        ends = [
            (straight, sites[np.array(x, int)[moving]], np.full(len(straight), -1))
            for x in (self.straight.first, self.straight.second)
        ]
        for g in self.wrapped:
            here = surfaces[np.array(g.surface)]
            for x in (g.first, g.second):
                body = sites[np.array(x)]
                # opposite forces on the same body cancel
                same = body == here
                off = np.where(same, tree.n_bodies, body), np.where(same, tree.n_bodies, here)
                ends.append((np.array(g.tendon), *off))
        tendon, body, surface = (np.concatenate(x) for x in zip(*ends, strict=True))
        return tendon, body, surface

    def jacobian(self, at: Instant, state: TendonState, which=None) -> Float[Array, "n n_v"]:
        """Derivatives of the tendon lengths with respect to the joint coordinates [m, m/rad], for
        all tendons or those in `which`."""
        which = np.arange(self.n) if which is None else np.asarray(which, int)

        def row(force):
            joint, wrenches = self.effort(at, state, force)
            total = jnp.zeros(at.tree.n_v, force.dtype) if joint is None else joint
            if wrenches is not None:
                total = total + dynamics.joint_forces(at.tree, at.motions.poses, wrenches)
            return total

        return jax.vmap(row)(jnp.asarray(np.eye(self.n)[which], at.q.dtype))

    def acceleration(self, at: Instant) -> Float[Array, " n"]:
        """Second time derivatives of the lengths [m/s^2] at zero joint accelerations, for straight
        segments only."""
        bodies, carriers = with_ground(at.motions), self.sites.carriers(at.tree)
        x = place(bodies, carriers, self.sites.position)
        x_rate = velocity(take(bodies.V, carriers), x)
        bias = acceleration(bodies, carriers, x)
        a, b = np.array(self.straight.first, int), np.array(self.straight.second, int)
        gap, gap_rate, push = (take(y, b) - take(y, a) for y in (x, x_rate, bias))
        along, size = safe_unit(gap), safe_norm(gap)
        sideways = jnp.sum(gap_rate * gap_rate, axis=1) - jnp.sum(along * gap_rate, axis=1) ** 2
        second = jnp.sum(along * push, axis=1) + sideways / jnp.where(size > 0, size, 1.0)
        return add_at(self.straight_share * second, np.array(self.straight.tendon, int), self.n)
