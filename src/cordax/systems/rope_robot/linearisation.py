"""The equations of a rope robot about a state, for implicit steps under its constraints."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...math.linalg import gram, inverse2, matvec, solve, vecmat
from ...math.materialise import materialise
from ...mechanics import Linearisation
from ...mechanics.linearisation import ComplementSolver
from ...mechanics.saddle import SaddlePoint
from . import sweep
from .inverse import accelerations, inertia_rows


class RopeLinearisation(Linearisation):
    """About a state `t`, `q`, `v` with inputs `u`, accelerations `a` and multipliers `pull`, zero
    where they are left out. Products with M, K and D are directional derivatives of the residual;
    solves go along the ropes (`sweep`). `root` (2, 2, m): a matrix on stretches and angles of the
    first segments, which solves take besides."""

    robot: Any
    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    u: Float[Array, " n_u"]
    a: Float[Array, " n"]
    pull: Float[Array, " m"]
    f: Float[Array, " n"]
    root: Float[Array, "2 2 m"] | None = None
    exact: bool = eqx.field(static=True, default=True)

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
        y = jax.jvp(self.residual, (self.q, self.v, self.a), (h2 * x, h * x, x))[1]
        if self.root is None:
            return y
        first = jnp.sum(self.root * self.robot.split(x)[0][:, 0], axis=1)
        ropes, platform = self.robot.split(y)
        return self.robot.join(ropes.at[:, 0].add(first), platform)

    def factorise(self, h, h2):
        """Of ropes, and of the platform (3, 3) or None."""
        robot = self.robot
        seg, x = robot.motion(self.q, self.v)
        a = robot.split(self.a)[0]
        tip = self.pull.reshape(-1, 2).T if robot.n_constraints else robot.tip(self.u)
        loads = inertia_rows(seg, x, a, accelerations(seg, x, a), robot.gravity, tip)[1]
        rows = robot.sweep_rows(seg, x, a, loads, h, h2)
        ropes = sweep.factorise(rows if self.root is None else sweep.with_root(rows, self.root))
        if robot.platform is None:
            return ropes, None
        arm, _ = robot.platform.arms(robot.split(self.q)[1][2])
        turning = jnp.sum(arm * tip)  # the arms of the pulls turn with the platform
        stiff = h2 * jnp.stack([0.0 * turning, 0.0 * turning, turning])
        return ropes, robot.platform.inertias + stiff

    def implicit_solve(self, factor, h, h2, b):
        factor = lax.stop_gradient(factor)
        alone = lambda r: self._substitute(factor, r)
        return lax.custom_linear_solve(
            lambda x: self.product(h, h2, x),
            b,
            lambda _, r: alone(r),
            lambda _, r: jax.linear_transpose(alone, r)(r)[0],
        )

    def constrained_solver(self, jacobian, h, h2=None, rows=None):
        h2 = h * h if h2 is None else h2
        if not self.robot.n_constraints:
            return ComplementSolver(self.implicit_solver(h, h2), jacobian, rows)
        rows = jacobian if rows is None else rows
        return RopeSaddle(self, h, h2, jacobian, rows, *self._complement(jacobian, h, h2, rows))

    def matrices(self):
        columns = jnp.eye(self.f.shape[0], dtype=self.f.dtype)
        matrix = lambda product: jax.vmap(product, out_axes=1)(columns)
        return matrix(self.inertia), matrix(self.stiffness), matrix(self.damping)

    def _substitute(self, factor, r):
        ropes, platform = factor
        b, p = self.robot.split(r)
        return self.robot.join(
            sweep.substitute(ropes, b), None if platform is None else p / platform
        )

    def _complement(self, jacobian, h, h2, rows):
        """Factor, motion of ropes (2, 2, s, m) under unit pulls at their own ends, the inverse of
        what their rows see of it (2, 2, m), and the matrix (3, 3) left for the platform."""
        motion, h, h2, jacobian, rows = lax.stop_gradient((self, h, h2, jacobian, rows))
        robot = motion.robot
        factor = materialise(motion.factorise(h, h2))
        moved = -jax.vmap(lambda b: sweep.substitute(factor[0], b))(_own_rows(robot, jacobian))
        moved = materialise(moved)
        seen = jnp.sum(_own_rows(robot, rows)[:, None] * moved[None], axis=(2, 3))
        inverse = materialise(inverse2(seen))
        left = None
        if robot.platform is not None:
            by_row = inverse_rows(inverse, rows[:, -3:])
            left = materialise(jnp.diag(factor[1]) - gram(jacobian[:, -3:], by_row))
        return factor, moved, inverse, left


def _own_rows(robot, jacobian):
    """Of each rope the two rows of its own end, (2, 2, s, m): rows, then coordinates."""
    s, m = robot.count, robot.n_ropes
    blocks = jacobian[:, : 2 * s * m].reshape(m, 2, m, s, 2)
    own = jnp.stack([blocks[j, :, j] for j in range(m)], axis=-1)  # (2, s, 2, m)
    return own.transpose(0, 2, 1, 3)


def inverse_rows(inverse, rows):
    """The 2 by 2 inverse of each rope times its rows (2 m, k)."""
    m = inverse.shape[-1]
    each = rows.reshape(m, 2, -1)
    first = inverse.transpose(2, 0, 1)
    return jnp.sum(first[..., None] * each[:, None], axis=2).reshape(rows.shape)


class RopeSaddle(eqx.Module):
    """`[A, J^T; G, 0] [x; y] = [b; c]`: ropes condensed to their ends, then the platform."""

    motion: RopeLinearisation
    h: Float[Array, ""]
    h2: Float[Array, ""]
    jacobian: Float[Array, "k n"]
    rows: Float[Array, "k n"]
    factor: Any
    moved: Float[Array, "2 2 s m"]
    inverse: Float[Array, "2 2 m"]
    left: Float[Array, "3 3"] | None

    def __call__(self, b, c):
        n = b.shape[0]

        def product(z):
            x, y = z[:n], z[n:]
            forces = self.motion.product(self.h, self.h2, x) + vecmat(y, self.jacobian)
            return jnp.concatenate([forces, matvec(self.rows, x)])

        fixed = lax.stop_gradient(self)
        solved = lambda z: jnp.concatenate(fixed.substitute(z[:n], z[n:]))
        z = lax.custom_linear_solve(
            product,
            jnp.concatenate([b, c]),
            lambda _, r: solved(r),
            lambda _, r: jax.linear_transpose(solved, r)(r)[0],
        )
        return z[:n], z[n:]

    def substitute(self, b, c):
        robot = self.motion.robot
        ropes, p = robot.split(b)
        free = sweep.substitute(self.factor[0], ropes)
        # pulls: seen y = c - G (free + platform)
        gap = c - matvec(self.rows[:, : ropes.size], robot.join(free))
        pull = inverse_rows(self.inverse, gap[:, None])[:, 0]
        x = None
        if self.left is not None:
            J, G = self.jacobian[:, -3:], self.rows[:, -3:]
            # (A_p - J_p^T inverse G_p) x = b_p - J_p^T inverse gap
            x = solve(self.left, p - vecmat(pull, J))
            pull = pull - inverse_rows(self.inverse, matvec(G, x)[:, None])[:, 0]
        y = pull.reshape(-1, 2).T  # (2, m)
        moved = free + jnp.sum(self.moved * y[:, None, None], axis=0)
        return robot.join(moved, x), pull


class RopeSaddlePoint(SaddlePoint):
    """`[M, J^T; J, 0]`, likewise."""

    solver: RopeSaddle

    def solve(self, f, b):
        return self.solver(jnp.zeros_like(self.solver.motion.q) if f is None else f, b)
