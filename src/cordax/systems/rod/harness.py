"""Branching rods: a wiring harness of splines joined at nodes."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_known, require_whole
from ..._base.fields import part_field
from ...math.linalg import matvec
from ...mechanics import Presentation, Scene, State, Structure, System
from ...mechanics.constraints import ConstraintTerms
from ...mechanics.parts.line_contact import Line, LineContact, LineContacts
from .linearisation import HarnessLinearisation
from .spline_rod import SplineRod

Side = Literal["left", "right"]


class Joint(NamedTuple):
    """Joint of two rod ends: the `side` of rod `rod` continues at the `other_side` of rod `other`,
    with one point, one tangent and one angle."""

    rod: int
    side: Side
    other: int
    other_side: Side


def _as_joints(joints) -> tuple[Joint, ...]:
    """Convert joints, or tuples of their four entries, to `Joint`s."""
    expected = "a tuple of Joint(rod, side, other, other_side)"
    listed = isinstance(joints, (tuple, list))
    four = listed and all(isinstance(j, (tuple, list)) and len(j) == 4 for j in joints)
    require(four, "joints", joints, expected)
    for rod, side, other, other_side in joints:
        require_whole("joints", rod, 0)
        require_whole("joints", other, 0)
        for x in (side, other_side):
            require_known("joints", x, ("left", "right"))
    return tuple(Joint(*j) for j in joints)


class Harness(System):
    """Rods with joints between their free ends. Each joint has seven linear constraints: position,
    tangent (r' of one is r' of the other, reversed where two equal sides meet) and twist.

    `contact`: one or several `LineContact`s of all rods, with obstacles and, with `self_contact`,
    with each other too; a single rod may have a `contact` of its own.

    Coordinates, inputs and outputs are those of the rods, one after the other, prefixed with the
    number of the rod."""

    rods: tuple[SplineRod, ...] = part_field()
    joints: tuple[Joint, ...] = eqx.field(  # pyright: ignore[reportGeneralTypeIssues]
        static=True, converter=lambda x: _as_joints(x)
    )
    contact: tuple[LineContact, ...] = part_field(default=())

    default_integrator = "generalised_alpha"
    default_dt = 2e-3

    def __check_init__(self):
        require(len(self.rods) >= 1, "rods", self.rods, "one or more")
        pairs = [frozenset(((j.rod, j.side), (j.other, j.other_side))) for j in self.joints]
        for joint, pair in zip(self.joints, pairs, strict=True):
            require(len(pair) == 2, "joints", joint, "two different ends")
            require(pairs.count(pair) == 1, "joints", joint, "two ends to be joined once")
            for rod, side in ((joint.rod, joint.side), (joint.other, joint.other_side)):
                require(
                    0 <= rod < len(self.rods), "joints", joint, f"rods 0 to {len(self.rods) - 1}"
                )
                end = getattr(self.rods[rod], side)
                free = not any(end.holds) and not any(end.slope) and not end.twist
                require(free, "joints", joint, f"the {side} end of rod {rod} to be End.free()")
        LineContacts(self.contact, self.rods[0].diameter)

    @property
    def coordinate_names(self):
        return tuple(f"{i}_{n}" for i, rod in enumerate(self.rods) for n in rod.coordinate_names)

    @property
    def input_names(self):
        return tuple(f"{i}_{n}" for i, rod in enumerate(self.rods) for n in rod.input_names)

    def presentation(self):
        units = self._contacts().units()
        return Presentation(units=units, geometry=self.geometry, warnings=self._warnings)

    @property
    def n_constraints(self):
        return 7 * len(self.joints)

    def parts(self, q, sizes=None):
        """Split coordinates (or velocities, forces) by rod."""
        sizes = [rod.n_q for rod in self.rods] if sizes is None else sizes
        return jnp.split(q, np.cumsum(sizes)[:-1])

    def mass_matrix(self, q):
        return jax.scipy.linalg.block_diag(*(rod.mass_matrix(q) for rod in self.rods))

    def force(self, t, q, v, u):
        inputs = self.parts(u, [rod.n_u for rod in self.rods])
        each = zip(self.rods, self.parts(q), self.parts(v), inputs, strict=True)
        f = jnp.concatenate([rod.force(t, a, b, c) for rod, a, b, c in each])
        if not self.contact:
            return f
        push = self._contacts().forces(self._line(t, q, v))
        return f + jax.linear_transpose(lambda v: self._points(t, v, True), v)(push)[0]

    def _contacts(self) -> LineContacts:
        return LineContacts(self.contact, 0.5 * self.rods[0].diameter)

    def _points(self, t, x, velocities: bool) -> Float[Array, "k 3"]:
        """Points of all rods at coordinates `x`, or their velocities without those of supports."""
        found = []
        for rod, part in zip(self.rods, self.parts(x), strict=True):
            zero = jnp.zeros(4, x.dtype)
            P = (
                rod.layout.join(part, zero, zero, zero, zero)
                if velocities
                else rod.control(t, part)
            )
            found.append(rod.line(P, P).x)
        return jnp.concatenate(found)

    def _line(self, t, q, v) -> Line:
        parts = [
            rod.line(rod.control(t, a), rod.control_rate(t, b))
            for rod, a, b in zip(self.rods, self.parts(q), self.parts(v), strict=True)
        ]
        offsets = np.cumsum([0, *(part.x.shape[0] for part in parts)])
        number = lambda name: np.concatenate(
            [getattr(part, name) + offset for part, offset in zip(parts, offsets, strict=False)]
        )
        chain = np.concatenate([part.chain + i for i, part in enumerate(parts)])
        join = lambda name: jnp.concatenate([getattr(part, name) for part in parts])
        joints = tuple(
            ((j.rod, j.side == "right"), (j.other, j.other_side == "right")) for j in self.joints
        )
        points = join("x"), join("v")
        return Line(*points, number("first"), number("last"), join("length"), chain, joints)

    def structure(self) -> "HarnessStructure":
        return HarnessStructure(self)

    def _end(self, t, parts, rod: int, side: Side):
        """Position, tangent and angle of an end, shape (7,)."""
        machine = self.rods[rod]
        P = machine.control(t, parts[rod])
        outer, slope = (
            (P[:, 0], P[:, 1] - P[:, 0]) if side == "left" else (P[:, -1], P[:, -1] - P[:, -2])
        )
        return jnp.concatenate([outer[:3], slope[:3] * (3.0 / machine.span), outer[3:]])

    def constraint(self, t, q):
        parts = self.parts(q)
        rows = []
        for rod, side, other, other_side in self.joints:
            turn = -1.0 if side == other_side else 1.0
            sign = jnp.array([1.0, 1.0, 1.0, turn, turn, turn, 1.0])
            rows.append(
                self._end(t, parts, rod, side) - sign * self._end(t, parts, other, other_side)
            )
        return jnp.concatenate(rows) if rows else jnp.zeros(0, q.dtype)

    def potential_energy(self, t, q):
        each = zip(self.rods, self.parts(q), strict=True)
        return sum(rod.potential_energy(t, p) for rod, p in each) + self._contact_energy(t, q)

    def _contact_energy(self, t, q):
        """Elastic energy [J] of the contacts of the harness."""
        if not self.contact:
            return 0.0
        return self._contacts().energy(self._line(t, q, jnp.zeros_like(q)))

    def energies(self, t, q, v):
        each = zip(self.rods, self.parts(q), self.parts(v), strict=True)
        kinetic, potential = zip(*(rod.energies(t, a, b) for rod, a, b in each), strict=True)
        return sum(kinetic), sum(potential) + self._contact_energy(t, q)

    def default_state(self):
        states = [rod.default_state() for rod in self.rods]
        q, v = (jnp.concatenate([getattr(s, n) for s in states]) for n in ("q", "v"))
        return State(q, v)

    def state_of(self, *states: State) -> State:
        """Combine the states of the rods into one state."""
        q, v = (jnp.concatenate([getattr(s, n) for s in states]) for n in ("q", "v"))
        return State(q, v)

    def outputs(self, t, q, v, u, multipliers):
        out = {}
        inputs = self.parts(u, [rod.n_u for rod in self.rods])
        for i, (rod, a, b, c) in enumerate(
            zip(self.rods, self.parts(q), self.parts(v), inputs, strict=True)
        ):
            out |= {f"{i}_{n}": x for n, x in rod.outputs(t, a, b, c, multipliers[:0]).items()}
        if self.contact:
            out |= self._contacts().outputs(self._line(t, q, v))
        return out

    def _warnings(self, outputs):
        found = self._contacts().warnings(outputs)
        for i, rod in enumerate(self.rods):
            start = f"{i}_"
            own = {n.removeprefix(start): x for n, x in outputs.items() if n.startswith(start)}
            found |= {f"{start}{n}": x for n, x in rod.presentation().warnings(own).items()}
        return found

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        scenes = [rod.geometry(t, p) for rod, p in zip(self.rods, self.parts(q), strict=True)]
        join = lambda kind: jnp.concatenate([s.lines[kind] for s in scenes])
        points = jnp.concatenate([s.points["end"] for s in scenes])
        return Scene(lines={"rod": join("rod")}, points={"end": points})


class HarnessStructure(Structure):
    """Structure of `Harness`: those of its rods."""

    system: Harness

    def mass_solve(self, q, B):
        rods = self.system.rods
        blocks = jnp.split(B, np.cumsum([rod.n_q for rod in rods])[:-1])
        each = zip(rods, blocks, strict=True)
        return jnp.concatenate([rod.structure().mass_solve(q, b) for rod, b in each])

    def momentum(self, q, v):
        rods, parts = self.system.rods, self.system.parts
        each = zip(rods, parts(q), parts(v), strict=True)
        return jnp.concatenate([rod.structure().momentum(a, b) for rod, a, b in each])

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        """Linearise chain by chain. Masses are constant and joints linear, so accelerations and
        multipliers contribute nothing."""
        rods, parts = self.system.rods, self.system.parts
        inputs = parts(u, [rod.n_u for rod in rods])
        each = zip(rods, parts(q), parts(v), inputs, strict=True)
        chains = tuple(rod.structure().linearise(t, a, b, c) for rod, a, b, c in each)
        motion, machine = HarnessLinearisation(chains), self.system  # pyright: ignore[reportCallIssue]
        if not machine.contact:
            return motion
        contacts, at = machine._contacts(), machine._line(t, q, v)
        J = jax.jacfwd(lambda v: machine._points(t, v, True).reshape(-1))(v)
        with_contact = contacts.dense(motion, at, J)
        push = contacts.forces(at).reshape(-1)
        return eqx.tree_at(lambda m: m.f, with_contact, with_contact.f + matvec(J.T, push))

    def constraint_terms(self, t, q, v):
        # linear in q with constant coefficients: no bias, and the same Jacobian for all states
        constraint = self.system.constraint
        J = jax.jacfwd(constraint, argnums=1)(t, jnp.zeros_like(q))
        phi, rate = jax.jvp(lambda q: constraint(t, q), (q,), (v,))
        return ConstraintTerms(phi, J, rate, jnp.zeros_like(phi))
