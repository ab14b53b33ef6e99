"""Joints of a discrete rod: bending and twist between two segments, and the forces that resist
them.

A joint depends on eight variables: the vectors of both segments a and b [m] and their angles [rad].
Arrays have the shape (8, k), with joints last. Segments are measured from reference frames: unit
directions and directors across them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.chain import ChainFactor, factor_chain
from ...math.safe import safe_norm
from ...mechanics import Linearisation
from .energy import dot

#: number of nodes that a joint connects: before, at and after it
REACH = 3


class _Seen(NamedTuple):
    """Kinematics of both segments at each joint: directions (`along`); two directors across them
    (`across`, `beside`); rotation of these directors as the direction moves, per angle of that
    motion (`roll`); curvature binormal times length (`bend`); `1/(1 + cosine)` of the angle between
    the segments (`share`); and strains times length."""

    along: Any
    across: Any
    beside: Any
    roll: Any
    bend: Any
    share: Any
    strains: Any


class Friction(eqx.Module):
    """Friction that resists curvature beyond `slipped` (2, k) [1/m] with `stiffness` (k,)
    [N m^2 times m]. Curvature that exceeds `slip` [1/m], in any direction, slips. Strains are
    (3, k) [1/m], with the twist last."""

    stiffness: Float[Array, " k"]
    slipped: Float[Array, "2 k"]
    slip: Float[Array, ""]

    def stuck(self, strains):
        """Curvature (2, k) that friction resists."""
        return resisted(strains[:2] - self.slipped, self.slip)

    def moments(self, strains):
        """Friction moments [N m times m], shape (2, k); multiplied by changes of curvature, they
        give work."""
        return self.stiffness * self.stuck(strains)

    def change(self, strains, by):
        """Derivatives of the moments (2, 8, k) with respect to the variables of the joint, whose
        strains have the derivatives `by` (3, 8, k). Slipping curvature is no longer resisted in the
        direction of slip, and less across it."""
        beyond, change = strains[:2] - self.slipped, by[:2]
        share, size = _share(beyond, self.slip)
        along = jnp.sum(beyond[:, None] * change, axis=0) / (size * size)
        along = jnp.where(share < 1.0, along, 0.0)
        return self.stiffness * share * (change - beyond[:, None] * along)

    def energy(self, strains):
        """Energy [J] stored in the curvature that sticks."""
        return 0.5 * jnp.sum(self.stiffness * self.stuck(strains) ** 2)


def resisted(beyond, slip):
    """The sticking part of the curvature (2, k) measured from the slipped curvature."""
    return _share(beyond, slip)[0] * beyond


def _share(beyond, slip):
    """Share of the curvature that sticks, and the magnitude of the whole curvature."""
    size = jnp.maximum(safe_norm(beyond, axis=0), 1e-9)
    return jnp.minimum(1.0, slip / size), size


class Joints(eqx.Module):
    """Geometry and stiffness of k joints. `along`, `across` (3, k + 1): reference directions and
    directors of the segments before, between and after the joints; `shares` (k,) [m]: length of rod
    that belongs to each joint; `bending` (3, k) [N m^2 times m]: stiffness, and `rest` (3, k)
    [1/m]: rest values, of two curvatures and twist; `time` (3, 1) [s]: their damping times;
    `spacing` [m], `axial` [N] and `axial_time` [s]: length, axial stiffness and damping time of the
    segment after each joint, with zero stiffness after the last; `friction`: internal friction, or
    None."""

    along: Float[Array, "3 k1"]
    across: Float[Array, "3 k1"]
    shares: Float[Array, " k"]
    bending: Float[Array, "3 k"]
    rest: Float[Array, "3 k"]
    time: Float[Array, "3 1"]
    spacing: Float[Array, ""]
    axial: Float[Array, " k"]
    axial_time: Float[Array, ""]
    friction: Friction | None = None

    def strains(self, x):
        """Curvature along the second director, curvature against the first, and twist, (3, k)
        [1/m]."""
        return jnp.stack(self._seen(x).strains) / self.shares

    def _seen(self, x) -> "_Seen":
        """Kinematics of the joints. Quantities that are used several times are stored: otherwise
        XLA would copy the computation of each into all of its uses, a hundredfold in the second
        derivatives."""
        x = tuple(x)
        before, after = (slice(None, -1), slice(1, None))
        pick = lambda frame, which: tuple(component[which] for component in frame)
        ta, tb = materialise((_unit(x[:3]), _unit(x[3:6])))
        ma, ha = _turned(pick(self.across, before), pick(self.along, before), ta, x[6])
        mb, hb = _turned(pick(self.across, after), pick(self.along, after), tb, x[7])
        ma, mb, ha, hb = materialise((ma, mb, ha, hb))
        share = 1.0 / (1.0 + dot(ta, tb))
        bend = _times(2.0 * share, _cross(ta, tb))
        na, nb = _cross(ta, ma), _cross(tb, mb)
        bend, carried, na, nb = materialise((bend, _transported(ma, ta, tb), na, nb))
        twist = jnp.arctan2(dot(_cross(carried, mb), tb), dot(carried, mb))
        first = 0.5 * (dot(bend, na) + dot(bend, nb))
        second = -0.5 * (dot(bend, ma) + dot(bend, mb))
        return _Seen((ta, tb), (ma, mb), (na, nb), (ha, hb), bend, share, (first, second, twist))

    def _strains(self, x):
        """Strains and their derivatives (3, 8, k), after Bergou, Audoly, Vouga, Wardetzky and
        Grinspun, "Discrete viscous threads" (2010), for directors that turn no more than their
        segment. Directors measured from a reference also turn with the path of the segment from
        that reference."""
        seen = self._seen(x)
        (ta, tb), (ma, mb), (na, nb), (ha, hb) = seen.along, seen.across, seen.beside, seen.roll
        first, second, _ = seen.strains
        long = [1.0 / jnp.sqrt(dot(e, e)) for e in (x[:3], x[3:6])]
        mean = _times(seen.share, _plus(ta, tb))
        m, n = (_times(seen.share, _plus(*pair)) for pair in (seen.across, seen.beside))

        def row(value, turned, sign, by_angles):
            """Derivatives of one curvature with respect to both segments and both angles."""
            falls = _times(-value, mean)
            a = _plus(falls, _times(sign, _cross(tb, turned)), _times(by_angles[0], ha))
            b = _plus(falls, _times(-sign, _cross(ta, turned)), _times(by_angles[1], hb))
            return jnp.stack([*_times(long[0], a), *_times(long[1], b), *by_angles])

        half = _times(0.5, seen.bend)
        ones = jnp.ones_like(first)
        by_first = row(first, n, 1.0, (-dot(half, ma), -dot(half, mb)))
        by_second = row(second, m, -1.0, (-dot(half, na), -dot(half, nb)))
        a, b = _plus(half, _times(-1.0, ha)), _plus(half, hb)
        by_twist = jnp.stack([*_times(long[0], a), *_times(long[1], b), -ones, ones])
        by = jnp.stack([by_first, by_second, by_twist]) / self.shares
        return materialise((jnp.stack(seen.strains) / self.shares, by))

    def resistance(self, x, rate):
        """Resisting forces (8, k) for given variables and rates."""
        found, by = self._strains(x)
        return self._bent(found, by, rate) + jnp.pad(self._stretched(x, rate)[0], ((3, 2), (0, 0)))

    def _moments(self, found, by, rate):
        rates = jnp.sum(by * rate, axis=1)
        moments = self.bending * (found - self.rest + self.time * rates)
        if self.friction is None:
            return moments
        return moments + jnp.pad(self.friction.moments(found), ((0, 1), (0, 0)))

    def _bent(self, found, by, rate):
        return jnp.sum(self._moments(found, by, rate)[:, None] * by, axis=0)

    def _stretched(self, x, rate):
        """Tension (3, k) and its derivatives with respect to segments and their rates, (3, 3, k)
        each."""
        b, r = x[3:6], rate[3:6]
        size = jnp.sqrt(dot(b, b))
        n = b / size
        speed = dot(n, r)
        pull = self.axial * (size / self.spacing - 1.0 + self.axial_time * speed / self.spacing)
        aside = jnp.eye(3, dtype=x.dtype)[:, :, None] - n[:, None] * n
        growth = (n + self.axial_time * (r - speed * n) / size) * (self.axial / self.spacing)
        viscous = (self.axial * self.axial_time / self.spacing) * n
        by_place = n[:, None] * growth[None] + (pull / size) * aside
        return pull * n, by_place, n[:, None] * viscous[None]

    def linearised(self, x, rate):
        """Return `resistance` and its derivatives with respect to variables and rates, (8, 8, k)
        each."""
        found, by = self._strains(x)
        push = lambda direction: jax.jvp(
            lambda x: self._strains(x)[1], (x,), (direction[:, None] * jnp.ones_like(x),)
        )[1]
        curved = materialise(jax.vmap(push, out_axes=2)(jnp.eye(8, dtype=x.dtype)))  # (3, 8, 8, k)
        moments = materialise(self._moments(found, by, rate))
        stiff = self.bending[:, None] * by
        if self.friction is not None:
            rubbed = self.friction.change(found, by)
            stiff = stiff + jnp.pad(rubbed, ((0, 1), (0, 0), (0, 0)))
        slow = (self.time * self.bending)[:, None]
        change = stiff + slow * jnp.sum(curved * rate[:, None], axis=1)
        outer = lambda x, y: jnp.sum(x[:, :, None] * y[:, None], axis=0)
        by_place = outer(by, change) + jnp.sum(moments[:, None, None] * curved, axis=0)
        by_rate = outer(by, slow * by)
        tension, axial, viscous = self._stretched(x, rate)
        own = ((3, 2), (3, 2), (0, 0))
        resists = jnp.sum(moments[:, None] * by, axis=0) + jnp.pad(tension, ((3, 2), (0, 0)))
        return resists, by_place + jnp.pad(axial, own), by_rate + jnp.pad(viscous, own)


def at_joints(edges, angles):
    """Variables of joints (8, k) from the segments (3, k + 1) and their angles (k + 1,)."""
    return jnp.concatenate([edges[:, :-1], edges[:, 1:], angles[None, :-1], angles[None, 1:]])


def _to_nodes(rows):
    """Convert rows (8, ...) of a joint to rows (12, ...) of the nodes before, at and after it: x,
    y, z and the angle of the segment that follows."""
    a, b, none = rows[:3], rows[3:6], jnp.zeros_like(rows[:1])
    return jnp.concatenate([-a, rows[6:7], a - b, rows[7:8], b, none])


def gathered(resistance):
    """Sum forces (8, s + 1) of joints on nodes 0 to s - 1 and the segments after them, (4, s)."""
    before, at, after = _to_nodes(resistance).reshape(REACH, 4, -1)
    late = jnp.pad(after[:, :-2], ((0, 0), (1, 0)))
    return before[:, 1:] + at[:, :-1] + late


def joined(q) -> Float[Array, "4 s"]:
    """Rearrange coordinates, in which nodes come first, by nodes 0 to s - 1 and the segments after
    them. Node 0 is held."""
    s = (q.shape[0] + 3) // 4
    inner = q[: 3 * (s - 1)].reshape(-1, 3).T
    return jnp.concatenate([jnp.pad(inner, ((0, 0), (1, 0))), q[None, 3 * (s - 1) :]])


def split(blocks) -> Float[Array, " n"]:
    """Inverse of `joined`."""
    return jnp.concatenate([blocks[:3, 1:].T.reshape(-1), blocks[3]])


def elements(blocks, diagonal, segments=None) -> Float[Array, "s 12 12"]:
    """Assemble the chain elements, one per node, from matrices (8, 8, s + 1) of joints, a diagonal
    (4, s) and, if given, matrices (6, 6, s) of the positions of both ends of segments. Node 0 is
    held, and so is everything after node s - 1."""
    whole = _to_nodes(_to_nodes(blocks).swapaxes(0, 1)).swapaxes(0, 1)  # (12, 12, s + 1)
    s = blocks.shape[-1] - 1
    inner = jnp.moveaxis(whole[:, :, 1:], 2, 0)
    first = jnp.pad(whole[4:, 4:, 0], ((0, 4), (0, 4)))  # the joint in the left gripper
    kept = np.ones((s, REACH, 4))
    kept[0, 0, :3] = 0.0
    kept[-2, 2] = kept[-1, 1:] = 0.0
    kept = kept.reshape(s, 12)
    own = np.zeros((s, 12))
    own[0, :3] = 1.0
    here = jnp.pad(diagonal.T, ((0, 0), (0, 8))) * kept + own
    inner = jnp.concatenate([(inner[0] + first)[None], inner[1:]])
    if segments is not None:
        ends = jnp.moveaxis(segments, 2, 0).reshape(s, 2, 3, 2, 3)
        ends = jnp.pad(ends, ((0, 0), (0, 1), (0, 1), (0, 1), (0, 1)))
        inner = inner + ends.reshape(s, 12, 12)
    return inner * (kept[:, :, None] * kept[:, None]) + here[:, :, None] * np.eye(12)


class JointLinearisation(Linearisation):
    """Linearisation about a state. `f`: forces; `elastic` and `viscous`: resistance to
    displacements, `-K`, and to rates, `-D`, joint by joint, (8, 8, s + 1), or None if only solves
    remain to be done; `air`: drag coefficient [N s/m] of a node, and `masses`, both by nodes and
    segments, (4, s); `pressed` and `rubbed` (6, 6, s) or None: resistance of contact to
    displacements and rates of both ends of each segment."""

    f: Float[Array, " n"]
    elastic: Float[Array, "8 8 k"] | None
    viscous: Float[Array, "8 8 k"] | None
    air: Float[Array, "4 s"]
    masses: Float[Array, "4 s"]
    pressed: Float[Array, "6 6 s"] | None = None
    rubbed: Float[Array, "6 6 s"] | None = None
    #: the mass matrix is constant, and no force is held fixed
    exact: bool = eqx.field(static=True, default=True)

    def with_segments(self, pressed, rubbed) -> "JointLinearisation":
        """The same with contact of segments."""
        fields = lambda motion: (motion.pressed, motion.rubbed)
        return eqx.tree_at(fields, self, (pressed, rubbed), is_leaf=lambda x: x is None)

    def stiffness(self, x):
        return -self._product(self.elastic, self.pressed, x)

    def inertia(self, x):
        return split(self.masses * joined(x))

    def factorise(self, h, h2):
        h, h2, motion = lax.stop_gradient((h, h2, self))
        blocks = materialise(h2 * motion.elastic + h * motion.viscous)
        ends = None if motion.pressed is None else h2 * motion.pressed + h * motion.rubbed
        return factor_chain(materialise(elements(blocks, motion.masses + h * motion.air, ends)), 4)

    def bare(self):
        blocks = lambda motion: (motion.elastic, motion.viscous, motion.pressed, motion.rubbed)
        return eqx.tree_at(blocks, self, (None,) * 4, is_leaf=lambda x: x is None)

    def implicit_solve(self, factor: ChainFactor, h, h2, b):
        if self.elastic is None:
            return _substituted(factor, b)
        return lax.custom_linear_solve(
            lambda x: self.inertia(x) - h2 * self.stiffness(x) - h * self._damping(x),
            b,
            lambda _, r: _substituted(factor, r),
            lambda _, r: _substituted(factor.transposed(), r),
        )

    def matrices(self):
        columns = jnp.eye(self.f.shape[0], dtype=self.f.dtype)
        matrix = lambda product: jax.vmap(product, out_axes=1)(columns)
        return matrix(self.inertia), matrix(self.stiffness), matrix(self._damping)

    def _damping(self, x):
        return -self._product(self.viscous, self.rubbed, x) - split(self.air * joined(x))

    def _product(self, blocks, segments, x):
        nodes = jnp.pad(joined(x), ((0, 0), (0, 1)))  # the last node is held
        edges = jnp.pad(jnp.diff(nodes[:3], axis=1), ((0, 0), (1, 1)))
        angles = jnp.pad(nodes[3], (1, 0))
        total = gathered(jnp.sum(blocks * at_joints(edges, angles), axis=1))
        if segments is not None:
            ends = jnp.concatenate([nodes[:3, :-1], nodes[:3, 1:]])
            push = jnp.pad(jnp.sum(segments * ends, axis=1), ((0, 0), (0, 1)))
            push = push[:3, :-1] + jnp.pad(push[3:, :-2], ((0, 0), (1, 0)))
            total = total + jnp.pad(push, ((0, 1), (0, 0)))
        return split(total)


def _substituted(factor, r):
    return split(factor.solve(joined(r).T).T)


def transported(x, a, b):
    """Rotate vectors `x` (3, ...) by the smallest rotation that turns unit vectors `a` into `b`."""
    return jnp.stack(_transported(tuple(x), tuple(a), tuple(b)))


# --- vectors as three components
def _cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _times(factor, x):
    return tuple(factor * component for component in x)


def _plus(*vectors):
    return tuple(sum(components[1:], components[0]) for components in zip(*vectors, strict=True))


def _unit(x):
    return _times(1.0 / jnp.sqrt(dot(x, x)), x)


def _transported(x, a, b):
    axis, c = materialise((_cross(a, b), dot(a, b)))
    return _plus(_times(c, x), _cross(axis, x), _times(dot(axis, x) / (1.0 + c), axis))


def _turned(across, along, to, angle):
    """Directors `across`, transported with the unit vectors `along` to the vectors `to` and rotated
    about these by `angle`; and their rotation about these vectors as the vectors move on, relative
    to directors that turn no more than the vectors do."""
    a = materialise(_transported(across, along, to))
    way = _times(-1.0 / (1.0 + dot(along, to)), _cross(along, to))
    return _plus(_times(jnp.cos(angle), a), _times(jnp.sin(angle), _cross(to, a))), way
