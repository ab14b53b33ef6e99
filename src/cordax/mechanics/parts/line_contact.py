"""Contact of lines (rods, ropes) with obstacles and with themselves.

A line is a polyline whose segments are capsules. Contact forces act on its points."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive
from ..._base.fields import count_field, flag_field, name_field, part_field
from ..._base.precision import float_field
from ...math.linalg import matmul
from ..linearisation import DenseLinearisation, Linearisation
from .broad_phase import ClosePairs, close_pairs
from .contact_geometry import FAR, MIDDLE, POINT, closest_shares, deepest_share
from .contact_law import ContactLaw
from .shapes import (
    Box,
    Capsule,
    ConvexPoints,
    Cylinder,
    HeightField,
    Plane,
    Shape,
    Sphere,
    round_surface,
)

#: distance, in widths of the contact law, beyond which forces are below round-off
_TAIL = 40.0


class Line(NamedTuple):
    """Lines as polylines. `x`, `v` (k, 3): positions [m] and velocities [m/s] of their points;
    `first`, `last` (n,): indices of the points of each segment; `length` (n,) [m] at rest; `chain`
    (n,): index of the line of each segment (segments of a line are consecutive); `joints`: pairs of
    ends ((chain, at its end), (chain, at its end)) that are joined."""

    x: Float[Array, "k 3"]
    v: Float[Array, "k 3"]
    first: np.ndarray
    last: np.ndarray
    length: Float[Array, " n"]
    chain: np.ndarray
    joints: tuple = ()

    def ends(self, of) -> Float[Array, "n 2 3"]:
        """Values at both ends of each segment, from values `of` the points (k, 3)."""
        return jnp.stack([of[self.first], of[self.last]], axis=1)


def line(x, v, length, chains: int = 1, joints: tuple = ()) -> Line:
    """Create lines with equal numbers of points, one after the other in `x`, `v`
    (chains * points, 3), with segments of a `length` () or (chains,) [m]."""
    points = x.shape[0] // chains
    first = np.concatenate([np.arange(points - 1) + c * points for c in range(chains)])
    chain = np.repeat(np.arange(chains), points - 1)
    length = jnp.broadcast_to(length, (chains,))[chain]
    return Line(x, v, first, first + 1, length, chain, joints)


class LineContact(eqx.Module):
    """Contact of a rod or of ropes, as capsules between the points of a polyline, with obstacles
    and with themselves.

    - `obstacles`: shapes that do not move: `Plane`, `Sphere`, `Capsule`, `Box`, `Cylinder`,
      `HeightField`;
    - `law`: `ContactLaw` with `stiffness` [N/m^2], force per length of rod and depth;
    - `radius` [m] of the rod; None: that of the machine, where it has one;
    - `self_contact`: whether segments touch each other. Segments closer along the rod than half a
      circle of the radius do not, because a rod cannot bend more sharply;
    - `capacity`: number of pairs of segments that are evaluated, the closest ones; None: four for
      each segment, at least 300. More pairs within reach set the warning `contact_overflow`;
    - `name`: prefix of the outputs. `contact_gap` [m]: smallest distance to obstacles (obstacles,)
      and, with `self_contact`, between segments (1,); `contact_force` (k, 3) [N] on the points.

    Friction acts on the centre line: contact does not twist a rod."""

    obstacles: tuple[Shape, ...] = part_field(default=())
    law: ContactLaw = part_field(default_factory=ContactLaw)
    radius: Float[Array, ""] | None = float_field(unit="m", default=None)
    self_contact: bool = flag_field(default=False)
    capacity: int | None = count_field(default=None)
    name: str = name_field(default="contact")

    def __check_init__(self):
        if self.radius is not None:
            require_positive("radius", self.radius)
        for i, shape in enumerate(self.obstacles):
            solid = not isinstance(shape, ConvexPoints)
            require(solid, f"obstacles[{i}]", "ConvexPoints", "a shape with a surface")
        some = len(self.obstacles) > 0 or self.self_contact
        require(some, "obstacles", self.obstacles, "at least one, or self_contact=True")

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{x}" for x in ("gap", "force"))

    @property
    def _radius(self) -> Array:
        assert self.radius is not None  # guaranteed by `LineContacts`
        return self.radius

    # --- forces
    def forces(self, at: Line) -> Float[Array, "k 3"]:
        """Contact forces [N] on the points."""
        total = jnp.zeros_like(at.x)
        if self.obstacles:
            x, v = at.ends(at.x), at.ends(at.v)
            pushed = jax.vmap(self.segment_forces)(x, v, at.length)
            total = total.at[at.first].add(pushed[:, 0]).at[at.last].add(pushed[:, 1])
        if self.self_contact:
            pairs = self.pairs(at)
            index = _points(at, pairs)
            pushed = jax.vmap(self._pair_forces)(at.x[index], at.v[index], *_sizes(at, pairs))
            total = total.at[index].add(pushed)
        return total

    def jacobians(self, at: Line) -> tuple[Float[Array, "3k 3k"], Float[Array, "3k 3k"]]:
        """Derivatives of `forces` by positions and by velocities; rows and columns are ordered by
        points, then components."""
        k = at.x.shape[0]
        total = jnp.zeros((2, k, k, 3, 3), at.x.dtype)

        def added(total, index, law, *rest):
            x, v = at.x[index], at.v[index]
            blocks = jax.vmap(jax.jacfwd(law, (0, 1)))(x, v, *rest)
            blocks = jnp.stack(blocks).transpose(0, 1, 2, 4, 3, 5)  # (2, c, i, j, 3, 3)
            return total.at[:, index[:, :, None], index[:, None, :]].add(blocks)

        if self.obstacles:
            ends = np.stack([at.first, at.last], axis=1)
            total = added(total, ends, self.segment_forces, at.length)
        if self.self_contact:
            pairs = self.pairs(at)
            total = added(total, _points(at, pairs), self._pair_forces, *_sizes(at, pairs))
        K, D = total.transpose(0, 1, 3, 2, 4).reshape(2, 3 * k, 3 * k)
        return K, D

    def segment_forces(self, x, v, length) -> Float[Array, "2 3"]:
        """Forces [N] of all obstacles on the ends of a segment with a `length` [m]; the ends have
        positions `x` (2, 3) [m] and velocities `v`
        (2, 3) [m/s]."""
        total = jnp.zeros_like(x)
        for shape in self.obstacles:
            for touch in _touches(shape, x[0], x[1], self._radius):
                shares = jnp.stack([1.0 - touch.share, touch.share])
                velocity = jnp.sum(shares[:, None] * v, axis=0)
                push = self.law.surface_force(-touch.gap, touch.normal, velocity)
                total = total + (length * touch.weight) * shares[:, None] * push
        return total

    def _pair_forces(self, x, v, length, present) -> Float[Array, "4 3"]:
        """Contact forces [N] of two segments on their ends (4, 3)."""
        gap, normal, shares = self._pair(x, present)
        push = self.law.surface_force(-gap, normal, jnp.sum(shares[:, None] * v, axis=0))
        return length * shares[:, None] * push

    def _pair(self, x, present):
        """Gap [m] of two segments, normal (3,) towards the first, and weights (4,) of their ends in
        the closest points, negative for the second."""
        # entries that are not pairs are placed far apart and in different directions
        far = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 9], [0, 1, 9]]) * FAR
        p, q, r, w = jnp.where(present, x, far.astype(x.dtype))
        s, t = closest_shares(p, q - p, r, w - r)
        between = p + s * (q - p) - r - t * (w - r)
        across = jnp.cross(q - p, w - r)
        square = jnp.sum(across * across)
        crossed = square > 0
        across = across / jnp.sqrt(jnp.where(crossed, square, 1.0))
        across = jnp.where(crossed, across, jnp.array([0.0, 0.0, 1.0], x.dtype))
        gap, normal = round_surface(between, 2.0 * self._radius, across)
        return gap, normal, jnp.stack([1.0 - s, s, t - 1.0, -t])

    # --- pairs of segments
    def pairs(self, at: Line) -> ClosePairs:
        """Pairs of segments that may touch."""
        n = len(at.first)
        start, end = at.x[at.first], at.x[at.last]
        half = 0.5 * jnp.sqrt(jnp.sum((end - start) ** 2, axis=1))
        reach = half + self._radius + 0.5 * _TAIL * self.law.width
        capacity = max(300, 4 * n) if self.capacity is None else self.capacity
        return close_pairs(0.5 * (start + end), reach, self._apart(at), capacity)

    def _apart(self, at: Line):
        """Pairs of segments (n, n), the second after the first, that are not neighbours: more than
        half a circle of the radius lies between them along the line."""
        n = len(at.first)
        near = jnp.pi * self._radius
        end = jnp.cumsum(at.length)
        between = (end - at.length)[None] - end[:, None]
        same = at.chain[:, None] == at.chain[None]
        following = np.arange(n)[None] - np.arange(n)[:, None] < 2
        apart = ~(same & (following | (between < near)))
        for ends in at.joints:
            # distances of segments from the joined ends, infinite for other lines
            first, second = (_from_end(at, end, *side) for side in ends)
            apart = apart & ~(first[:, None] + second[None] < near)
            apart = apart & ~(second[:, None] + first[None] < near)
        return apart

    # --- outputs
    def energy(self, at: Line) -> Float[Array, ""]:
        """Elastic energy [J]."""
        total = jnp.zeros((), at.x.dtype)
        if self.obstacles:

            def one(x, length):
                return sum(
                    length * touch.weight * self.law.elastic_energy(-touch.gap)
                    for shape in self.obstacles
                    for touch in _touches(shape, x[0], x[1], self._radius)
                )

            total = total + jnp.sum(jax.vmap(one)(at.ends(at.x), at.length))
        if self.self_contact:
            pairs = self.pairs(at)
            length, present = _sizes(at, pairs)
            gap, *_ = jax.vmap(self._pair)(at.x[_points(at, pairs)], present)
            total = total + jnp.sum(length * self.law.elastic_energy(-gap))
        return total

    def outputs(self, at: Line) -> dict[str, Array]:
        """Forces on points and smallest gaps."""
        gaps = []
        for shape in self.obstacles:

            def least(x, shape=shape):
                found = _touches(shape, x[0], x[1], self._radius)
                return jnp.min(jnp.stack([touch.distance for touch in found]))

            gaps.append(jnp.min(jax.vmap(least)(at.ends(at.x))))
        found = {}
        if self.self_contact:
            pairs = self.pairs(at)
            gap, *_ = jax.vmap(self._pair)(at.x[_points(at, pairs)], pairs.present)
            gaps.append(jnp.min(gap))
            found[f"{self.name}_overflow"] = pairs.overflow
        found[f"{self.name}_gap"] = jnp.stack(gaps)
        found[f"{self.name}_force"] = self.forces(at)
        return found

    def warnings(self, outputs) -> dict[str, Array]:
        """Penetrations deeper than the radius, and more pairs within reach than `capacity`."""
        gap = outputs.get(f"{self.name}_gap")
        if gap is None:
            return {}
        deep = {f"{self.name}_deep": gap < -self._radius}
        overflow = outputs.get(f"{self.name}_overflow")
        return deep if overflow is None else deep | {f"{self.name}_overflow": overflow}


class LineContacts(eqx.Module):
    """All `LineContact`s of a machine, for example with several materials. Those without a radius
    use the radius of the machine, `radius` [m] or None."""

    parts: tuple[LineContact, ...]

    def __init__(self, parts: tuple[LineContact, ...], radius=None):
        names = [part.name for part in parts]
        require(len(set(names)) == len(names), "contact", names, "different names")
        known = all(part.radius is not None for part in parts) or radius is not None
        require(known, "contact.radius", None, "a number > 0 [m]")
        fill = lambda part: eqx.tree_at(lambda p: p.radius, part, radius, is_leaf=_is_none)
        self.parts = tuple(part if part.radius is not None else fill(part) for part in parts)

    def __bool__(self):
        return len(self.parts) > 0

    @property
    def self_contact(self) -> bool:
        return any(part.self_contact for part in self.parts)

    def forces(self, at: Line):
        return _sum([part.forces(at) for part in self.parts])

    def jacobians(self, at: Line):
        each = [part.jacobians(at) for part in self.parts]
        return _sum([K for K, _ in each]), _sum([D for _, D in each])

    def segment_forces(self, x, v, length):
        return _sum([part.segment_forces(x, v, length) for part in self.parts])

    def segment_jacobians(self, at: Line) -> tuple[Float[Array, "n 6 6"], Float[Array, "n 6 6"]]:
        """Derivatives of the obstacle forces on both ends of each segment by the positions and by
        the velocities of these ends."""
        law = jax.vmap(jax.jacfwd(self.segment_forces, (0, 1)))
        K, D = law(at.ends(at.x), at.ends(at.v), at.length)
        return K.reshape(-1, 6, 6), D.reshape(-1, 6, 6)

    def dense(self, motion: Linearisation, at: Line, J) -> DenseLinearisation:
        """Add the derivatives of contact forces to the linearisation `motion` of a machine, whose
        forces already include contact. `J` (3 k, n): constant derivatives of the points by
        coordinates."""
        M, K, D = motion.matrices()
        by_place, by_rate = (matmul(J.T, matmul(B, J)) for B in self.jacobians(at))
        return DenseLinearisation(M=M, f=motion.f, K=K + by_place, D=D + by_rate)

    def energy(self, at: Line):
        return _sum([part.energy(at) for part in self.parts])

    def outputs(self, at: Line) -> dict[str, Array]:
        return {name: x for part in self.parts for name, x in part.outputs(at).items()}

    def warnings(self, outputs) -> dict[str, Array]:
        return {name: x for part in self.parts for name, x in part.warnings(outputs).items()}

    def units(self) -> dict[str, str]:
        """Units of the outputs."""
        each = [zip(part.output_names, ("m", "N"), strict=True) for part in self.parts]
        return {name: unit for part in each for name, unit in part}


def _sum(terms: list) -> Array:
    return sum(terms[1:], terms[0])


def _is_none(x) -> bool:
    return x is None


class _Touch(NamedTuple):
    """Contact point at a fraction `share` of a segment, its `gap` [m], `normal` (3,) and `weight`;
    `distance` [m] to the surface, which can differ from `gap`."""

    share: Float[Array, ""]
    gap: Float[Array, ""]
    normal: Float[Array, " 3"]
    weight: float
    distance: Float[Array, ""]


def _touches(shape: Shape, start, end, radius) -> list[_Touch]:
    """Contact points of a segment from `start` to `end` (3,) with a shape: the closest point for
    round shapes, both ends for others, and also a point between the ends for boxes and cylinders of
    finite length."""
    way = end - start

    def at(share, weight):
        distance, normal = shape.surface(start + share * way)
        gap = distance - radius
        return _Touch(share, gap, normal, weight, gap)

    zero, one = jnp.zeros((), way.dtype), jnp.ones((), way.dtype)
    if isinstance(shape, Sphere):
        return [at(_closest(start - shape.centre, way), 1.0)]
    if isinstance(shape, Capsule):
        return [at(closest_shares(start, way, shape.start, shape.end - shape.start)[0], 1.0)]
    if isinstance(shape, Cylinder) and shape.length is None:
        across = lambda x: x - shape.direction() * jnp.sum(shape.direction() * x)
        return [at(_closest(across(start - shape.centre), across(way), way), 1.0)]
    ends = [at(zero, 0.5), at(one, 0.5)]
    if isinstance(shape, (Plane, HeightField)):
        return ends
    assert isinstance(shape, (Box, Cylinder))
    inner = at(deepest_share(start, way, shape), 1.0)
    # the ends already push: only the height of the surface above the line between them counts
    share = inner.share
    pressed = -(1.0 - share) * ends[0].gap - share * ends[1].gap
    return [*ends, inner._replace(gap=inner.gap + jnp.maximum(pressed, 0.0))]


def _closest(start, way, whole=None):
    """Position, as a fraction of its length, at which a segment along `way` (3,) from `start` (3,)
    is closest to the origin; the middle if all points are equally close. `whole` (3,): the segment
    of which `way` is a component."""
    whole = way if whole is None else whole
    small = MIDDLE * jnp.sum(whole * whole) + POINT
    share = (0.5 * small - jnp.sum(start * way)) / (jnp.sum(way * way) + small)
    return jnp.clip(share, 0.0, 1.0)


def _points(at: Line, pairs: ClosePairs):
    """Indices of the points (c, 4) of pairs of segments."""
    first, last = jnp.asarray(at.first), jnp.asarray(at.last)
    index = [first[pairs.first], last[pairs.first], first[pairs.second], last[pairs.second]]
    return jnp.stack(index, axis=1)


def _sizes(at: Line, pairs: ClosePairs):
    """Contact lengths [m] of pairs, and whether each entry is a pair, (c,) each."""
    return jnp.minimum(at.length[pairs.first], at.length[pairs.second]), pairs.present


def _from_end(at: Line, end, chain: int, at_end: bool):
    """Distances (n,) [m] of segments along a line from one of its ends; infinite for segments of
    other lines."""
    members = at.chain == chain
    total = jnp.max(jnp.where(members, end, -jnp.inf))
    begin = jnp.min(jnp.where(members, end - at.length, jnp.inf))
    distance = total - end if at_end else end - at.length - begin
    return jnp.where(members, distance, jnp.inf)
