"""Mechanism assembled from bodies, joints, loops and force elements."""

from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_shape
from ..._base.fields import names_field, part_field
from ..._base.precision import float_field
from ..._jax.program_cache import kept_filter_jit
from ..._jax.trace_memo import once
from ...mechanics.constraints import ConstraintTerms
from ...mechanics.contacts import joined
from ...mechanics.presentation import Presentation
from ...mechanics.state import State
from ...mechanics.system import System
from . import drawing, drums, dynamics, kinematics, validity, winding
from . import loops as loop_terms
from .assembly import Mobility, assemble, mobility
from .body import Body
from .cables import CableSet, RigidCable, strain_terms, wound_cables
from .contact import Contact
from .elements import Element, Inert, Instant, JointLimits
from .joints import Fixed
from .loops import Loop
from .structure import MechanismStructure
from .tension_cables import TensionCables
from .tree import Tree, tree_of
from .winding import follows_winding
from .wound import CableTerms, WoundCables


def _cut(tree: Tree, q, v):
    return q[: tree.n_q], v[: tree.n_v], v[tree.n_v :]


#: stands for all joints whose coordinates can be added componentwise
_PLAIN = Fixed()
#: elements that are cables over guides
_ROUTED = (CableSet, TensionCables)

_Law = TypeVar("_Law", bound=Element)


class Constants(NamedTuple):
    """Quantities that are constant during a run."""

    placements: kinematics.Placements
    masses: dynamics.Masses
    loops: tuple[Loop, ...]


