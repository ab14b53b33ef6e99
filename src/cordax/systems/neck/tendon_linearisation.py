"""Linearisation of joints that motors pull through elastic tendons."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import gram, matvec, solve, vecmat
from ...mechanics.linearisation import Linearisation


class TendonLinearisation(Linearisation):
    """Linearisation of joints coupled to single motors through elastic tendons. The implicit solve
    eliminates the motors, so that n_joints unknowns remain.

    `M_a`, `K_a`, `D_a`: structure and tendon geometry, shape (n, n); `J` = dl/dalpha and `slope` =
    d(tension)/dalpha, shape (k, n); motor inertia, travel, tendon stiffness and damping and the
    slope of motor friction, shape (k,)."""

    f: Float[Array, " m"]
    M_a: Float[Array, "n n"]
    K_a: Float[Array, "n n"]
    D_a: Float[Array, "n n"]
    J: Float[Array, "k n"]
    slope: Float[Array, "k n"]
    inertia_m: Float[Array, " k"]
    travel: Float[Array, " k"]
    k: Float[Array, " k"]
    d: Float[Array, " k"]
    drag: Float[Array, " k"]
    exact: bool = eqx.field(static=True, default=True)

    def stiffness(self, x):
        xa, xt = x[: self.M_a.shape[0]], x[self.M_a.shape[0] :]
        tension = matvec(self.slope, xa) - self.k * self.travel * xt
        return jnp.concatenate(
            [matvec(self.K_a, xa) - vecmat(tension, self.J), self.travel * tension]
        )

    def inertia(self, x):
        xa, xt = x[: self.M_a.shape[0]], x[self.M_a.shape[0] :]
        return jnp.concatenate([matvec(self.M_a, xa), self.inertia_m * xt])

    def implicit_solve(self, factor, h, h2, b):
        n = self.M_a.shape[0]
        b, gain = materialise((b, h2 * self.slope + (h * self.d)[:, None] * self.J))
        spring = h2 * self.k + h * self.d
        alone = self.inertia_m + h * self.drag
        motor = 1.0 / (alone + self.travel * self.travel * spring)
        # Schur complement of the diagonal motor block
        seen = (alone * motor)[:, None] * gain
        A = self.M_a - h * self.D_a - h2 * self.K_a + gram(self.J, seen)
        rhs = b[:n] + vecmat(spring * self.travel * motor * b[n:], self.J)
        A, rhs = materialise((A, rhs))
        xa = materialise(solve(A, rhs))
        return jnp.concatenate([xa, motor * (b[n:] + self.travel * matvec(gain, xa))])

    def matrices(self):
        n, k = self.M_a.shape[0], self.J.shape[0]
        B, J = self.travel, self.J
        M = jnp.block(
            [[self.M_a, jnp.zeros((n, k))], [jnp.zeros((k, n)), jnp.diag(self.inertia_m)]]
        )
        K = jnp.block(
            [
                [self.K_a - J.T @ self.slope, (self.k * B * J.T)],
                [B[:, None] * self.slope, -jnp.diag(self.k * B * B)],
            ]
        )
        D = jnp.block(
            [
                [self.D_a - J.T @ (self.d[:, None] * J), (self.d * B * J.T)],
                [(self.d * B)[:, None] * J, -jnp.diag(self.d * B * B + self.drag)],
            ]
        )
        return M, K, D
