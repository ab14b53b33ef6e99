"""Cable-driven parallel robots: a platform on any number of cables, in natural coordinates.

Model and notation of Piva, Richiedei and Trevisani, "Using differential-algebraic equations and
natural coordinates for modelling and simulating cable-driven parallel robots" (2024), with its
errors corrected (docs/cable-robot.md). Coordinates `q = [platform 12, payload 12 if any, exits,
drives]`, constraints `Phi = [cables, platform 6, payload 6, joint 6]`."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    require,
    require_finite,
    require_instance,
    require_known,
    require_positive,
    require_rotation,
    require_shape,
)
from ..._base.fields import part_field
from ..._base.precision import as_float_array, finite_array, float_field
from ..._jax.program_cache import kept_filter_jit
from ...mechanics import Presentation, State, System
from ...mechanics.parts.cables import Cables, ElasticCables, RigidCables
from ...mechanics.parts.drives import Drive
from ...mechanics.parts.exits import Exit
from ...mechanics.reference_motion import Reference, as_reference
from . import block_solve as structured
from . import drawing, kinematics
from .natural import NaturalBody, place, point_force, torque_force
from .outputs import observed
from .payload import Payload
from .summary import summary
from .unit_warnings import check_slack, warn_if_unlikely


class CableRobot(System):
    """Cable-driven parallel robot: a platform suspended or held by n cables.

    - `platform`: body with mass, inertia and natural basis;
    - `attachments`: attachment points of the cables, in platform axes, shape (n, 3) [m];
    - `exits`: exit points of the cables from the frame (`PointExit`, `PulleyExit`,
      `SwivelPulleyExit`, `CarriageExit`);
    - `drives`: drives that set the cable lengths (`ProgrammedLengths`, `Winches`, `ServoWinches`);
    - `cables`: `RigidCables()` (constraints; tensions are signed) or `ElasticCables(...)`;
    - `position` (3,) [m] of the platform's origin and its axes `rotation` (3, 3), both initially;
    - `linear_damping` [N s/m] at the centre of mass and `angular_damping` [N m s] of the platform;
    - `payload`: optional second body at `payload_position` (3,) [m] with axes
      `payload_rotation` (3, 3).

    Inputs: the inputs of the drives and exits, then a force [N] at the centre of mass of the
    platform and a torque [N m], both in world axes."""

    platform: NaturalBody = part_field()
    attachments: Float[Array, "n 3"] = float_field(unit="m")
    exits: Exit = part_field()
    drives: Drive = part_field()
    cables: Cables = part_field(default_factory=RigidCables)
    position: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    rotation: Float[Array, "3 3"] = float_field(
        default=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    linear_damping: Float[Array, ""] = float_field(unit="N s/m", default=0.0)
    angular_damping: Float[Array, ""] = float_field(unit="N m s", default=0.0)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)
    payload: Payload | None = part_field(default=None)
    payload_position: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    payload_rotation: Float[Array, "3 3"] = float_field(
        default=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    constants: structured.Constants | None = None

    default_integrator: ClassVar[str] = "rk4"
    default_dt: ClassVar[float] = 1e-2

    def __check_init__(self):
        n = self.exits.n_cables
        require_shape("attachments", self.attachments, (n, 3))
        require(
            self.drives.n_cables == n, "drives", f"{self.drives.n_cables} cables", f"{n}, as exits"
        )
        self.cables.check_count(n)
        require_rotation("rotation", self.rotation)
        require_rotation("payload_rotation", self.payload_rotation)
        require_positive("linear_damping", self.linear_damping, zero_allowed=True)
        require_positive("angular_damping", self.angular_damping, zero_allowed=True)
        if isinstance(self.cables, ElasticCables):
            check_slack(self.cables, self.platform.mass * self.gravity)
        stiffness = getattr(self.cables, "stiffness", None)
        warn_if_unlikely(self.position, self.exits.points.position(0.0), stiffness)

    # --- names and layout
    @property
    def n_cables(self) -> int:
        return self.attachments.shape[0]

    @property
    def coordinate_names(self):
        n = self.n_cables
        body = tuple(f"{point}_{c}" for point in ("r_i", "r_j", "v_i", "v_j") for c in "xyz")
        load = tuple(f"payload_{name}" for name in body) if self.payload is not None else ()
        owned = (*self.exits.coordinates, *self.drives.coordinates)
        return (*body, *load, *(f"{name}_{i + 1}" for name in owned for i in range(n)))

    @property
    def input_names(self):
        owned = (*self.drives.inputs, *self.exits.inputs)
        wrench = tuple(f"{kind}_{c}" for kind in ("force", "torque") for c in "xyz")
        return (*(f"{name}_{i + 1}" for name in owned for i in range(self.n_cables)), *wrench)

    def presentation(self):
        axes = ("position", "payload_position", "velocity", "angular_velocity")
        xyz = dict.fromkeys(axes, ("x", "y", "z"))
        return Presentation(
            units={"euler": "rad", "swivel": "rad", "payload_position": "m"},
            components=xyz | {"euler": ("roll", "pitch", "yaw")},
            plots=("position", "euler", "tension"),
            summary=summary,
            geometry=self.geometry,
            warnings=self._warnings,
            invalid_reason=self._invalid_reason,
        )

    @property
    def n_constraints(self):
        cables = self.n_cables if self.cables.rigid else 0
        if self.payload is None:
            return cables + 6
        return cables + (12 if self.payload.held_by == "nothing" else 18)

    def split(self, q) -> structured.Parts:
        """Split coordinates (or velocities) into platform (12,), payload (12,) or None, exits
        (n, e) and drives (n, e)."""
        n, start = self.n_cables, 12 if self.payload is None else 24
        middle = start + n * len(self.exits.coordinates)
        return structured.Parts(
            q[:12],
            None if self.payload is None else q[12:24],
            q[start:middle].reshape(-1, n).T,
            q[middle:].reshape(-1, n).T,
        )

    def inputs(self, u):
        """Split the inputs into those of drives (n, k) and exits (n, k), force (3,) and torque
        (3,)."""
        n = self.n_cables
        middle = n * len(self.drives.inputs)
        end = middle + n * len(self.exits.inputs)
        return u[:middle].reshape(-1, n).T, u[middle:end].reshape(-1, n).T, u[end:-3], u[-3:]

    def prepare(self):
        constants = self._constants()
        return eqx.tree_at(lambda r: r.constants, self, constants, is_leaf=lambda x: x is None)

    def _constants(self) -> structured.Constants:
        return structured.constants(self) if self.constants is None else self.constants

    # --- equations
    def mass_matrix(self, q):
        c = self._constants()
        eye = jnp.eye(3, dtype=q.dtype)
        blocks = [jnp.kron(c.platform.mass_weights, eye)]
        if c.payload is not None:
            blocks.append(jnp.kron(c.payload.mass_weights, eye))
        return jax.scipy.linalg.block_diag(*blocks, jnp.diag(c.own_inertia))

    def force(self, t, q, v, u):
        c = self._constants()
        parts, rates = self.split(q), self.split(v)
        drive_input, exit_input, force, torque = self.inputs(u)
        weights = c.platform.centre
        weight = jnp.stack([0.0 * self.gravity, 0.0 * self.gravity, -self.gravity])
        speed = place(weights, rates.platform)
        spin = self.platform.angular_velocity(parts.platform, rates.platform)
        pull = self.platform.mass * weight + force - self.linear_damping * speed
        f = [
            point_force(weights, pull)
            + torque_force(parts.platform, torque - self.angular_damping * spin)
        ]
        if self.payload is not None:
            f.append(point_force(c.payload.centre, self.payload.body.mass * weight))
        f_exit = self.exits.force(t, parts.exits, rates.exits, exit_input)
        f_drive = self.drives.force(t, parts.drives, rates.drives, drive_input)
        if not self.cables.rigid:
            cable = structured.cable_terms(self, c, t, parts, rates)
            T = self.cables.tension(cable.length - cable.wound, cable.stretch_rate)
            along = T / (2.0 * cable.length)
            f[0] = f[0] - structured.at_points(c.attachments, along[:, None] * cable.gradient)
            f_exit = f_exit - along[:, None] * cable.by_exit
            # the cable acts on the drum through l alone; d(-l^2)/dy = by_drive gives T dl/dy
            f_drive = f_drive - (T / (2.0 * cable.wound))[:, None] * cable.by_drive
        return jnp.concatenate([*f, f_exit.T.reshape(-1), f_drive.T.reshape(-1)])

    def constraint(self, t, q):
        c, parts = self._constants(), self.split(q)
        rows = []
        if self.cables.rigid:
            b = place(c.attachments, parts.platform)
            L = self.exits.length(t, b, parts.exits)
            rows.append(L**2 - self.drives.length(t, parts.drives) ** 2)
        rows.append(structured.rigidity(parts.platform, c.platform.gram))
        if self.payload is not None:
            rows.append(structured.rigidity(parts.payload, c.payload.gram))
            if self.payload.held_by != "nothing":
                rows.append(self.payload.constraint(parts.platform, parts.payload, c.joint))
        return jnp.concatenate(rows)

    @property
    def one_sided(self):
        return np.arange(self.n_constraints) < (self.n_cables if self.cables.rigid else 0)

    def multiplier_forces(self, t, q, multipliers):
        """Multipliers as forces: the rows of rigid cables become tensions `2 L lambda` [N]."""
        if not self.cables.rigid:
            return multipliers
        parts, n = self.split(q), self.n_cables
        L = self.exits.length(t, place(self._constants().attachments, parts.platform), parts.exits)
        return jnp.concatenate([2.0 * L * multipliers[:n], multipliers[n:]])

    def structure(self) -> structured.BlockStructure:
        return structured.BlockStructure(self)

    def potential_energy(self, t, q):
        c, parts = self._constants(), self.split(q)
        height = place(c.platform.centre, parts.platform)[2]
        energy = self.platform.mass * self.gravity * height
        if self.payload is not None:
            height = place(c.payload.centre, parts.payload)[2]
            energy = energy + self.payload.body.mass * self.gravity * height
        if not self.cables.rigid:
            b = place(c.attachments, parts.platform)
            L = self.exits.length(t, b, parts.exits)
            energy = energy + jnp.sum(self.cables.energy(L - self.drives.length(t, parts.drives)))
        return energy + jnp.sum(self.exits.energy(t, parts.exits))

    def valid(self, t, q, v):
        parts = self.split(q)
        b = place(self._constants().attachments, parts.platform)
        return jnp.all(self.exits.reach(t, b, parts.exits) > 0)

    def _invalid_reason(self, t, q, v):
        parts = self.split(q)
        b = place(self._constants().attachments, parts.platform)
        reach = np.asarray(self.exits.reach(t, b, parts.exits))
        cables = ", ".join(str(i + 1) for i in np.flatnonzero(~(reach > 0)))
        return (
            "attachment points that cables reach from their exits: not the exit itself, nor inside "
            f"the rim of its pulley, as for cable {cables} here"
        )

    # --- states
    def state_at(
        self,
        position=None,
        rotation=None,
        velocity=None,
        angular_velocity=None,
        t=0.0,
        tension=None,
    ) -> State:
        """State with the platform's origin at a position (3,) [m], with axes (3, 3), velocity of
        the origin (3,) [m/s] and angular velocity (3,) [rad/s] in world axes. The coordinates of
        exits and drums follow from it; elastic cables on drums are stretched by a `tension` (n,)
        [N]. Defaults: position and rotation of the machine, at rest, with static tensions."""
        if rotation is not None:
            rotation = as_float_array(rotation, "rotation")
            require_rotation("rotation", rotation)
        three, n = (3,), (self.n_cables,)
        some = lambda name, x, shape: None if x is None else finite_array(name, x, shape)
        return self._state_at(
            some("position", position, three),
            rotation,
            some("velocity", velocity, three),
            some("angular_velocity", angular_velocity, three),
            finite_array("t", t, ()),
            some("tension", tension, n),
        )

    @kept_filter_jit
    def _state_at(self, position, rotation, velocity, angular_velocity, t, tension) -> State:
        position = self.position if position is None else position
        rotation = self.rotation if rotation is None else rotation
        q, v = self.platform.coordinates(position, rotation, velocity, angular_velocity)
        weights = self.platform.weights(self.attachments)
        b, b_rate = place(weights, q), place(weights, v)
        t = jnp.asarray(t, q.dtype)
        y, y_rate = self.exits.start(t, b, b_rate)
        length, rate = jax.jvp(self.exits.length, (t, b, y), (jnp.ones_like(t), b_rate, y_rate))
        qs, vs = [q], [v]
        if self.payload is not None:
            load = self.payload.body
            qs.append(load.coordinates(self.payload_position, self.payload_rotation)[0])
            vs.append(jnp.zeros(12, q.dtype))
        qs.append(y.T.reshape(-1))
        vs.append(y_rate.T.reshape(-1))
        if not self.cables.rigid and self.drives.coordinates:
            if tension is None:
                drums = jnp.zeros(self.n_cables * len(self.drives.coordinates), q.dtype)
                tension = kinematics.static_tensions(self, jnp.concatenate([*qs, drums]), t)
            length = length - self.cables.stretch(tension)
        z, z_rate = self.drives.start(t, length, rate)
        return State(
            jnp.concatenate([*qs, z.T.reshape(-1)]), jnp.concatenate([*vs, z_rate.T.reshape(-1)])
        )

    def default_state(self):
        return self.state_at()

    def with_payload(
        self, body: NaturalBody, position, joint=(0.0, 0.0, 0.0), rotation=None
    ) -> "CableRobot":
        """Copy of this robot with a payload that rests on the ground: its origin is at `position`
        (3,) [m] and its axes are `rotation` (3, 3), by default the world axes."""
        place = as_float_array(position, "position")
        identity = jnp.eye(3, dtype=place.dtype)
        axes = identity if rotation is None else as_float_array(rotation, "rotation")
        require_instance("body", body, NaturalBody)
        require_shape("position", place, (3,))
        require_finite("position", place)
        require_rotation("rotation", axes)
        load = Payload(body, joint).rest(body.coordinates(place, axes)[0])
        robot = eqx.tree_at(lambda r: r.payload, self, load, is_leaf=lambda x: x is None)
        return eqx.tree_at(lambda r: (r.payload_position, r.payload_rotation), robot, (place, axes))

    def pick(self, state: State) -> "CableRobot":
        """Copy of this robot that holds its payload in their present poses: a phase of
        `simulate`."""
        parts = self.split(state.q)
        return self._holding(self._load().join(self.platform, parts.platform, parts.payload))

    def place(self, state: State) -> "CableRobot":
        """Copy of this robot with its payload on the ground in its present pose: a phase of
        `simulate`."""
        return self._holding(self._load().rest(self.split(state.q).payload))

    def drop(self, state: State) -> "CableRobot":
        """Copy of this robot with its payload released: a phase of `simulate`."""
        return self._holding(self._load().free())

    def _load(self) -> Payload:
        require(self.payload is not None, "payload", None, "a robot `with_payload`")
        assert self.payload is not None
        return self.payload

    def _holding(self, payload: Payload) -> "CableRobot":
        return eqx.tree_at(lambda r: r.payload, self, payload)

    # --- kinematics and statics
    def lengths(self, position=None, rotation=None, t=0.0) -> Float[Array, " n"]:
        """Inverse kinematics: cable lengths (n,) [m] with the platform's origin at a position (3,)
        [m] and axes (3, 3). Defaults: position and rotation of the machine."""
        position = self.position if position is None else as_float_array(position, "position")
        rotation = self.rotation if rotation is None else as_float_array(rotation, "rotation")
        t = as_float_array(t, "t")
        require_shape("position", position, (3,))
        require_finite("position", position)
        require_rotation("rotation", rotation)
        require_shape("t", t, ())
        require_finite("t", t)
        return kinematics.lengths(self, position, rotation, t)

    def pose(self, lengths, guess: State | None = None, t=0.0):
        """Forward kinematics by least squares: position (3,) [m] and axes (3, 3) of the platform
        for cable lengths (n,) [m], n >= 6. `guess` is a nearby state, by default the default
        state."""
        return kinematics.pose(self, lengths, guess, as_float_array(t))

    def structure_matrix(self, q=None, t=0.0) -> Float[Array, "6 n"]:
        """Structure matrix W (6, n): tensions f (n,) exert the force and the moment (about the
        centre of mass) `W f` on the platform, in world axes."""
        q = self.default_state().q if q is None else q
        return kinematics.structure_matrix(self, q, as_float_array(t))

    def static_wrench(self, q=None) -> Float[Array, " 6"]:
        """Force and moment (about the platform's centre of mass) that the cables must exert to hold
        the platform at rest, including a payload that it holds, at a configuration `q`."""
        up = jnp.array([0.0, 0.0, 1.0], self.gravity.dtype)
        lift = self.platform.mass * self.gravity * up
        if self.payload is None or self.payload.held_by != "platform":
            return jnp.concatenate([lift, 0.0 * up])
        c, parts = self._constants(), self.split(self.default_state().q if q is None else q)
        load = self.payload.body.mass * self.gravity * up
        arm = place(c.payload.centre, parts.payload) - place(c.platform.centre, parts.platform)
        return jnp.concatenate([lift + load, jnp.cross(arm, load)])

    def static_tensions(self, q=None, t=0.0) -> Float[Array, " n"]:
        """Smallest tensions (n,) [N] that hold the platform at rest, or the least-squares solution
        if none do. For redundant robots, `cordax.control` has tension distributions."""
        q = self.default_state().q if q is None else finite_array("q", q, (self.n_q,))
        return kinematics.static_tensions(self, q, finite_array("t", t, ()))

    def platform_motion(self, q, v):
        """Centre of mass (3,) [m], axes (3, 3), velocity (3,) [m/s] and angular velocity (3,)
        [rad/s] of the platform, in world axes."""
        return kinematics.platform_motion(self, q, v)

    def body_point(self, t, q, body: str, point) -> Float[Array, " 3"]:
        """World position (3,) [m] of a point (3,) [m] of the platform, in its axes."""
        require_known("body", body, ("platform",))
        return place(self.platform.weights(point), self.split(q).platform)

    def inverse_dynamics(self, t, q, v, acceleration, angular_acceleration):
        """Inverse dynamics for `cordax.control.TaskSpaceControl`: W (6, n), the wrench (6,) that
        gives the platform these accelerations, and rates and accelerations (n,) of the lengths."""
        return kinematics.inverse_dynamics(self, t, q, v, acceleration, angular_acceleration)

    def winch_reference(self, path, rotation=None, turn=None, tension=None) -> Reference:
        """Drum angles (n,) over time that hold the platform's origin on a path, for
        `ServoWinches` and `cordax.control.PID`. Arguments as in `length_reference`."""
        return kinematics.WinchReference(self, *self._reference(path, rotation, turn, tension))

    def length_reference(self, path, rotation=None, turn=None, tension=None) -> Reference:
        """Cable lengths (n,) [m] over time that hold the platform's origin on a path, for
        `ProgrammedLengths`. The path is a `Reference` of (3,) [m]. The platform has the axes
        `rotation` (3, 3), turned in body axes by an optional rotation vector `turn`, a `Reference`
        of (3,) [rad].

        Elastic cables are stretched by a constant `tension` (n,) [N], by default the static
        tension at the beginning of the path."""
        return kinematics.LengthReference(self, *self._reference(path, rotation, turn, tension))

    def _reference(self, path, rotation, turn, tension):
        rotation = self.rotation if rotation is None else as_float_array(rotation)
        path, turn = as_reference(path), as_reference(jnp.zeros(3) if turn is None else turn)
        if tension is None and not self.cables.rigid:
            q = self.state_at(path.position(0.0), rotation).q
            tension = self.static_tensions(q)
        tension = jnp.zeros(self.n_cables) if tension is None else as_float_array(tension)
        stretch = jnp.broadcast_to(self.cables.stretch(tension), (self.n_cables,))
        return path, rotation, turn, stretch

    # --- outputs and drawing
    def outputs(self, t, q, v, u, multipliers):
        return observed(self, t, q, v, multipliers)

    def _warnings(self, outputs):
        """Warning `cable_pushes`: the tension of a rigid cable is negative, so that later states
        are unphysical."""
        if not isinstance(self.cables, RigidCables):
            return {}
        return {"cable_pushes": outputs["tension"] < -self.cables.push_threshold}

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        return drawing.scene(self, t, q)


__all__ = ["CableRobot"]
