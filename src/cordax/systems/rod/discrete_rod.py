"""Discrete elastic rods: wires held by two grippers, with twist and a bent rest shape.

After Bergou, Wardetzky, Robinson, Audoly and Grinspun, "Discrete elastic rods" (2008). Unlike
there, material frames are measured from those of a given shape instead of being transported in
time, so that the configuration depends on the state alone."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape
from ..._base.fields import part_field
from ..._base.precision import float_field
from ..._jax.materialise import materialise
from ...mechanics import Presentation, Scene, State, Structure, System
from ...mechanics.linearisation import DenseLinearisation
from ...mechanics.parts.line_contact import Line, LineContact, LineContacts, line
from ...mechanics.reference_motion import Reference, reference_field, require_position
from .energy import dot
from .joints import (
    Friction,
    JointLinearisation,
    Joints,
    at_joints,
    gathered,
    joined,
    split,
    transported,
)


class Gripper(eqx.Module):
    """Gripper at one end of a rod: `point` (3,) [m], `tangent` (3,), from left to right, and
    `director` (3,), a direction across the rod that turns with it; constants or `Reference`s of
    time. The lengths of the two directions do not matter, nor does the component of the director
    along the tangent."""

    point: Reference = reference_field(unit="m")
    tangent: Reference = reference_field()
    director: Reference = reference_field()

    def __check_init__(self):
        for name in ("point", "tangent", "director"):
            require_position(name, getattr(self, name), (3,))

    def frame(self, t):
        """Point, unit tangent and unit director at time `t`, (3,) each."""
        along = _unit(self.tangent.position(t))
        across = self.director.position(t)
        return self.point.position(t), along, _unit(across - jnp.sum(across * along) * along)


class DiscreteRod(System):
    """A rod of s segments between two grippers.

    - `nodes` (s + 1, 3) [m]: initial shape, from left to right, from which material frames are
      measured. No segment may rotate by half a turn from its direction there;
    - `left`, `right`: grippers at its ends (`Gripper`);
    - `length` [m], `line_density` [kg/m]; `EA` [N], `EI` [N m^2], `GJ` [N m^2];
    - `bending_time`, `axial_time` [s]: damping times; moments and tension resist strain rates with
      these times their stiffness; `drag` [N s/m^2]: air drag per length and speed;
    - `stick` and `slip` [1/m], if given: friction within the rod, between strands or coat and core.
      It resists bending with `stick` times `EI`, up to the curvature `slip`; the excess slips. The
      curvature that had slipped before a step is an input; the controller `StrandSlip` provides it;
    - `rest_curvature` (s + 1, 2) [1/m]: at every joint, along both material directors; None:
      straight;
    - `gyration` [m]: radius of gyration about the axis of the rod;
    - `contact`: one or several `LineContact`s with obstacles and with itself, as capsules;
    - `gravity` [m/s^2] along -z.

    Coordinates: x, y, z of the nodes between the ends, then the angle of each segment about its
    axis."""

    nodes: Float[Array, "k 3"] = float_field(unit="m")
    left: Gripper = part_field()
    right: Gripper = part_field()
    length: Float[Array, ""] = float_field(unit="m")
    line_density: Float[Array, ""] = float_field(unit="kg/m", default=1.0)
    EA: Float[Array, ""] = float_field(unit="N", default=2e4)
    EI: Float[Array, ""] = float_field(unit="N m^2", default=0.1)
    GJ: Float[Array, ""] = float_field(unit="N m^2", default=0.1)
    bending_time: Float[Array, ""] = float_field(unit="s", default=0.0)
    axial_time: Float[Array, ""] = float_field(unit="s", default=0.0)
    drag: Float[Array, ""] = float_field(unit="N s/m^2", default=0.0)
    stick: Float[Array, ""] | None = float_field(unit="1/m", default=None)
    slip: Float[Array, ""] | None = float_field(unit="1/m", default=None)
    rest_curvature: Float[Array, "k 2"] | None = float_field(unit="1/m", default=None)
    gyration: Float[Array, ""] = float_field(unit="m", default=3e-3)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)
    contact: tuple[LineContact, ...] = part_field(default=())
    directors: Float[Array, "s 3"] | None = None

    default_integrator: ClassVar[str] = "generalised_alpha"
    default_dt: ClassVar[float] = 5e-3

    def __check_init__(self):
        k = self.nodes.shape[0]
        require(self.nodes.ndim == 2 and k >= 4, "nodes", self.nodes.shape, "(s + 1, 3), s >= 3")
        require_shape("nodes", self.nodes, (k, 3))
        for name in ("length", "line_density", "EA", "EI", "GJ", "gyration"):
            require_positive(name, getattr(self, name))
        for name in ("bending_time", "axial_time", "drag"):
            require_positive(name, getattr(self, name), zero_allowed=True)
        if self.stick is not None:
            require_positive("stick", self.stick, zero_allowed=True)
            require(self.slip is not None, "slip", None, "a curvature, where stick is given")
        if self.slip is not None:
            require_positive("slip", self.slip)
            require(self.stick is not None, "stick", None, "a ratio to EI, where slip is given")
        if self.rest_curvature is not None:
            require_shape("rest_curvature", self.rest_curvature, (k, 2))
        LineContacts(self.contact)

    # --- names and layout
    @property
    def segments(self) -> int:
        return self.nodes.shape[0] - 1

    @property
    def coordinate_names(self):
        s = self.segments
        inner = tuple(f"{c}_{i}" for i in range(1, s) for c in "xyz")
        return (*inner, *(f"theta_{j + 1}" for j in range(s)))

    @property
    def input_names(self):
        """Names of the slipped curvatures at every joint, along both material directors."""
        if self.stick is None:
            return ()
        return tuple(f"slip_{i}_{c}" for c in (1, 2) for i in range(self.segments + 1))

    def presentation(self):
        return Presentation(
            units={"nodes": "m", "stretch": "1", "slip": "1/m", "stuck_energy": "J"}
            | LineContacts(self.contact).units(),
            warnings=LineContacts(self.contact).warnings,
            geometry=self.geometry,
            required_control=None
            if self.stick is None
            else "StrandSlip(rod), which counts slipped curvature",
        )

    @property
    def spacing(self) -> Float[Array, ""]:
        """Length l of a segment [m]."""
        return self.length / self.segments

    @property
    def shares(self) -> Float[Array, " k"]:
        """Length of rod that belongs to each joint [m]: half a segment for the joints in the
        grippers."""
        halves = np.ones(self.segments + 1)
        halves[[0, -1]] = 0.5
        return self.spacing * halves

    def prepare(self):
        is_none = lambda x: x is None
        return eqx.tree_at(lambda r: r.directors, self, self._directors(), is_leaf=is_none)

    def _directors(self):
        """Directors of the segments of the given shape: the director of the left gripper,
        transported along the rod."""
        if self.directors is not None:
            return self.directors
        along = _unit(jnp.diff(self.nodes, axis=0))
        _, before, across = self.left.frame(jnp.zeros((), self.nodes.dtype))

        def carry(last, after):
            across = transported(last[1], last[0], after)
            return (after, across), across

        return lax.scan(carry, (before, across), along)[1]

    # --- kinematics
    def place(self, t, q) -> Float[Array, "k 3"]:
        """Positions of all nodes [m]."""
        inner = q[: 3 * (self.segments - 1)].reshape(-1, 3)
        first, last = (g.frame(t)[0][None] for g in (self.left, self.right))
        return jnp.concatenate([first, inner, last])

    def rod_point(self, t, q, station: float) -> Float[Array, " 3"]:
        """Position (3,) [m] at a fraction of the length, along straight segments."""
        x, along = self.place(t, q), station * self.segments
        i = min(int(along), self.segments - 1)
        return x[i] + (along - i) * (x[i + 1] - x[i])

    def _held(self, t):
        """Points, unit tangents and directors of both grippers, (2, 3) each."""
        frames = zip(self.left.frame(t), self.right.frame(t), strict=True)
        return tuple(jnp.stack(pair) for pair in frames)

    def _joints(self, held, u=None) -> Joints:
        """Joints for grippers in the positions `held`; without `u`, there is no friction."""
        ends, across = held[1].T, held[2].T
        still = _unit(jnp.diff(self.nodes, axis=0)).T
        between = lambda ends, inner: jnp.concatenate([ends[:, :1], inner, ends[:, 1:]], axis=1)
        after = np.arange(self.segments + 1) < self.segments
        stiffness, rest = jnp.stack([self.EI, self.EI, self.GJ])[:, None], self._rest()
        time = self.bending_time * jnp.ones((3, 1), self.nodes.dtype)
        return materialise(
            Joints(
                between(ends, still),
                between(across, self._directors().T),
                self.shares,
                stiffness * self.shares,
                rest,
                time,
                self.spacing,
                jnp.where(after, self.EA, 0.0),
                self.axial_time,
                self._friction(u),
            )
        )

    def _friction(self, u) -> Friction | None:
        if self.stick is None or self.slip is None or u is None:
            return None
        return Friction(self.stick * self.EI * self.shares, u.reshape(2, -1), self.slip)

    def _variables(self, points, tangents, q):
        """Variables of the joints (8, s + 1), linear in all three arguments; points and tangents
        (2, 3) are those of the grippers."""
        inner = q[: 3 * (self.segments - 1)].reshape(-1, 3)
        edges = jnp.diff(jnp.concatenate([points[:1], inner, points[1:]]), axis=0)
        ends = self.spacing * tangents
        angles = jnp.pad(q[3 * (self.segments - 1) :], 1)
        return at_joints(jnp.concatenate([ends[:1], edges, ends[1:]]).T, angles)

    def _moving(self, t, q, v):
        """Gripper frames, and variables of the joints and their rates. The rotation of a gripper's
        director beyond that of its tangent counts as an angle."""
        held, turns = jax.jvp(self._held, (t,), (jnp.ones_like(t),))
        points, along, across = held
        rate = self._variables(turns[0], turns[1], v)
        roll = jnp.sum(turns[2] * jnp.cross(along, across), axis=1)
        rate = rate.at[6, 0].add(roll[0]).at[7, -1].add(roll[1])
        return materialise((held, self._variables(points, along, q), rate))

    def strains(self, t, q):
        """Strains of the rod: at the joints curvature along the second and against the first
        director, and twist, (3, s + 1) [1/m]; stretch of the segments (s,)."""
        return self._strains(self._held(t), q)

    def _strains(self, held, q):
        x = self._variables(held[0], held[1], q)
        stretch = jnp.sqrt(dot(x[3:6], x[3:6]))[:-1] / self.spacing - 1.0
        return self._joints(held).strains(x), stretch

    # --- equations
    def _rest(self):
        bent = self.rest_curvature
        bent = jnp.zeros((self.segments + 1, 2), self.nodes.dtype) if bent is None else bent
        return jnp.pad(bent.T, ((0, 1), (0, 0)))

    def potential_energy(self, t, q):
        held = self._held(t)
        joints, stretch = self._strains(held, q)
        bent = jnp.sum(self._joints(held).bending * (joints - self._rest()) ** 2)
        elastic = bent + self.spacing * self.EA * jnp.sum(stretch**2)
        energy = 0.5 * elastic + self._weight() * jnp.sum(self.place(t, q)[1:-1, 2])
        if not self.contact:
            return energy
        return energy + LineContacts(self.contact).energy(self._line(t, q, jnp.zeros_like(q)))

    def _weight(self):
        """Weight of one node [N]."""
        return self.line_density * self.spacing * self.gravity

    def _outside(self, v):
        """Weight and air drag."""
        slowed = self.drag * self.spacing * v[: 3 * (self.segments - 1)].reshape(-1, 3)
        down = jnp.array([0.0, 0.0, 1.0], v.dtype) * self._weight()
        angles = jnp.zeros(self.segments, v.dtype)
        return -jnp.concatenate([(slowed + down).reshape(-1), angles])

    def force(self, t, q, v, u):
        held, x, rate = self._moving(t, q, v)
        resists = self._joints(held, u).resistance(x, rate)
        f = self._outside(v) - split(gathered(resists))
        return f + self._pushed(self._line(t, q, v)) if self.contact else f

    def _line(self, t, q, v) -> Line:
        place = lambda t, q: self.place(t, q)
        x, rate = jax.jvp(place, (t, q), (jnp.ones_like(t), v))
        return line(x, rate, self.spacing)

    def _pushed(self, at: Line):
        """Forces of contact (n,)."""
        push = LineContacts(self.contact).forces(at)[1:-1]
        return jnp.pad(push.reshape(-1), (0, self.segments))

    def _masses(self):
        node = self.line_density * self.spacing
        kinds = np.repeat([0, 1], [3 * (self.segments - 1), self.segments])
        return jnp.where(kinds == 0, node, node * self.gyration**2)

    def mass_matrix(self, q):
        return jnp.diag(self._masses())

    def structure(self) -> "DiscreteStructure":
        return DiscreteStructure(self)

    def valid(self, t, q, v):
        """Whether no segment is stretched to three times its length or has rotated by nearly half a
        turn."""
        edges = jnp.diff(self.place(t, q), axis=0)
        size = jnp.sqrt(jnp.sum(edges * edges, axis=1))
        turned = jnp.sum(edges * _unit(jnp.diff(self.nodes, axis=0)), axis=1) / size
        return (jnp.max(size) < 3.0 * self.spacing) & (jnp.min(turned) > -0.995)

    # --- states and outputs
    def default_state(self):
        q = jnp.concatenate([self.nodes[1:-1].reshape(-1), jnp.zeros(self.segments)])
        return State(q, jnp.zeros_like(q))

    def outputs(self, t, q, v, u, multipliers):
        nodes = self.place(t, q)
        strains, stretch = self.strains(t, q)
        found = {"nodes": nodes, "stretch": jnp.max(jnp.abs(stretch))}
        friction = self._friction(u)
        if friction is not None:
            # not part of the potential energy, which does not depend on the slipped curvature
            found["stuck_energy"] = friction.energy(strains)
        if self.contact:
            found |= LineContacts(self.contact).outputs(self._line(t, q, v))
        return found

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        nodes = self.place(t, q)
        return Scene(lines={"rod": nodes[None]}, points={"end": nodes[jnp.array([0, -1])]})

    # --- rest shapes
    def balanced_rest(
        self, acceleration, *, speed=None, acceleration_error=3.0, curvature=1.0, mean=0.0
    ):
        """Estimate the rest curvature (s + 1, 2) [1/m] most likely to hold the given shape,
        `nodes`, while its nodes accelerate by `acceleration` (s + 1, 3) [m/s^2] and those between
        the ends move with `speed` (s - 1, 3) [m/s] (None: nothing moves). This is a least-squares
        fit in which tensions are free. Bending that no load explains is attributed to the rest
        curvature.

        - `acceleration_error` [m/s^2]: standard error of the accelerations; amplitudes (s - 1,) of
          the half waves along the rod that make up the error, or one for all;
        - `curvature` [1/m]: expected deviation of the rest curvatures from `mean`, (s + 1,) or one
          for all;
        - `mean` (s + 1, 2) [1/m]: prior mean of the rest curvatures."""
        inner, l, node = 3 * (self.segments - 1), self.spacing, self.line_density * self.spacing
        t, q = jnp.zeros((), self.nodes.dtype), self.default_state().q
        held = self._held(t)
        by_place = lambda x: self._strains(held, jnp.concatenate([x, q[inner:]]))
        joints, _ = by_place(q[:inner])
        by_joint, by_stretch = jax.jacfwd(by_place)(q[:inner])
        here = self._joints(held)
        moments = here.bending[:2, :, None] * by_joint[:2]  # of unit curvatures
        moments = moments.reshape(-1, inner)
        up = jnp.array([0.0, 0.0, 1.0]) * self.gravity
        load = node * (acceleration[1:-1] + up).reshape(-1)
        bent = joints[:2]
        if speed is not None:
            v = jnp.concatenate([speed.reshape(-1), jnp.zeros(self.segments)])
            _, x, rate = self._moving(t, q, v)
            bent = bent + self.bending_time * jax.jvp(here.strains, (x,), (rate,))[1][:2]
            load = load + self.drag * l * speed.reshape(-1)
        unmet = (
            load + bent.reshape(-1) @ moments
        )  # load that rest curvature and tension must balance
        i = np.arange(1, self.segments)
        waves = 2.0 / self.segments * np.sin(np.pi * np.outer(i, i) / self.segments)
        size = node * acceleration_error * jnp.ones(self.segments - 1)
        weigh = lambda f: ((waves @ f.reshape(self.segments - 1, -1)) / size[:, None]).reshape(
            f.shape
        )
        columns = weigh(jnp.concatenate([moments, -by_stretch / l]).T)
        sizes = 1.0 / jnp.tile(curvature * jnp.ones(self.segments + 1), 2)
        prior = jnp.pad(jnp.diag(sizes), ((0, 0), (0, self.segments)))
        expected = (mean * jnp.ones((self.segments + 1, 2))).T.reshape(-1)
        right = jnp.concatenate([weigh(unmet), sizes * expected])
        Q, R = jnp.linalg.qr(jnp.concatenate([columns, prior]))
        found = jax.scipy.linalg.solve_triangular(R, Q.T @ right)
        return found[: sizes.shape[0]].reshape(2, -1).T


class DiscreteStructure(Structure):
    """Structure of `DiscreteRod`."""

    system: DiscreteRod

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        """Linearise joint by joint; the mass matrix is constant, and there are no constraints."""
        rod = self.system
        held, x, rate = rod._moving(t, q, v)
        resists, elastic, viscous = rod._joints(held, u).linearised(x, rate)
        kinds = np.array([1.0, 1.0, 1.0, 0.0])[:, None] * np.ones(rod.segments)
        contacts, at = LineContacts(rod.contact), None
        f = rod._outside(v) - split(gathered(resists))
        if contacts:
            at = rod._line(t, q, v)
            f = f + rod._pushed(at)
        motion = JointLinearisation(
            f=f,
            elastic=elastic,
            viscous=viscous,
            air=rod.drag * rod.spacing * kinds,
            masses=joined(rod._masses()),
        )
        if at is None:
            return motion
        if not contacts.self_contact:
            push = lambda B: materialise(-jnp.moveaxis(B, 0, 2))
            K, D = map(push, contacts.segment_jacobians(at))
            return motion.with_segments(K, D)
        # segments far from each other along the rod touch: there is no chain
        M, K, D = motion.matrices()
        inner = slice(3, -3)
        on_nodes = (B[inner, inner] for B in contacts.jacobians(at))
        by_place, by_rate = (jnp.pad(B, (0, rod.segments)) for B in on_nodes)
        return DenseLinearisation(M=M, f=f, K=K + by_place, D=D + by_rate)

    def momentum(self, q, v):
        return self.system._masses() * v

    def mass_solve(self, q, B):
        return B / self.system._masses()[:, None]


def _unit(x):
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))
