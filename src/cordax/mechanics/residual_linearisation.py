"""Machines with flat coordinates (dq/dt = v) that are defined by momentum and residual."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linearisation import DenseLinearisation, Linearisation
from .structure import Structure
from .system import System


class ResidualSystem(System):
    """A machine that computes products with its mass matrix and the residual of its equations
    faster than the mass matrix and the force."""

    @abc.abstractmethod
    def momentum(self, q, v) -> Float[Array, " n"]:
        """`M v`, shape (n_v,)."""

    @abc.abstractmethod
    def residual(self, t, q, v, u, a, multipliers) -> Float[Array, " n"]:
        """`M a + Phi_q^T lambda - f`, shape (n_v,)."""

    def mass_matrix(self, q):
        columns = jnp.eye(self.n_v, dtype=q.dtype)
        return jax.vmap(lambda x: self.momentum(q, x), out_axes=1)(columns)

    def force(self, t, q, v, u):
        return -self.residual(t, q, v, u, jnp.zeros_like(v), jnp.zeros(self.n_constraints, v.dtype))

    def structure(self) -> "ResidualStructure":
        return ResidualStructure(self)


class ResidualStructure(Structure):
    """Structure of a `ResidualSystem`."""

    system: ResidualSystem

    def momentum(self, q, v):
        return self.system.momentum(q, v)

    def residual(self, t, q, v, u, a, multipliers):
        return self.system.residual(t, q, v, u, a, multipliers)


class ResidualLinearisation(Linearisation):
    """Linearised equations of `robot` at a state `t`, `q`, `v` with inputs `u`, accelerations `a`
    and multipliers `pull`. Products with M, K and D are directional derivatives of
    `robot.residual(t, q, v, u, a, pull)`. A subclass defines the solves."""

    robot: Any
    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    u: Float[Array, " n_u"]
    a: Float[Array, " n"]
    pull: Float[Array, " k"]
    f: Float[Array, " n"]
    exact: bool = eqx.field(static=True, default=True)

    @classmethod
    def about(cls, robot, t, q, v, u, acceleration=None, multipliers=None):
        """Linearise about a state; omitted accelerations and multipliers are zero."""
        a = jnp.zeros_like(v) if acceleration is None else acceleration
        zero = jnp.zeros(robot.n_constraints, v.dtype)
        pull = zero if multipliers is None else multipliers
        f = robot.force(t, q, v, u)
        return cls(robot, t, q, v, u, a, pull, f)  # pyright: ignore[reportCallIssue]

    def residual(self, q, v, a):
        return self.robot.residual(self.t, q, v, self.u, a, self.pull)

    def stiffness(self, x):
        return -jax.jvp(lambda q: self.residual(q, self.v, self.a), (self.q,), (x,))[1]

    def damping(self, x):
        """`D x`, shape (n,)."""
        return -jax.jvp(lambda v: self.residual(self.q, v, self.a), (self.v,), (x,))[1]

    def inertia(self, x):
        return self.robot.momentum(self.q, x)

    def product(self, h, h2, x):
        """`(M - h D - h2 K) x`, shape (n,)."""
        return jax.jvp(self.residual, (self.q, self.v, self.a), (h2 * x, h * x, x))[1]

    def matrices(self):
        columns = jnp.eye(self.f.shape[0], dtype=self.f.dtype)
        matrix = lambda product: jax.vmap(product, out_axes=1)(columns)
        return matrix(self.inertia), matrix(self.stiffness), matrix(self.damping)

    def dense(self) -> DenseLinearisation:
        """The same linearisation with dense matrices, for forces that couple distant parts of the
        structure."""
        M, K, D = self.matrices()
        return DenseLinearisation(M=M, f=self.f, K=K, D=D)
