"""Machines that exist for the tests alone."""

import jax
import jax.numpy as jnp
import numpy as np

from cordax import LagrangianSystem, State, System, float_field
from cordax.math import rotations


class Bead(LagrangianSystem):
    """A bead on a sinusoidal wire y = `height` sin(x), with damping: one coordinate, and yet a mass
    that depends on the configuration, velocity terms and velocity-dependent force.

    `mass` [kg], `height` [m], `damping` [N s/m]; input: a generalised force [N].
    """

    mass: jax.Array = float_field(default=1.0)
    height: jax.Array = float_field(default=0.8)
    damping: jax.Array = float_field(default=0.3)
    gravity: jax.Array = float_field(default=9.81)

    default_integrator = "rk4"
    coordinate_names = ("x",)
    input_names = ("force",)

    def inertial_coordinates(self, q):
        return jnp.stack([q[0], self.height * jnp.sin(q[0])])

    def inertial_weights(self):
        return jnp.stack([self.mass, self.mass])

    def potential_energy(self, t, q):
        return self.mass * self.gravity * self.height * jnp.sin(q[0])

    def dissipation(self, q, v):
        return 0.5 * self.damping * v[0] ** 2

    def applied_force(self, t, q, v, u):
        return u

    def default_state(self):
        return State(np.array([0.5]), np.array([0.4]))


class DoublePendulum(LagrangianSystem):
    """Two point masses on massless rods, absolute angles from hanging [rad].

    `masses` [kg] and `lengths` [m], shape (2,) each; `damping` [N m s/rad] acts on both
    absolute angles; inputs: a torque [N m] on each.
    """

    masses: jax.Array = float_field(default=(1.0, 0.7))
    lengths: jax.Array = float_field(default=(0.8, 0.5))
    damping: jax.Array = float_field(default=0.0)
    gravity: jax.Array = float_field(default=9.81)

    default_integrator = "rk4"
    coordinate_names = ("upper", "lower")
    input_names = ("torque_upper", "torque_lower")

    def inertial_coordinates(self, q):
        x = jnp.cumsum(self.lengths * jnp.sin(q))
        y = -jnp.cumsum(self.lengths * jnp.cos(q))
        return jnp.concatenate([x, y])

    def inertial_weights(self):
        return jnp.concatenate([self.masses, self.masses])

    def potential_energy(self, t, q):
        return -self.gravity * jnp.sum(self.masses * jnp.cumsum(self.lengths * jnp.cos(q)))

    def dissipation(self, q, v):
        return 0.5 * self.damping * jnp.sum(v * v)

    def applied_force(self, t, q, v, u):
        return u

    def default_state(self):
        return State(np.array([0.9, -0.4]), np.array([0.3, 1.1]))


class DoublePendulumByEnergy(DoublePendulum):
    """The same machine, its kinetic energy written out instead of derived from positions."""

    kinetic_form = "energy"

    def kinetic_energy(self, q, v):
        (m1, m2), (l1, l2) = self.masses, self.lengths
        own = 0.5 * (m1 + m2) * (l1 * v[0]) ** 2 + 0.5 * m2 * (l2 * v[1]) ** 2
        return own + m2 * l1 * l2 * v[0] * v[1] * jnp.cos(q[0] - q[1])


class FreeBody(System):
    """A rigid body under no force: a unit quaternion and the body-fixed angular velocity [rad/s].

    `inertia` [kg m^2]: principal moments, shape (3,).
    """

    inertia: jax.Array = float_field(default=(1.0, 2.0, 3.5))

    coordinate_names = ("w", "x", "y", "z")
    velocity_names = ("omega_x", "omega_y", "omega_z")

    def mass_matrix(self, q):
        return jnp.diag(self.inertia)

    def force(self, t, q, v, u):
        return -jnp.cross(v, self.inertia * v)

    def retract(self, q, dq):
        return rotations.retract(q, dq)

    def angular_momentum(self, q, v):
        """In world axes [N m s], shape (3,)."""
        return rotations.rotate(q, self.inertia * v)

    def default_state(self):
        return State(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.2, 2.0, 0.1]))
