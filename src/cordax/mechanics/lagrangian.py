"""From energies to equations of motion.

    M(q) a = -c(q, v) - dV/dq - dR/dv + applied,        c = d/dt(dT/dv)|_{a=0} - dT/dq

Kinetic energy is best given by inertial coordinates x(q) with weights w, `T = 1/2 sum_i w_i
xdot_i^2` (positions times masses, angles times moments of inertia). Then, with A = dx/dq,

    M = A^T W A,        c = A^T W (d^2 x/dt^2 at a = 0),

one Jacobian, one second-order jvp and one vjp, two to three times cheaper than Hessians of a
general T."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..math.linalg import gram, matvec
from ..math.materialise import materialise
from .linearisation import DenseLinearisation
from .system import System


class LagrangianSystem(System):
    """A machine described by its energies; mass matrix, velocity terms and forces follow by
    differentiation.

    A subclass gives `inertial_coordinates` and `inertial_weights` (or overrides `kinetic_energy`),
    `potential_energy`, `dissipation` and `applied_force`. Coordinates are minimal or constrained
    but free of quaternions (n_q = n_v).

    The default method is stable at every step: what a machine's fastest vibration needs is known
    only to those who have looked at it (`cordax.modes`, `cordax.step_limit`)."""

    default_integrator: ClassVar[str] = "implicit_midpoint"

    def __check_init__(self):
        if self.n_q != self.n_v:
            raise ValueError(
                f"{type(self).__name__}: got {self.n_q} coordinates and {self.n_v} velocities, "
                f"expected equal "
                "numbers (LagrangianSystem does not handle quaternions; derive from System)"
            )

    # --- what the machine is
    def inertial_coordinates(self, q) -> Any:
        """Positions [m] and angles [rad] that carry inertia: an array, or any pytree of arrays."""
        raise NotImplementedError(
            f"{type(self).__name__} must define inertial_coordinates or override kinetic_energy"
        )

    def inertial_weights(self) -> Any:
        """Mass [kg] or moment of inertia [kg m^2] of each inertial coordinate.

        The same pytree, with arrays that broadcast against the coordinates.
        """
        raise NotImplementedError(f"{type(self).__name__} must define inertial_weights")

    def dissipation(self, q, v):
        """Rayleigh function R [W], half the dissipated power; the force is -dR/dv."""
        return jnp.zeros((), q.dtype)

    def applied_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Generalised force of inputs and of whatever has no potential, shape (n,)."""
        return jnp.zeros_like(v)

    # --- what follows
    def kinetic_energy(self, q, v):
        velocity = jax.jvp(self.inertial_coordinates, (q,), (v,))[1]
        return 0.5 * _inner(self._weigh(velocity), velocity)

    def mass_matrix(self, q):
        if self._has_general_kinetic_energy:
            return jax.jacfwd(lambda v: jax.grad(self.kinetic_energy, argnums=1)(q, v))(
                jnp.zeros_like(q)
            )
        A = materialise(jax.jacfwd(self.inertial_coordinates)(q))
        return _gram(self._weigh(A, columns=True), A)

    def velocity_force(self, q, v) -> Float[Array, " n"]:
        """`-c(q, v)`: Coriolis, centrifugal and gyroscopic force, shape (n,)."""
        if self._has_general_kinetic_energy:
            momentum = jax.grad(self.kinetic_energy, argnums=1)
            rate = jax.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
            return jax.grad(self.kinetic_energy)(q, v) - rate
        return -self._pull_back(self._weigh(self._bias_acceleration(q, v)), q)

    def force(self, t, q, v, u):
        f = self.velocity_force(q, v) + self.applied_force(t, q, v, u)
        return (
            f
            - jax.grad(self.potential_energy, argnums=1)(t, q)
            - jax.grad(self.dissipation, argnums=1)(q, v)
        )

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        """As in `System`, with what is known of the structure of the velocity terms.

        With x the inertial coordinates, A = dx/dq and x2 = d^2x/dt^2 at the acceleration a (zero
        unless given),

            K = -A^T W (dx2/dq) - d^2/dq^2 (W x2 . x + V + lambda . Phi) + ...
            D = -2 A^T W (dA/dt) + ...

        where the Hessian holds x2 and lambda fixed: n directions through first derivatives instead
        of 2 n through third ones. The dots stand for dissipation, applied and held forces."""
        if self._has_general_kinetic_energy:
            return super().linearise(
                t, q, v, u, acceleration=acceleration, multipliers=multipliers, hold=hold
            )
        held = self.held(t, q, v) if hold else None
        n = self.n_v

        def motion(q):
            first = lambda q: jax.jvp(self.inertial_coordinates, (q,), (v,))
            (x, velocity), (_, second) = jax.jvp(first, (q,), (v,))
            if acceleration is not None:
                pushed = jax.jvp(self.inertial_coordinates, (q,), (acceleration,))[1]
                second = jax.tree.map(jnp.add, second, pushed)
            return (x, velocity, second), second

        (A, A_rate, A_second), x2 = materialise(jax.jacfwd(motion, has_aux=True)(q))
        load = materialise(self._weigh(x2))

        def conservative(q):
            def pull(q):
                total = _inner(load, self.inertial_coordinates(q)) + self.potential_energy(t, q)
                if multipliers is None:
                    return total
                return total + jnp.sum(multipliers * self.constraint(t, q))

            gradient = jax.grad(pull)(q)
            return gradient, gradient

        def other(z):
            q, v = z[:n], z[n:]
            f = self.applied_force(t, q, v, u) - jax.grad(self.dissipation, argnums=1)(q, v)
            now = held if hold else self.held(t, q, v)
            f = f if now is None else f + self.held_force(t, q, now)
            return f, f

        hessian, gradient = materialise(jax.jacfwd(conservative, has_aux=True)(q))
        J, f = materialise(jax.jacfwd(other, has_aux=True)(jnp.concatenate([q, v])))
        WA = materialise(self._weigh(A, columns=True))
        M = _gram(WA, A)
        f = f - gradient
        # the gradient holds all of M a + Phi_q^T lambda - f
        if acceleration is not None:
            f = f + matvec(M, acceleration)
        if multipliers is not None:
            f = f + jax.vjp(lambda q: self.constraint(t, q), q)[1](multipliers)[0]
        return DenseLinearisation(
            M=M,
            f=f,
            K=J[:, :n] - hessian - _gram(WA, A_second),
            D=J[:, n:] - 2.0 * _gram(WA, A_rate),
        )

    def _bias_acceleration(self, q, v):
        """Second time derivative of the inertial coordinates along q + s v."""
        first = lambda q: jax.jvp(self.inertial_coordinates, (q,), (v,))[1]
        return materialise(jax.jvp(first, (q,), (v,))[1])

    def _weigh(self, x, columns: bool = False):
        """Inertial quantities times their weights; `columns`: with a trailing axis of
        directions."""
        last = lambda w: w[..., None] if columns else w
        return jax.tree.map(lambda w, x: last(w) * x, self.inertial_weights(), x)

    def _pull_back(self, y, q):
        return jax.vjp(self.inertial_coordinates, q)[1](y)[0]

    @property
    def _has_general_kinetic_energy(self) -> bool:
        return type(self).kinetic_energy is not LagrangianSystem.kinetic_energy


def _inner(x, y):
    """Sum of products of two pytrees."""
    return sum(jnp.sum(a * b) for a, b in zip(*map(jax.tree.leaves, (x, y)), strict=True))


def _gram(X, Y) -> Any:
    """`X^T Y` of two pytrees of columns, shape (n, n)."""
    flat = lambda tree: [x.reshape(-1, x.shape[-1]) for x in jax.tree.leaves(tree)]
    return sum(gram(x, y) for x, y in zip(flat(X), flat(Y), strict=True))
