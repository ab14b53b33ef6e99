"""From energies to equations of motion.

    M(q) a = -c(q, v) - dV/dq - dR/dv + applied,        c = d/dt(dT/dv)|_{a=0} - dT/dq

Kinetic energy is best given by inertial coordinates x(q) with weights w, `T = 1/2 sum_i w_i
xdot_i^2` (positions times masses, angles times moments of inertia). Then, with A = dx/dq,

    M = A^T W A,        c = A^T W (d^2 x/dt^2 at a = 0),

one Jacobian, one second-order jvp and one vjp, two to three times cheaper than Hessians of a
general T."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..math.linalg import gram
from ..math.materialise import materialise
from .system import System


class LagrangianSystem(System):
    """A machine described by its energies; mass matrix, velocity terms and forces follow by
    differentiation.

    A subclass gives `inertial_coordinates` and `inertial_weights` (or overrides `kinetic_energy`),
    `potential_energy`, `dissipation` and `applied_force`. Coordinates are minimal or constrained
    but free of quaternions (n_q = n_v)."""

    def __check_init__(self):
        if self.n_q != self.n_v:
            raise ValueError(
                f"{type(self).__name__}: got {self.n_q} coordinates and {self.n_v} velocities, "
                f"expected equal "
                "numbers (LagrangianSystem does not handle quaternions; derive from System)"
            )

    # --- what the machine is
    # -----------------------------------------------------------------------------------
    def inertial_coordinates(self, q) -> Float[Array, " k"]:
        """Positions [m] and angles [rad] that carry inertia, shape (k,)."""
        raise NotImplementedError(
            f"{type(self).__name__} must define inertial_coordinates or override kinetic_energy"
        )

    def inertial_weights(self) -> Float[Array, " k"]:
        """Mass [kg] or moment of inertia [kg m^2] of each inertial coordinate, shape (k,)."""
        raise NotImplementedError(f"{type(self).__name__} must define inertial_weights")

    def dissipation(self, q, v):
        """Rayleigh function R [W], half the dissipated power; the force is -dR/dv."""
        return jnp.zeros((), q.dtype)

    def applied_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Generalised force of inputs and of whatever has no potential, shape (n,)."""
        return jnp.zeros_like(v)

    # --- what follows
    # ------------------------------------------------------------------------------------------
    def kinetic_energy(self, q, v):
        velocity = jax.jvp(self.inertial_coordinates, (q,), (v,))[1]
        return 0.5 * jnp.sum(self.inertial_weights() * velocity * velocity)

    def mass_matrix(self, q):
        if self._has_general_kinetic_energy:
            return jax.jacfwd(lambda v: jax.grad(self.kinetic_energy, argnums=1)(q, v))(
                jnp.zeros_like(q)
            )
        A = materialise(jax.jacfwd(self.inertial_coordinates)(q))
        return gram(A, self.inertial_weights()[:, None] * A)

    def velocity_force(self, q, v) -> Float[Array, " n"]:
        """`-c(q, v)`: Coriolis, centrifugal and gyroscopic force, shape (n,)."""
        if self._has_general_kinetic_energy:
            momentum = jax.grad(self.kinetic_energy, argnums=1)
            rate = jax.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
            return jax.grad(self.kinetic_energy)(q, v) - rate
        return -self._pull_back(self.inertial_weights() * self._bias_acceleration(q, v), q)

    def force(self, t, q, v, u):
        f = self.velocity_force(q, v) + self.applied_force(t, q, v, u)
        return f - jax.grad(self.potential_energy)(q) - jax.grad(self.dissipation, argnums=1)(q, v)

    def _bias_acceleration(self, q, v):
        """Second time derivative of the inertial coordinates along q + s v."""
        first = lambda q: jax.jvp(self.inertial_coordinates, (q,), (v,))[1]
        return materialise(jax.jvp(first, (q,), (v,))[1])

    def _pull_back(self, y, q):
        return jax.vjp(self.inertial_coordinates, q)[1](y)[0]

    @property
    def _has_general_kinetic_energy(self) -> bool:
        return type(self).kinetic_energy is not LagrangianSystem.kinetic_energy