class Mechanism(System):
    """Mechanism of rigid `bodies` joined to a tree, `loops` that close it, and `elements` that
    exert forces, with `gravity` (3,) [m/s^2].

    The coordinates are those of the joints, in the order of the bodies. A joint with one coordinate
    has the name of its body; others append the name of the coordinate (`block_x`). The multipliers
    are the forces of the loops on the predecessor, in the order of the loops. The mass matrix may
    be singular (massless bodies) as long as the loops hold every body without mass. `independent`
    names the coordinates that `IndependentCoordinates` integrates, by the names of their velocities
    where they are a quaternion.

    First-order states of elements (muscle activations) follow the velocities of the joints and have
    unit mass. Their time integrals follow the coordinates."""

    bodies: tuple[Body, ...] = part_field()
    loops: tuple[Loop, ...] = part_field(default=())
    elements: tuple[Element, ...] = part_field(default=())
    gravity: Float[Array, " 3"] = float_field(unit="m/s^2", default=(0.0, 0.0, -9.81))
    independent: tuple[str, ...] = names_field(default=())
    constants: Constants | None = None

    def __check_init__(self):
        require_shape("gravity", self.gravity, (3,))
        tree = self.tree  # raises if the bodies do not form a tree
        tree.speeds(self.independent, "independent")
        for loop in self.loops:
            for name in loop.bodies:
                tree.body(name, "loop: body")
            tree.scalars(loop.joints, "loop: joints")
        for element in self.elements:
            element.check(tree)
        for guides, windings, radius in wound_cables(self.loops, self.elements):
            drums.check(self.bodies, tree, guides, windings, radius)
        self._check_names()

    def _check_names(self) -> None:
        """Raise if two quantities of a trajectory would have the same name."""
        outputs = [name for element in self.elements for name in element.output_names]
        if any(isinstance(part, (RigidCable, CableSet, WoundCables)) for part in self._parts):
            outputs += ["tension", "wrap"]
        kinds = {
            "coordinate": self.coordinate_names,
            "velocity": tuple(f"d_{name}" for name in self.velocity_names),
            "input": self.input_names,
            "output": ("body_position", *outputs),
        }
        owner: dict[str, str] = {}
        for kind, names in kinds.items():
            for name in names:
                given = f"{kind} {name!r} beside the {owner.get(name)} of the same name"
                require(name not in owner, "names", given, "different names of bodies and elements")
                owner[name] = kind

    @property
    def _parts(self) -> tuple[Loop | Element, ...]:
        return (*self.loops, *self.elements)

    # --- names
    @property
    def tree(self) -> Tree:
        """Topology of the bodies."""
        return tree_of(self.bodies)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the first-order states of the elements."""
        return tuple(name for element in self.elements for name in element.state_names)

    @property
    def coordinate_names(self):
        integrals = tuple(f"{name}_integral" for name in self.state_names)
        return self.tree.coordinate_names + integrals + self._winding_names

    @property
    def n_windings(self) -> int:
        """Number of arcs that are coordinates (`Pulley.winds`)."""
        return winding.count(self.loops, self.elements)

    @property
    def _winding_names(self) -> tuple[str, ...]:
        return tuple(f"winding_{i + 1}" for i in range(self.n_windings))

    @property
    def velocity_names(self):
        return self.tree.velocity_names + self.state_names

    def presentation(self):
        return Presentation(
            units=dict(self.tree.units) | dict.fromkeys(("wrap", *self._winding_names), "rad"),
            geometry=self.geometry,
            warnings=self._warnings,
            alarms=self._alarms,
            invalid_reason=self._invalid_reason,
        )

    @property
    def input_names(self):
        return tuple(name for element in self.elements for name in element.input_names)

    @property
    def n_constraints(self):
        return sum(len(loop.row_names) for loop in self.loops)

    @property
    def one_sided(self):
        return np.array([loop.one_sided for loop in self.loops for _ in loop.row_names], bool)

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Name of each row of the constraints."""
        return tuple(
            f"{loop.bodies[0]}-{loop.bodies[-1]} {row}"
            for loop in self.loops
            for row in loop.row_names
        )

    @property
    def mass_is_regular(self) -> bool:
        """Whether the mass matrix is known to be regular. This holds only without loops, because
        with loops bodies may be massless."""
        return not self.loops

    def prepare(self):
        return eqx.tree_at(
            lambda m: m.constants, self, self._constants(), is_leaf=lambda x: x is None
        )

    def _constants(self) -> Constants:
        if self.constants is not None:
            return self.constants
        return Constants(
            kinematics.placements(self.bodies, self.tree),
            dynamics.masses(self.bodies),
            loop_terms.stacked(self.loops, self._groups),
        )

    @property
    def _groups(self):
        return loop_terms.grouped(self.loops, self.tree)

    # --- coordinates with quaternions
    def retract(self, q, dq):
        machine, q = self.wound(q)
        return machine._with_arcs(machine._by_joint("retract", q, dq))

    def difference(self, q, other):
        """Tangent vector (n_v,) with which `retract` moves `q` to `other`."""
        machine, q = self.wound(q)
        return machine._by_joint("difference", q, self.wound(other)[1])

    def rate(self, q, v):
        machine, q = self.wound(q)
        rate = v if machine.n_q == self.n_v else machine._by_joint("rate", q, v)
        return jax.jvp(machine._with_arcs, (q,), (rate,))[1] if self.n_windings else rate

    def normalise(self, q):
        machine, q = self.wound(q)
        return machine._with_arcs(
            q if machine.n_q == self.n_v else machine._by_joint("normalise", q)
        )

    def wound(self, q) -> "tuple[Mechanism, Float[Array, ' n']]":
        """Mechanism with its cables wound according to the coordinates `q` (n_q,), and the
        remaining coordinates. Returns the mechanism itself and `q` if no arcs are coordinates."""
        n = self.n_windings
        if n == 0:
            return self, q
        c = self._constants()
        loops, elements = winding.wind(self.loops, self.elements, q[-n:])
        stacked = loop_terms.stacked(loops, loop_terms.grouped(loops, self.tree))
        parts = loops, elements, c._replace(loops=stacked)
        where = lambda m: (m.loops, m.elements, m.constants)
        machine = eqx.tree_at(where, self, parts, is_leaf=lambda x: x is None)
        return machine, q[:-n]

    def _with_arcs(self, q):
        """Append to coordinates `q` without arcs the arcs at these poses."""
        if not winding.has_arcs(self.loops, self.elements):
            return q
        poses = kinematics.poses(self.tree, self._constants().placements, q[: self.tree.n_q])
        arcs = winding.arcs(self.tree, self.loops, self.elements, poses)
        return jnp.concatenate([q, arcs])

    def _by_joint(self, method: str, q, *others):
        """Apply a method of all joints. Coordinates without quaternions are processed together."""
        tree, n_q = self.tree, self.n_q
        if n_q == self.n_v:
            return getattr(_PLAIN, method)(q, *others)
        parts = []
        for first, last, joint in self._runs():
            rows_q = slice(tree.q_start[first], tree.q_start[last])
            rows_v = slice(tree.v_start[first], tree.v_start[last])
            pick = lambda x, a=rows_q, b=rows_v: x[a] if x.shape[0] == n_q else x[b]
            parts.append(getattr(joint, method)(pick(q), *(pick(x) for x in others)))
        if self.state_names:
            pick = lambda x: x[tree.n_q :] if x.shape[0] == n_q else x[tree.n_v :]
            parts.append(getattr(_PLAIN, method)(pick(q), *(pick(x) for x in others)))
        return jnp.concatenate(parts)

    def _runs(self):
        """Yield runs of consecutive bodies without quaternions, and each body with one, as first
        index, last index (exclusive) and joint."""
        start = 0
        for i, body in enumerate(self.bodies):
            if len(body.joint.coordinates) != len(body.joint.velocities):
                if i > start:
                    yield start, i, _PLAIN
                yield i, i + 1, body.joint
                start = i + 1
        if start < len(self.bodies):
            yield start, len(self.bodies), _PLAIN

    # --- equations
    @follows_winding
    def motions(self, q, v) -> kinematics.Motions:
        """Poses, velocities and velocity-product accelerations of all bodies."""
        q, v, _ = self._cut(q, v)
        return once(kinematics.motions, self.tree, self._constants().placements, q, v)

    def _cut(self, q, v):
        """Split into coordinates and velocities of the joints, and states of the elements."""
        if not self.state_names:
            return q, v, None
        return once(_cut, self.tree, q, v)

    @follows_winding
    def mass_matrix(self, q):
        at = self.instant(jnp.zeros((), q.dtype), q, jnp.zeros(self.n_v, q.dtype))
        return self._with_states(self._joint_masses(at))

    def _joint_masses(self, at: Instant):
        """Mass matrix of the joints, including the inertia of the elements."""
        poses = at.motions.poses
        inertia = once(dynamics.world_inertia, poses, self._constants().masses)
        M = once(dynamics.mass_matrix, self.tree, poses, inertia)
        added = [e.inertia(at) for e in self.elements]
        return sum((x for x in added if x is not None), M)

    def _with_states(self, M):
        """Mass matrix extended by the unit masses of the states."""
        k, n = len(self.state_names), M.shape[0]
        if k == 0:
            return M
        below = jnp.concatenate([jnp.zeros((k, n), M.dtype), jnp.eye(k, dtype=M.dtype)], axis=1)
        return jnp.concatenate([jnp.pad(M, ((0, 0), (0, k))), below])

    @follows_winding
    def force(self, t, q, v, u):
        at = self.motions(q, v)
        inertia = dynamics.world_inertia(at.poses, self._constants().masses)
        return self._force(self._instant(t, q, v, at), u, inertia)

    def _force(self, at: Instant, u, inertia):
        joint, wrenches, rates = self._efforts(at, u)
        f = joint - dynamics.bias(self.tree, at.motions, inertia, self.gravity, wrenches)
        return jnp.concatenate([f, *rates]) if rates else f

    def _efforts(self, at: Instant, u, driven: bool = False):
        """Joint forces (n,), wrenches (N, 6) or None, and rates of the states, of all elements or
        only of driven ones."""
        joint, wrenches, rates = jnp.zeros(self.tree.n_v, at.q.dtype), None, []
        for element, here, inputs in self._each(at, u):
            if driven and not element.input_names:
                continue
            effort = element.effort(here, inputs)
            if effort.joint is not None:
                joint = joint + effort.joint
            if effort.wrenches is not None:
                wrenches = effort.wrenches if wrenches is None else wrenches + effort.wrenches
            if effort.state_rates is not None:
                rates.append(effort.state_rates)
        return joint, wrenches, rates

    def _each(self, at: Instant, u):
        """Yield each element with its inputs and states."""
        first_input, first_state = 0, 0
        for element in self.elements:
            n_inputs, n_states = len(element.input_names), len(element.state_names)
            inputs = u[first_input : first_input + n_inputs]
            if n_states:
                assert at.states is not None
                states = at.states[first_state : first_state + n_states]
                yield element, at._replace(states=states), inputs
            else:
                yield element, at, inputs
            first_input, first_state = first_input + n_inputs, first_state + n_states

    @follows_winding
    def bias(self, q, v) -> Float[Array, " n_v"]:
        """Coriolis, gyroscopic and gravity terms: `M a + bias = joint forces`."""
        at = self.motions(q, v)
        inertia = dynamics.world_inertia(at.poses, self._constants().masses)
        return dynamics.bias(self.tree, at, inertia, self.gravity)

    def body_point(self, t, q, body: str, point) -> Float[Array, " 3"]:
        """World position (3,) [m] of a point (3,) [m] of a body, given in body axes."""
        return self.position(q, body, point)

    @follows_winding
    def constraint(self, t, q):
        c, q = self._constants(), q[: self.tree.n_q]
        poses = kinematics.poses(self.tree, c.placements, q)
        return loop_terms.residuals(self._groups, c.loops, t, q, poses.R, poses.p)

    def _loop_terms(self, t, q, v) -> ConstraintTerms:
        motions = self.motions(q, v)
        q, v, states = self._cut(q, v)
        given = self.tree, self._groups, self._constants().loops, t, q, v, motions
        terms = once(loop_terms.terms, *given)
        if states is None:
            return terms
        wider = jnp.pad(terms.jacobian, ((0, 0), (0, len(self.state_names))))
        return terms._replace(jacobian=wider)

    def structure(self) -> MechanismStructure:
        return MechanismStructure(self)

    # --- contact
    def _touching(self) -> list[Contact | JointLimits]:
        """Elements that a velocity-level solver treats as contacts."""
        stops = [e for e in self.elements if isinstance(e, JointLimits)]
        return [*self._pairs(), *stops]

    def _pairs(self) -> list[Contact]:
        return [e for e in self.elements if isinstance(e, Contact) and e.pairs]

    def contacts(self, t, q):
        if not (touching := self._touching()):
            return None
        at = self.instant(t, q, jnp.zeros(self.n_v, q.dtype))
        return joined([element.contacts(at) for element in touching], len(self.state_names))

    def without_contacts(self):
        touching = self._touching()
        others = tuple(e for e in self.elements if not any(e is x for x in touching))
        return eqx.tree_at(lambda m: m.elements, self, others) if touching else self

    def without_forces(self):
        inert = tuple(Inert(e) for e in self.elements if e.has_inertia or e.state_names)
        bare = lambda m: (m.elements, m.gravity)
        return eqx.tree_at(bare, self, (inert, jnp.zeros_like(self.gravity)))

    @follows_winding
    def active_force(self, t, q, v, u):
        at = self.instant(t, q, v)
        masses, (joint, wrenches, rates) = self._constants().masses, self._efforts(at, u)
        weight = dynamics.weights(at.motions.poses, masses, self.gravity)
        wrenches = weight if wrenches is None else wrenches + weight
        f = joint + dynamics.joint_forces(self.tree, at.motions.poses, wrenches)
        return jnp.concatenate([f, *rates]) if rates else f

    # --- quantities for controllers
    @follows_winding
    def input_matrix(self, t, q, v) -> Float[Array, "n_v n_u"]:
        """Joint forces per unit of each input."""
        at = self.instant(t, q, v)

        def pushed(u):
            joint, wrenches, rates = self._efforts(at, u, driven=True)
            if wrenches is not None:
                joint = joint + dynamics.joint_forces(self.tree, at.motions.poses, wrenches)
            return jnp.concatenate([joint, *rates]) if rates else joint

        return jax.jacfwd(pushed)(jnp.zeros(self.n_u, q.dtype))

    @follows_winding
    def point_terms(self, q, v, body: str, point):
        """Jacobian (3, n_v) of a point (3,) of a body, and its acceleration (3,) at zero joint
        accelerations [m/s^2]."""
        at, i = self.motions(q, v), self.tree.body(body)
        return kinematics.point_terms(self.tree, at, i, jnp.asarray(point, q.dtype))

    def strain_names(self) -> tuple[str, ...]:
        """Names of the independent coordinates of wound cables; empty if strains are not
        coordinates."""
        kinds = self.tree.kinds
        return tuple(
            f"{name}_{getattr(kinds[self.tree.body(name)], 'independent', '')}"
            for law in self._laws(WoundCables)
            for name in law.cables
        )

    @follows_winding
    def cable_terms(self, t, q, v) -> CableTerms:
        """Strain, stiffness and force columns of elastic cables that are wound on involute joints
        or run over guides."""
        wound, sets = self._laws(WoundCables), self._laws(CableSet)
        one = (len(wound), bool(sets)) in ((1, False), (0, True))
        given = f"{len(wound)} WoundCables and {len(sets)} CableSets"
        require(one, "elements", given, "one WoundCables, or CableSets")
        if wound:
            return wound[0].terms(self.instant(t, q, v))
        return strain_terms(self.instant, sets, t, q, v, self.rate(q, v))

    def _laws(self, kind: type[_Law]) -> list[_Law]:
        return [e for e in self.elements if isinstance(e, kind)]

    # --- paths of cables
    @kept_filter_jit
    def cable_lengths(self, q=None) -> dict[str, Float[Array, " n"]]:
        """Path lengths [m] of elastic and tension-driven cables, by the name of their set, at
        coordinates `q` (n_q,), by default those of the default state. The stretch of an elastic
        cable is this length minus its unstretched length (see `rest`)."""
        self, q = self.wound(self.default_state().q if q is None else q)
        at = self.instant(jnp.zeros(()), q, jnp.zeros(self.n_v, q.dtype))
        return {e.name: e.lengths(at) for e in self.elements if isinstance(e, _ROUTED)}

    def _validity(self, q):
        c, q = self._constants(), q[: self.tree.n_q]
        poses = kinematics.poses(self.tree, c.placements, q)
        found = validity.cable_reaches(
            self.tree, self.loops, self._groups, c.loops, self.elements, poses
        )
        held = bool(self.loops) or any(e.has_inertia for e in self.elements)
        return self.tree, c.masses, held, found

    @follows_winding
    def valid(self, t, q, v):
        return validity.valid(*self._validity(q))

    @follows_winding
    def _invalid_reason(self, t, q, v):
        return validity.invalid_reason(*self._validity(q))

    # --- states
    def default_state(self):
        q = [np.asarray(b.joint.zero()) if b.start is None else b.start for b in self.bodies]
        v = [
            np.zeros(len(b.joint.velocities)) if b.start_rate is None else b.start_rate
            for b in self.bodies
        ]
        states = [jnp.zeros(len(self.state_names))] if self.state_names else []
        q = self._with_arcs(jnp.concatenate([*q, *states]))
        return State(q, jnp.concatenate([*v, *states]))

    def assembled(self, q=None, kept=()) -> State:
        """State at rest with closed loops near coordinates `q` (n_q,), by default those of the
        default state. `kept` names coordinates that stay fixed. Raises if the loops cannot
        close."""
        q = self.default_state().q if q is None else q
        return State(assemble(self, q, kept), jnp.zeros(self.n_v))

    def mobility(self, q=None) -> Mobility:
        """Degrees of freedom and redundant constraints at coordinates `q` (n_q,)."""
        return mobility(self, self.default_state().q if q is None else q)

    # --- outputs and drawing
    def _instant(self, t, q, v, at) -> Instant:
        joints = self._constants().placements.joints
        q, v, states = self._cut(q, v)
        return Instant(self.tree, t, q, v, states, at, joints, self.gravity)

    @follows_winding
    def instant(self, t, q, v) -> Instant:
        """Instant at which elements are evaluated."""
        return self._instant(t, q, v, self.motions(q, v))

    @follows_winding
    def position(self, q, body: str, point=(0.0, 0.0, 0.0)) -> Float[Array, " 3"]:
        """World position [m] of a point (3,) of a body."""
        poses = self.motions(q, jnp.zeros(self.n_v, q.dtype)).poses
        i = self.tree.body(body)
        if i == self.tree.n_bodies:
            return jnp.asarray(point, q.dtype)
        return poses.p[i] + jnp.sum(poses.R[i] * jnp.asarray(point, q.dtype), axis=1)

    @follows_winding
    def potential_energy(self, t, q):
        c = self._constants()
        at = self.instant(t, q, jnp.zeros(self.n_v, q.dtype))
        centres = dynamics.centres(at.motions.poses, c.masses)
        energy = -jnp.sum(c.masses.mass[:, None] * centres * self.gravity)
        return energy + sum((e.energy(at) for e in self.elements), jnp.zeros((), q.dtype))

    @follows_winding
    def outputs(self, t, q, v, u, multipliers):
        at, out = self.instant(t, q, v), {}
        for element, here, inputs in self._each(at, u):
            out |= element.outputs(here, inputs)
        out["body_position"] = at.motions.poses.p
        more = {
            "tension": drawing.tensions(at, self.loops, self.elements, multipliers),
            "wrap": self._wrap(q),
        }
        return out | {name: x for name, x in more.items() if x is not None}

    def _wrap(self, q) -> Float[Array, " w"] | None:
        return validity.wrap(self._validity(q)[-1])

    def _warnings(self, outputs):
        n = int(self.one_sided.sum())
        pulled = outputs["tension"][..., -n:] if n else None
        found = validity.warnings(outputs.get("wrap"), pulled)
        for element in self.elements:
            found |= element.warnings(outputs)
        return found

    @follows_winding
    def _alarms(self, t, q, v, u, multipliers):
        """Warnings at one instant, computed without the other outputs."""
        pulled = multipliers[self.one_sided] if self.one_sided.any() else None
        found = validity.warnings(self._wrap(q), pulled)
        for element in self._pairs():
            found |= element.alarms(self.instant(t, q, v))
        return found

    @follows_winding
    def geometry(self, t, q):
        """Scene to draw: bars from body to body and to the points of loops and cables; cables from
        the points where they leave; pulleys and drums."""
        at = self.instant(t, q, jnp.zeros(self.n_v, q.dtype))
        return drawing.scene(at, self.bodies, self.loops, self.elements)
