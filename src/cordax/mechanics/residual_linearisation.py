"""Linearisation of a machine with flat coordinates by directional derivatives of its residual."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .linearisation import Linearisation


class ResidualLinearisation(Linearisation):
    """The equations of `robot` about a state `t`, `q`, `v` with inputs `u`, accelerations `a` and
    multipliers `pull`. Products with M, K and D are directional derivatives of
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
