"""Ropes of rigid finite elements that stretch, bend, sag and buckle: alone, with a moved end, or
carrying a platform.

After Tempel, Schmidt, Haasdonk and Pott, "Application of the rigid finite element method to the
simulation of cable-driven parallel robots" (2017), with its misprints corrected."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    known_values,
    require,
    require_finite,
    require_positive,
    require_shape,
    require_values,
)
from ..._base.fields import count_field, part_field
from ..._base.precision import as_float_array, finite_array, float_field
from ..._jax.program_cache import kept_filter_jit
from ...mechanics import Presentation, State
from ...mechanics.parts.line_contact import Line, LineContact, LineContacts, line
from ...mechanics.presentation import tension_range
from ...mechanics.reference_motion import Reference, reference_field
from ...mechanics.residual_linearisation import ResidualSystem
from . import block_elimination, drawing, ends, inverse
from .equilibrium import settled
from .initial_arcs import arcs, below
from .laws import LinearRope, RopeLaw
from .platform import Platform
from .segments import Layout, Motion, Segments, is_reached, motion, segments
from .structure import RopeStructure
from .summary import summary


class RopeRobot(ResidualSystem):
    """m ropes of `count` segments each in the plane (x, z), z up.

    - `roots` (m, 2) [m]: points from which the ropes hang;
    - `length` [m], `line_density` [kg/m], `EA` [N], `EI` [N m^2]: one value for all or one per
      rope;
    - `axial_time`, `bending_time` [s]: damping times; tension and moments resist strain rates with
      these times their stiffness;
    - `root_stiffness` [-]: relative stiffness of the joint at the root, 0 a hinge, 1 like any other
      joint, 2 a clamp (which converges to a clamped beam with order 2), towards `root_angle` [rad];
    - `platform`: body that all ropes carry, or `end_point`: positions of their ends, (m, 2) [m] or
      a `Reference` of them; neither: free ends;
    - `law`: resistance to stretch and bending (`LinearRope`, `ProgressiveRope`);
    - `contact`: one or several `LineContact`s with obstacles, in the plane y = 0, and of ropes with
      each other;
    - `gravity` [m/s^2] along -z.

    Coordinates: rope after rope, from root to end, the elongation D [m] of each segment and its
    absolute angle phi [rad], zero straight down, counter-clockwise; then x, z [m] and angle [rad]
    of the platform. Inputs: force x, z [N] and moment [N m] on the platform, or force x, z on each
    free end. Multipliers: the force x, z [N] of each rope on the support of its end.

    Ropes can also push: a slack rope is one that has buckled."""

    roots: Float[Array, "m 2"] = float_field(unit="m")
    length: Float[Array, "..."] = float_field(unit="m")
    line_density: Float[Array, "..."] = float_field(unit="kg/m", default=0.029)
    EA: Float[Array, "..."] = float_field(unit="N", default=4.0e4)
    EI: Float[Array, "..."] = float_field(unit="N m^2", default=0.01)
    axial_time: Float[Array, "..."] = float_field(unit="s", default=2e-3)
    bending_time: Float[Array, "..."] = float_field(unit="s", default=0.05)
    root_stiffness: Float[Array, "..."] = float_field(unit="-", default=1.0)
    root_angle: Float[Array, "..."] = float_field(unit="rad", default=0.0)
    platform: Platform | None = part_field(default=None)
    end_point: Reference | None = reference_field(unit="m", default=None)
    law: RopeLaw = part_field(default_factory=LinearRope)
    count: int = count_field(default=20)
    contact: tuple[LineContact, ...] = part_field(default=())
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)

    default_integrator = "generalised_alpha"
    default_dt = 1e-3

    def __check_init__(self):
        ok = len(getattr(self.roots, "shape", (1, 2))) == 2
        require(ok, "roots", f"shape {getattr(self.roots, 'shape', None)}", "shape (m, 2)")
        m = self.n_ropes
        require_shape("roots", self.roots, (m, 2))
        require_finite("roots", self.roots)
        for name in ("length", "line_density", "EA"):
            require_shape(name, getattr(self, name), (), (m,))
            require_positive(name, getattr(self, name))
        for name in ("EI", "axial_time", "bending_time", "root_stiffness"):
            require_shape(name, getattr(self, name), (), (m,))
            require_positive(name, getattr(self, name), zero_allowed=True)
        require_shape("root_angle", self.root_angle, (), (m,))
        require_finite("root_angle", self.root_angle)
        LineContacts(self.contact)
        both = self.platform is not None and self.end_point is not None
        require(not both, "end_point", "a motion and a platform", "one of them")
        if self.platform is not None:
            require_shape("platform.attachments", self.platform.attachments, (m, 2))
        if self.end_point is not None:
            place = jax.eval_shape(self.end_point.position, jnp.zeros(()))
            require_shape("end_point", place, (m, 2))
            self._check_reach("end_point", self.end_point.position(jnp.zeros(())))

    def _check_reach(self, field: str, place):
        """Raise if a rope would have to be stretched by more than half of its length to end at
        `place` (m, 2) [m]."""
        numbers, expected = (place, self.roots, self.free_length), "ends that ropes reach"
        place, roots, length = (known_values(x) for x in numbers)
        if place is None or roots is None or length is None:
            require_values(field, is_reached, *numbers, expected=expected)
            return
        gap = np.linalg.norm(place - roots, axis=1) / length - 1.0
        j = int(np.argmax(gap))
        far = f"end of rope {j + 1} is {100 * gap[j]:.3g} % of its length too far from the root"
        require(gap[j] <= 0.5, field, far, f"{expected}, stretched by half or less")

    # --- names
    @property
    def n_ropes(self) -> int:
        return self.roots.shape[0]

    @property
    def coordinate_names(self):
        ropes = tuple(
            f"{kind}_{j + 1}_{i + 1}"
            for j in range(self.n_ropes)
            for i in range(self.count)
            for kind in ("stretch", "angle")
        )
        return ropes if self.platform is None else (*ropes, "x", "z", "angle")

    @property
    def input_names(self):
        if self.platform is not None:
            return ("force_x", "force_z", "moment")
        if self.end_point is not None:
            return ()
        return tuple(f"force_{c}_{j + 1}" for j in range(self.n_ropes) for c in "xz")

    def presentation(self):
        forces = dict.fromkeys(("root_tension", "end_force", "force_x", "force_z"), "N")
        plots = ("node", "tension" if self.n_constraints else "root_tension")
        carried = self.platform is not None
        return Presentation(
            units=forces
            | {"moment": "N m", "node": "m", "stretch": "m"}
            | LineContacts(self.contact).units(),
            warnings=LineContacts(self.contact).warnings,
            plots=("x", "z", "angle", "tension") if carried else plots,
            summary=summary if carried else tension_range,
            geometry=self.geometry,
        )

    @property
    def n_q(self):
        return 2 * self.count * self.n_ropes + (0 if self.platform is None else 3)

    @property
    def n_v(self):
        return self.n_q

    @property
    def n_constraints(self):
        return 0 if self.platform is None and self.end_point is None else 2 * self.n_ropes

    # --- parts
    @property
    def layout(self) -> Layout:
        return Layout(self.count, self.n_ropes)

    def split(self, x) -> tuple[Float[Array, "2 s m"], Float[Array, " p"]]:
        """Split coordinates, velocities or forces into those of stretches and angles, and those of
        the platform, shape (3,) or (0,)."""
        return self.layout.split(x)

    def join(self, ropes, platform=None) -> Float[Array, " n"]:
        """Inverse of `split`."""
        return self.layout.join(ropes, platform)

    def segments(self) -> Segments:
        """Masses [kg], lengths [m] and springs of the segments of all ropes."""
        each = lambda x: jnp.broadcast_to(x, (self.n_ropes,))
        return segments(
            each(self.length), each(self.line_density), each(self.root_stiffness), self.count
        )

    @property
    def rope(self) -> inverse.Rope:
        return inverse.Rope(
            self.EA, self.EI, self.axial_time, self.bending_time, self.root_angle, self.law
        )

    def motion(self, q, v) -> tuple[Segments, Motion]:
        """Segments, and their positions and velocities for coordinates and velocities (n_q,)."""
        seg = self.segments()
        return seg, motion(seg.rest, self.split(q)[0], self.split(v)[0])

    def elastic_rows(self, seg: Segments, x: Motion) -> Float[Array, "2 s m"]:
        """Generalised forces on stretches [N] and angles [N m] that balance deformation and its
        rate."""
        return inverse.elastic_rows(seg, self.rope, x)

    def sweep_rows(self, seg: Segments, x: Motion, a, loads, h, h2) -> block_elimination.Rows:
        """Contributions of the segments to the matrix of implicit steps."""
        return block_elimination.rows(seg, self.rope, x, a, loads, h, h2)

    @property
    def free_length(self) -> Float[Array, " m"]:
        """Unstretched lengths of the ropes from root to end [m]."""
        return jnp.broadcast_to(self.length, (self.n_ropes,))

    def tip(self, u):
        """Forces on free ends, expressed as pulls of the ropes, (2, m)."""
        if self.n_constraints:
            return jnp.zeros((2, self.n_ropes), self.roots.dtype)
        return -u.reshape(self.n_ropes, 2).T

    def platform_push(self, u):
        """Inertias of the platform and the force on it, including its weight, (3,) each, or
        None."""
        if self.platform is None:
            return None
        zero = 0.0 * self.gravity
        weight = jnp.stack([zero, self.platform.mass * self.gravity, zero])
        return self.platform.inertias, u[:3] - weight

    def holding(self, t, q, v) -> ends.Held:
        """Positions at which the ends of the ropes are held [m], and the motion of their
        support."""
        if self.platform is not None:
            return ends.held_by_platform(self.platform, self.split(q)[1], self.split(v)[1])
        return ends.held_by_motion(self.end_point, t)

    # --- equations
    def structure(self) -> RopeStructure:
        return RopeStructure(self)

    def residual(self, t, q, v, u, a, multipliers) -> Float[Array, " n"]:
        """Compute `M a + Phi_q^T lambda - f`, shape (n_v,), in O(s)."""
        seg, x = self.motion(q, v)
        b, w = self.split(a)
        at = inverse.accelerations(seg, x, b)
        tip = multipliers.reshape(-1, 2).T if self.n_constraints else self.tip(u)
        rows, _ = inverse.inertia_rows(seg, x, b, at, self.gravity, tip)
        rows = rows + self.elastic_rows(seg, x) - self._touched(q, v)
        pushed = self.platform_push(u)
        if self.platform is None or pushed is None:
            return self.join(rows)
        _, turned = self.platform.arms(self.split(q)[1][2])
        pull = jnp.concatenate([jnp.sum(tip, axis=1), jnp.sum(turned * tip)[None]])
        inertias, push = pushed
        return self.join(rows, inertias * w - push - pull)

    def _line(self, q, v) -> Line:
        x, rate = jax.jvp(self._points, (q,), (v,))
        length = self.free_length / self.count
        return line(x.reshape(-1, 3), rate.reshape(-1, 3), length, self.n_ropes)

    def _points(self, q) -> Float[Array, "m k 3"]:
        x, z = jnp.moveaxis(self.nodes(q), 2, 0)
        return jnp.stack([x, jnp.zeros_like(x), z], axis=2)

    def _touched(self, q, v) -> Float[Array, "2 s m"] | float:
        """Forces of contact on stretches and angles."""
        if not self.contact:
            return 0.0
        push = LineContacts(self.contact).forces(self._line(q, v))
        points, back = jax.vjp(self._points, q)
        return self.split(back(push.reshape(points.shape))[0])[0]

    def momentum(self, q, v):
        a, w = self.split(v)
        seg, x = self.motion(q, jnp.zeros_like(v))
        at = inverse.accelerations(seg, x, a)
        weightless = jnp.zeros((), q.dtype)
        none = jnp.zeros((2, self.n_ropes), q.dtype)
        rows, _ = inverse.inertia_rows(seg, x, a, at, weightless, none)
        return self.join(rows, None if self.platform is None else self.platform.inertias * w)

    def constraint(self, t, q):
        if not self.n_constraints:
            return jnp.zeros(0, q.dtype)
        _, x = self.motion(q, jnp.zeros_like(q))
        place = ends.place_of_ends(self.roots, x)[0]
        if self.platform is not None:
            pose = self.split(q)[1]
            there = pose[:2, None] + self.platform.arms(pose[2])[0]
        else:
            assert self.end_point is not None
            there = self.end_point.position(t).T
        return (place - there).T.reshape(-1)

    # --- energies
    def potential_energy(self, t, q):
        seg, x = self.motion(q, jnp.zeros_like(q))
        step = x.length * x.along[1]
        node = self.roots[:, 1] + jnp.cumsum(step, axis=0)
        upper = node - step + seg.upper_arm * x.along[1]
        lower = node - seg.lower_arm * x.along[1]
        heights = jnp.sum(seg.upper_mass * upper + seg.lower_mass * lower)
        axial = seg.rest * self.law.axial_energy(self.EA, x.stretch / seg.rest)
        bend = (x.angle - inverse.before(x.angle, self.root_angle)) * seg.joint
        per_joint = 1.0 / jnp.where(seg.joint > 0, seg.joint, 1.0)
        bending = per_joint * self.law.bending_energy(self.EI, bend)
        energy = self.gravity * heights + jnp.sum(axial) + jnp.sum(bending)
        if self.platform is not None:
            energy = energy + self.platform.mass * self.gravity * self.split(q)[1][1]
        if self.contact:
            energy = energy + LineContacts(self.contact).energy(self._line(q, jnp.zeros_like(q)))
        return energy

    def dissipation(self, q, v):
        """Power [W] dissipated by damping."""
        seg, x = self.motion(q, v)
        bend = (x.angle_rate - inverse.before(x.angle_rate, 0.0)) ** 2 * seg.joint
        axial = self.axial_time * self.EA * x.stretch_rate**2 / seg.rest
        return jnp.sum(axial) + jnp.sum(self.bending_time * self.EI * bend)

    # --- states
    def hanging(self, pose=None, t=0.0) -> State:
        """State at rest, not in equilibrium, with ropes as circular arcs that satisfy the
        constraints. They reach from their roots to the platform in a pose (3,), x, z [m] and angle
        [rad], or to the prescribed ends; free ropes are straight."""
        t = finite_array("t", t, ())
        if self.platform is None and self.end_point is None:
            angle = jnp.where(self.root_stiffness > 0, self.root_angle, 0.0)
            angle = jnp.broadcast_to(angle, (self.count, self.n_ropes))
            q = self.join(jnp.stack([jnp.zeros_like(angle), angle]))
            return State(q, jnp.zeros_like(q))
        if self.platform is not None:
            given = pose is not None
            if pose is None:
                pose = below(self.platform, self.roots, self.free_length)
            pose = finite_array("pose", pose, (3,)).astype(self.roots.dtype)
            there = pose[:2, None] + self.platform.arms(pose[2])[0]
            if given:
                self._check_reach("pose", there.T)
        else:
            assert self.end_point is not None
            pose, there = None, self.end_point.position(t).T
        q = self.join(arcs(there - self.roots.T, self.free_length, self.count), pose)
        return State(q, jnp.zeros_like(q))

    def rest(self, u=None, guess: State | None = None, t=0.0, max_steps: int = 300) -> State:
        """Equilibrium under constant inputs `u` (n_u,) at time `t` [s]. It is computed from a
        `guess`, by default `hanging()`, with limited steps, and is differentiable. Raises if the
        remaining force exceeds 1e-9 of weight and inputs, or a remaining gap 1e-9 m."""
        start = _hanging(self, as_float_array(t)) if guess is None else guess
        u = jnp.zeros(self.n_u, start.q.dtype) if u is None else as_float_array(u)
        require_shape("u", u, (self.n_u,))
        require_shape("guess.q", start.q, (self.n_q,))
        q = settled(self, as_float_array(t), start.q, u, max_steps)
        strain = known_values(_largest_strain(self, q))
        if strain is not None:
            far = f"ropes stretched by {100 * float(strain):.3g} % at rest"
            require(strain <= 0.5, "length", far, "ropes that reach their ends")
        return State(q, jnp.zeros_like(q))

    def default_state(self):
        """The equilibrium without inputs."""
        return self.rest()

    # --- outputs and drawing
    def nodes(self, q) -> Float[Array, "m k 2"]:
        """Positions [m] of the k = count + 1 nodes of each rope, roots first."""
        return drawing.nodes(self.roots, self.motion(q, jnp.zeros_like(q))[1])

    def outputs(self, t, q, v, u, multipliers):
        seg, x = self.motion(q, v)
        pull = multipliers.reshape(-1, 2) if self.n_constraints else None
        out = drawing.outputs(self.roots, x, self.elastic_rows(seg, x)[0], pull)
        if self.contact:
            out |= LineContacts(self.contact).outputs(self._line(q, v))
        return out if self.platform is None else out | {"pose": self.split(q)[1]}

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        return drawing.scene(self.nodes(q), self.platform, self.split(q)[1])


# compiled as a whole: otherwise each operation would be compiled separately
@kept_filter_jit
def _hanging(robot: RopeRobot, t) -> State:
    return robot.hanging(t=t)


@kept_filter_jit
def _largest_strain(robot: RopeRobot, q):
    seg, x = robot.motion(q, jnp.zeros_like(q))
    return jnp.max(x.stretch / seg.rest)
