"""Force element for machines with tendons: all forces of joints, tendons and actuators."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.fields import names_field
from ..._base.precision import float_field
from ..._jax.constant_gather import add_at, take
from ...math.linalg import gram
from . import dynamics
from .actuators import Actuators, Moments
from .elements import Effort, Element, Instant, spread
from .joint_laws import JointLaws, drag, polynomial, polynomial_energy
from .points import place, with_ground
from .soft_constraints import SoftConstraints
from .tendon_drawing import tendon_lines
from .tendons import Tendons, TendonState

#: round-off error of lengths [m]
_ROUND_OFF = 1e-13


class TendonLaws(eqx.Module):
    """Forces along n tendons: springs, dampers and friction.

    A spring exerts `-(a x + b x^2 + c x^3)`, where x is the length beyond the range
    `rest` (n, 2) [m] of the unstressed tendon. A damper exerts `-(a v + b v |v| + c v^3)`, friction
    `-friction tanh(v / friction_width)`.

    - `stiffness`, `damping` (n, 3): coefficients a, b, c;
    - `friction` (n,) [N], `friction_width` (n,) [m/s];
    - `armature`, shape (n,) [kg]: mass that moves with the length;
    - `force_range` (n, 2) [N]: range of the total force of all actuators of a tendon, infinite for
      no limit."""

    stiffness: Float[Array, "n 3"] = float_field()
    rest: Float[Array, "n 2"] = float_field(unit="m")
    damping: Float[Array, "n 3"] = float_field()
    friction: Float[Array, " n"] = float_field(unit="N")
    friction_width: Float[Array, " n"] = float_field(unit="m/s")
    armature: Float[Array, " n"] = float_field(unit="kg")
    force_range: Float[Array, "n 2"] = float_field(unit="N", checked=False)
    rubs: bool = eqx.field(static=True, default=False)
    #: tendons with armature
    heavy: tuple[int, ...] = eqx.field(static=True, default=())
    #: whether `force_range` limits any tendon
    clamped: bool = eqx.field(static=True, default=False)

    def force(self, state: TendonState) -> Float[Array, " n"]:
        f = -polynomial(self.stiffness, self._stretch(state.length))
        f = f - drag(self.damping, state.rate)
        if self.rubs:
            f = f - self.friction * jnp.tanh(state.rate / self.friction_width)
        return f

    def _stretch(self, length):
        return _beyond(length - self.rest[:, 1]) - _beyond(self.rest[:, 0] - length)

    def energy(self, length):
        return jnp.sum(polynomial_energy(self.stiffness, self._stretch(length)))


class GravityCompensation(eqx.Module):
    """Upward forces at points of bodies that carry the weight of `mass` (k,) [kg]. The points are
    `centre`, shape (k, 3) [m], in the axes of the `bodies` (k)."""

    bodies: tuple[str, ...] = names_field()
    mass: Float[Array, " k"] = float_field(unit="kg")
    centre: Float[Array, "k 3"] = float_field(unit="m")

    def wrenches(self, at: Instant) -> Float[Array, "N 6"]:
        assert at.gravity is not None
        carriers = np.array([at.tree.body(name) for name in self.bodies])
        x = place(with_ground(at.motions), carriers, self.centre)
        force = -self.mass[:, None] * at.gravity
        each = jnp.concatenate([jnp.cross(x, force), force], axis=1)
        return add_at(each, carriers, at.tree.n_bodies)


class TendonDrive(Element):
    """Forces of joints, tendons and actuators. The inputs are those of the actuators and have their
    names; the states are their activations.

    - `joints`: springs, dampers, friction and armature of the joints;
    - `tendons`, `laws`: paths of the tendons and the forces along them;
    - `actuators`; `joint_force_range` (n_v, 2): range of the total force of all actuators of a
      joint;
    - `compensation` of gravity; it counts as an actuator force where `compensated` (n_v) is true;
    - `constraints`: limits and couplings, as stiff springs."""

    joints: JointLaws
    tendons: Tendons | None = None
    laws: TendonLaws | None = None
    actuators: Actuators | None = None
    compensation: GravityCompensation | None = None
    constraints: SoftConstraints | None = None
    joint_force_range: Float[Array, "n_v 2"] | None = float_field(checked=False, default=None)
    compensated: tuple[bool, ...] = eqx.field(static=True, default=())

    @property
    def input_names(self):
        return () if self.actuators is None else self.actuators.names

    @property
    def state_names(self):
        if self.actuators is None:
            return ()
        return tuple(f"{self.actuators.names[i]}_activation" for i in self.actuators.states)

    @property
    def output_names(self):
        lines = () if self.tendons is None else ("tendon_length", "tendon_force")
        drives = () if self.actuators is None else ("actuator_force",)
        return lines + drives + (("activation",) if self.state_names else ())

    @property
    def has_inertia(self):
        return True

    def check(self, tree):
        for sites in () if self.tendons is None else (self.tendons.sites, self.tendons.surfaces):
            sites.carriers(tree)

    def tendon_state(self, at: Instant) -> TendonState | None:
        """Lengths and rates of the tendons, and the ends of their segments; None without
        tendons."""
        return None if self.tendons is None else self.tendons.at(at)

    def tendon_jacobian(self, at: Instant) -> Float[Array, "n n_v"]:
        """Derivatives of the tendon lengths with respect to the joint coordinates."""
        assert self.tendons is not None
        return self.tendons.jacobian(at, self.tendons.at(at))

    def passive_force(self, at: Instant) -> Float[Array, " n_v"]:
        """Joint forces of springs, dampers, friction and gravity compensation."""
        tendons = self.tendon_state(at)
        return self._onto_joints(at, tendons, self._passive(at, tendons))

    def actuator_force(self, at: Instant, u) -> tuple[Float[Array, " n"], Float[Array, " n_v"]]:
        """Force of each actuator, and the total joint forces of all actuators."""
        tendons = self.tendon_state(at)
        if self.actuators is None:
            return jnp.zeros(0, at.q.dtype), jnp.zeros(at.tree.n_v, at.q.dtype)
        force, moments = self._actuation(at, tendons, u)
        driven = self._driven(at, tendons, force, moments)
        return force, self._onto_joints(at, tendons, driven)

    def armature_bias(self, at: Instant) -> Float[Array, " n_v"]:
        """Joint forces `J^T a dJ/dt v` due to the armature a, the mass that moves with the
        tendons."""
        assert self.laws is not None and self.tendons is not None
        which = np.array(self.laws.heavy)
        J = self.tendons.jacobian(at, self.tendons.at(at), which)
        push = take(self.laws.armature * self.tendons.acceleration(at), which)
        return gram(J, push[:, None])[:, 0]

    def effort(self, at, u):
        tendons = self.tendon_state(at)
        total, rates = self._passive(at, tendons), None
        if self.actuators is not None:
            force, moments = self._actuation(at, tendons, u)
            total = total.plus(self._driven(at, tendons, force, moments))
            if self.actuators.states:
                rates = self.actuators.rates(u, at.states)
        if self.constraints is not None:
            total = total.plus(_Forces(*self.constraints.forces(at, tendons)))
        if self.laws is not None and self.laws.heavy:
            total = total.plus(_Forces(-self.armature_bias(at)))
        joint, wrenches = total.joint, total.wrenches
        if self.tendons is not None and total.along is not None:
            pulled, pull = self.tendons.effort(at, tendons, total.along)
            joint, wrenches = _added(joint, pulled), _added(wrenches, pull)
        return Effort(joint, wrenches, rates)

    def _onto_joints(self, at: Instant, tendons, forces: "_Forces") -> Float[Array, " n_v"]:
        """Sum of joint forces, forces along tendons and wrenches, all converted to joint forces."""
        total = jnp.zeros(at.tree.n_v, at.q.dtype)
        parts, wrenches = [forces.joint], forces.wrenches
        if forces.along is not None and self.tendons is not None:
            pulled, pull = self.tendons.effort(at, tendons, forces.along)
            parts, wrenches = [*parts, pulled], _added(wrenches, pull)
        if wrenches is not None:
            parts.append(dynamics.joint_forces(at.tree, at.motions.poses, wrenches))
        return sum((x for x in parts if x is not None), total)

    def _passive(self, at: Instant, tendons: TendonState | None) -> "_Forces":
        along = None if self.laws is None else self.laws.force(tendons)
        forces = _Forces(self.joints.force(at), along)
        if self.compensation is None:
            return forces
        up = _Forces(wrenches=self.compensation.wrenches(at))
        if self._by_actuators is None:
            return forces.plus(up)
        kept = jnp.where(self._by_actuators, 0.0, self._onto_joints(at, tendons, up))
        return forces.plus(_Forces(kept))

    @property
    def _by_actuators(self) -> np.ndarray | None:
        """Mask of the velocities whose gravity is compensated by actuators; None if there are
        none."""
        return np.array(self.compensated) if any(self.compensated) else None

    def _actuation(self, at: Instant, tendons, u) -> tuple[Float[Array, " n"], Moments]:
        """Forces of the actuators after clamping."""
        assert self.actuators is not None
        moments = self.actuators.moments(at, tendons)
        force = self.actuators.force(moments, u, at.states)
        if self.laws is not None and self.laws.clamped:
            force = force * self._tendon_shares(force)
        low, high = self.actuators.force_range[:, 0], self.actuators.force_range[:, 1]
        return jnp.clip(force, low, high), moments

    def _tendon_shares(self, force):
        """Factors (n,) on the actuator forces that bring the total force on each tendon into its
        range."""
        assert self.actuators is not None and self.laws is not None
        links = self.actuators.transmissions.tendons
        if not links:
            return jnp.ones_like(force)
        index, tendon = (np.array(x) for x in zip(*links, strict=True))
        total = spread(tendon, self.laws.armature.shape[0], take(force, index))
        allowed = jnp.clip(total, self.laws.force_range[:, 0], self.laws.force_range[:, 1])
        share = jnp.where(total != 0, allowed / jnp.where(total != 0, total, 1.0), 1.0)
        others = np.isin(np.arange(force.shape[0]), index, invert=True).astype(float)
        return spread(index, force.shape[0], take(share, tendon)) + others

    def _driven(self, at: Instant, tendons, force, moments: Moments) -> "_Forces":
        """Joint and tendon forces that result from actuator forces (n,)."""
        assert self.actuators is not None
        driven = _Forces(*self.actuators.onto(at, force, moments, self._n_tendons))
        by_actuators = self._by_actuators
        if self.joint_force_range is None and by_actuators is None:
            return driven
        joint = self._onto_joints(at, tendons, driven)
        if by_actuators is not None and self.compensation is not None:
            up = self._onto_joints(at, tendons, _Forces(wrenches=self.compensation.wrenches(at)))
            joint = joint + jnp.where(by_actuators, up, 0.0)
        if self.joint_force_range is not None:
            joint = jnp.clip(joint, self.joint_force_range[:, 0], self.joint_force_range[:, 1])
        return _Forces(joint)

    @property
    def _n_tendons(self) -> int:
        return 0 if self.tendons is None else self.tendons.n

    def inertia(self, at):
        M = jnp.diag(self.joints.armature)
        if self.laws is not None and self.laws.heavy:
            assert self.tendons is not None
            which = np.array(self.laws.heavy)
            J = self.tendons.jacobian(at, self.tendons.at(at), which)
            M = M + gram(J, take(self.laws.armature, which)[:, None] * J)
        return M

    def energy(self, at):
        energy = self.joints.energy(at)
        if self.laws is not None and self.tendons is not None:
            energy = energy + self.laws.energy(self.tendons.at(at).length)
        return energy

    def lines(self, at):
        return {} if self.tendons is None else {"tendon": tendon_lines(self.tendons, at)}

    def outputs(self, at, u):
        out, tendons = {}, self.tendon_state(at)
        along = None if self.laws is None else self.laws.force(tendons)
        if tendons is not None:
            out["tendon_length"] = tendons.length
        if self.actuators is not None:
            out["actuator_force"], moments = self._actuation(at, tendons, u)
            if self.state_names:
                out["activation"] = at.states
            driven = self.actuators.onto(at, out["actuator_force"], moments, self._n_tendons)
            along = _added(along, driven[1])
        if self.constraints is not None:
            along = _added(along, self.constraints.forces(at, tendons)[1])
        if along is not None:
            out["tendon_force"] = along
        return out


class _Forces(NamedTuple):
    """Joint forces (n_v,), forces along the tendons (n,) and wrenches (N, 6), each None if
    absent."""

    joint: Float[Array, " n_v"] | None = None
    along: Float[Array, " n"] | None = None
    wrenches: Float[Array, "N 6"] | None = None

    def plus(self, other: "_Forces") -> "_Forces":
        return _Forces(*(_added(a, b) for a, b in zip(self, other, strict=True)))


def _beyond(x):
    """`max(x, 0)`, with the mean of both slopes where x is zero within round-off. This occurs in
    models whose tendons have their rest length in the initial configuration."""
    return jnp.where(jnp.abs(x) < _ROUND_OFF, 0.5 * x, jnp.maximum(x, 0.0))


def _added(a, b):
    return b if a is None else a if b is None else a + b
