"""Equations of motion from energies.

    M(q) a = -c(q, v) - dV/dq - dR/dv + applied,        c = d/dt(dT/dv)|_{a=0} - dT/dq

The kinetic energy is best given by inertial coordinates x(q) with weights w, `T = 1/2 sum_i w_i
xdot_i^2` (positions with masses, angles with moments of inertia). Then, with A = dx/dq,

    M = A^T W A,        c = A^T W (d^2 x/dt^2 at a = 0),

which takes one Jacobian, one second-order jvp and one vjp. This is two to three times cheaper than
Hessians of a general T.

If no x(q) exists, as for the angular velocity of a body, velocities V(q, v) linear in v replace it:
body twists along principal axes. Then M = A^T W A with A = dV/dv, and the velocity terms follow
from Hamel's equations, which hold for every v with dq/dt = N(q) v. With p = dT/dv,

    dp/dt = N^T dT/dq + ad_v^T p + force,        N ad_v(w) = D(N w)[N v] - D(N v)[N w]

where ad_v(w) is the Lie bracket of the columns of N. For body-fixed angular velocities `ad_v(w) =
v x w`, which gives Euler's equations."""

from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require
from .._jax.materialise import materialise
from ..math.linalg import gram, matvec
from .linearisation import DenseLinearisation
from .structure import Structure
from .system import System


class LagrangianSystem(System):
    """A machine described by its energies; mass matrix, velocity terms and forces follow by
    differentiation.

    A subclass defines `inertial_coordinates` and `inertial_weights`, `potential_energy`,
    `dissipation` and `applied_force`. One that defines `inertial_velocities` or `kinetic_energy`
    instead of inertial coordinates sets `kinetic_form`. Coordinates are minimal or constrained;
    with quaternions it defines `retract` and `difference` too.

    The default integrator is stable at every step size, because the fastest vibration of the
    machine is not known in advance (`cordax.modes` and `cordax.step_limit` compute it)."""

    default_integrator: ClassVar[str] = "implicit_midpoint"

    #: method that defines the kinetic energy: "coordinates" (`inertial_coordinates`), "velocities"
    #: (`inertial_velocities`) or "energy" (`kinetic_energy`)
    kinetic_form: ClassVar[Literal["coordinates", "velocities", "energy"]] = "coordinates"

    # --- definition of the machine
    def inertial_coordinates(self, q) -> Any:
        """Positions [m] and angles [rad] that carry inertia: an array, or any pytree of arrays."""
        raise NotImplementedError(
            f"{type(self).__name__} must define inertial_coordinates, or set kinetic_form to "
            "'velocities' (and define inertial_velocities) or 'energy' (and define kinetic_energy)"
        )

    def inertial_velocities(self, q, v) -> Any:
        """Velocities [m/s] and angular velocities [rad/s] that carry inertia, linear in `v`: an
        array, or any pytree of arrays. By default the rates of the inertial coordinates. A machine
        defines it for the angular velocities of bodies along their principal axes."""
        return jax.jvp(self.inertial_coordinates, (q,), (self.rate(q, v),))[1]

    def inertial_weights(self) -> Any:
        """Mass [kg] or moment of inertia [kg m^2] of each inertial coordinate or velocity.

        The same pytree, with arrays that broadcast against them.
        """
        raise NotImplementedError(f"{type(self).__name__} must define inertial_weights")

    def dissipation(self, q, v):
        """Rayleigh function R [W], half the dissipated power; the force is -dR/dv."""
        return jnp.zeros((), q.dtype)

    def applied_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Generalised force of inputs and of all effects without a potential, shape (n,)."""
        return jnp.zeros_like(v)

    # --- derived quantities
    def kinetic_energy(self, q, v):
        velocity = self.inertial_velocities(q, v)
        return 0.5 * _inner(self._weigh(velocity), velocity)

    def mass_matrix(self, q):
        rest = jnp.zeros(self.n_v, q.dtype)
        if self.kinetic_form == "energy":
            return jax.jacfwd(lambda v: jax.grad(self.kinetic_energy, argnums=1)(q, v))(rest)
        if self.kinetic_form == "coordinates" and self.flat:
            A = jax.jacfwd(self.inertial_coordinates)(q)
        else:
            A = jax.jacfwd(lambda v: self.inertial_velocities(q, v))(rest)
        A = materialise(A)
        return _gram(self._weigh(A, columns=True), A)

    def velocity_force(self, q, v) -> Float[Array, " n"]:
        """`-c(q, v)`: Coriolis, centrifugal and gyroscopic force, shape (n_v,)."""
        if self.kinetic_form == "coordinates":
            load = self._weigh(self._bias_acceleration(q, v))
            return -self._pull_back(q, jax.vjp(self.inertial_coordinates, q)[1](load)[0])
        along = self.rate(q, v)
        momentum = lambda q: jax.grad(self.kinetic_energy, argnums=1)(q, v)
        p, p_rate = jax.jvp(momentum, (q,), (along,))
        f = self._pull_back(q, jax.grad(self.kinetic_energy)(q, v)) - p_rate
        if self.flat:
            return f

        def bracket(w):
            turned = jax.jvp(lambda q: self.rate(q, w), (q,), (along,))[1]
            return turned - jax.jvp(lambda q: self.rate(q, v), (q,), (self.rate(q, w),))[1]

        # the derivative of `difference` is a left inverse of N
        covector = jax.vjp(lambda end: self.difference(q, end), q)[1](p)[0]
        return f + jax.vjp(bracket, jnp.zeros_like(v))[1](covector)[0]

    def force(self, t, q, v, u):
        f = self.velocity_force(q, v) + self.applied_force(t, q, v, u)
        return (
            f
            - self._pull_back(q, jax.grad(self.potential_energy, argnums=1)(t, q))
            - jax.grad(self.dissipation, argnums=1)(q, v)
        )

    def structure(self) -> Structure:
        known = self.kinetic_form == "coordinates" and self.flat
        return LagrangianStructure(self) if known else Structure(self)

    def _bias_acceleration(self, q, v):
        """Second time derivative of the inertial coordinates along the motion at constant v."""
        first = lambda q: jax.jvp(self.inertial_coordinates, (q,), (self.rate(q, v),))[1]
        return materialise(jax.jvp(first, (q,), (self.rate(q, v),))[1])

    def _weigh(self, x, columns: bool = False):
        """Inertial quantities times their weights; `columns`: with a trailing axis of
        directions."""

        def weigh(w, x):
            shape = x.shape[:-1] if columns else x.shape
            name = f"{type(self).__name__}.inertial_weights"
            expected = f"an array that broadcasts against shape {shape}"
            require(_broadcasts(w.shape, shape), name, f"shape {w.shape}", expected)
            return (w[..., None] if columns else w) * x

        return jax.tree.map(weigh, self.inertial_weights(), x)

    def _pull_back(self, q, covector):
        """Generalised force `N^T g` of a gradient g by q."""
        if self.flat:
            return covector
        return jax.vjp(lambda v: self.rate(q, v), jnp.zeros(self.n_v, q.dtype))[1](covector)[0]


class LagrangianStructure(Structure):
    """Structure of a machine with inertial coordinates and dq/dt = v."""

    system: LagrangianSystem

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        """Linearise as `Structure.linearise` does, but faster, using the structure of the velocity
        terms.

        With x the inertial coordinates, A = dx/dq and x2 = d^2x/dt^2 at the acceleration a (zero
        unless given),

            K = -A^T W (dx2/dq) - d^2/dq^2 (W x2 . x + V + lambda . Phi) + ...
            D = -2 A^T W (dA/dt) + ...

        where the Hessian is taken at fixed x2 and lambda: n directions through first derivatives
        instead of 2 n through third ones. The dots stand for dissipation, applied and held
        forces."""
        system = self.system
        held = system.held(t, q, v) if hold else None
        n = system.n_v

        def motion(q):
            first = lambda q: jax.jvp(system.inertial_coordinates, (q,), (v,))
            (x, velocity), (_, second) = jax.jvp(first, (q,), (v,))
            if acceleration is not None:
                pushed = jax.jvp(system.inertial_coordinates, (q,), (acceleration,))[1]
                second = jax.tree.map(jnp.add, second, pushed)
            return (x, velocity, second), second

        (A, A_rate, A_second), x2 = materialise(jax.jacfwd(motion, has_aux=True)(q))
        load = materialise(system._weigh(x2))

        def conservative(q):
            def pull(q):
                total = _inner(load, system.inertial_coordinates(q)) + system.potential_energy(t, q)
                if multipliers is None:
                    return total
                return total + jnp.sum(multipliers * system.constraint(t, q))

            gradient = jax.grad(pull)(q)
            return gradient, gradient

        def other(z):
            q, v = z[:n], z[n:]
            f = system.applied_force(t, q, v, u) - jax.grad(system.dissipation, argnums=1)(q, v)
            now = held if hold else system.held(t, q, v)
            f = f if now is None else f + system.held_force(t, q, now)
            return f, f

        hessian, gradient = materialise(jax.jacfwd(conservative, has_aux=True)(q))
        J, f = materialise(jax.jacfwd(other, has_aux=True)(jnp.concatenate([q, v])))
        WA = materialise(system._weigh(A, columns=True))
        M = _gram(WA, A)
        f = f - gradient
        # the gradient contains all of M a + Phi_q^T lambda - f
        if acceleration is not None:
            f = f + matvec(M, acceleration)
        if multipliers is not None:
            f = f + jax.vjp(lambda q: system.constraint(t, q), q)[1](multipliers)[0]
        return DenseLinearisation(
            M=M,
            f=f,
            K=J[:, :n] - hessian - _gram(WA, A_second),
            D=J[:, n:] - 2.0 * _gram(WA, A_rate),
            regular=system.mass_is_regular,
        )


def _inner(x, y):
    """Sum of products of two pytrees."""
    return sum(jnp.sum(a * b) for a, b in zip(*map(jax.tree.leaves, (x, y)), strict=True))


def _gram(X, Y) -> Any:
    """`X^T Y` of two pytrees of columns, shape (n, n)."""
    flat = lambda tree: [x.reshape(-1, x.shape[-1]) for x in jax.tree.leaves(tree)]
    return sum(gram(x, y) for x, y in zip(flat(X), flat(Y), strict=True))


def _broadcasts(small, large) -> bool:
    """Whether a shape broadcasts to another one without enlarging it."""
    try:
        return jnp.broadcast_shapes(small, large) == large
    except ValueError:
        return False
