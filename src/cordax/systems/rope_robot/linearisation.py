"""Linearised equations of a rope robot, for implicit steps with its constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import inverse2, matvec, solve, vecmat
from ...mechanics import Linearisation
from ...mechanics.linearisation import ComplementSolver
from ...mechanics.residual_linearisation import ResidualLinearisation
from ...mechanics.saddle import SaddlePoint
from . import block_elimination
from .inverse import accelerations, inertia_rows
from .segments import Layout


class RopeLinearisation(ResidualLinearisation):
    """Linearisation of a planar rope robot; linear systems are solved along the ropes
    (`block_elimination`). `root` (2, 2, m): an additional matrix on stretches and angles of the
    first segments."""

    root: Float[Array, "2 2 m"] | None = None

    def product(self, h, h2, x):
        y = super().product(h, h2, x)
        if self.root is None:
            return y
        first = jnp.sum(self.root * self.robot.split(x)[0][:, 0], axis=1)
        ropes, platform = self.robot.split(y)
        return self.robot.join(ropes.at[:, 0].add(first), platform)

    def factorise(self, h, h2):
        """Factors of the ropes, and of the platform (3, 3) or None."""
        robot = self.robot
        seg, x = robot.motion(self.q, self.v)
        a = robot.split(self.a)[0]
        tip = self.pull.reshape(-1, 2).T if robot.n_constraints else robot.tip(self.u)
        loads = inertia_rows(seg, x, a, accelerations(seg, x, a), robot.gravity, tip)[1]
        rows = robot.sweep_rows(seg, x, a, loads, h, h2)
        ropes = block_elimination.factorise(
            rows if self.root is None else block_elimination.with_root(rows, self.root)
        )
        if robot.platform is None:
            return ropes, None
        arm, _ = robot.platform.arms(robot.split(self.q)[1][2])
        turning = jnp.sum(arm * tip)  # the arms of the pulls turn with the platform
        stiff = h2 * jnp.stack([0.0 * turning, 0.0 * turning, turning])
        return ropes, robot.platform.inertias + stiff

    def bare(self):
        return BareRopes(self.robot.layout)  # pyright: ignore[reportCallIssue]

    def implicit_solve(self, factor, h, h2, b):
        factor, layout = lax.stop_gradient(factor), self.robot.layout
        alone = lambda r: _substitute(layout, factor, r)
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
        elimination = self._complement(jacobian, h, h2, rows)
        return RopeSaddle(Derivative(self, h, h2, jacobian, rows), elimination)

    def _complement(self, jacobian, h, h2, rows) -> "Elimination":
        motion, h, h2, jacobian, rows = lax.stop_gradient((self, h, h2, jacobian, rows))
        robot = motion.robot
        ropes, platform = materialise(motion.factorise(h, h2))
        own, arms = _of_ends(robot.layout, jacobian)
        seen, seen_arms = (own, arms) if rows is jacobian else _of_ends(robot.layout, rows)
        moved = materialise(-jax.vmap(lambda b: block_elimination.substitute(ropes, b))(own))
        pairs = jnp.sum(seen[:, None] * moved[None], axis=(2, 3))
        inverse = materialise(inverse2(pairs))
        left = None
        if platform is not None:
            by_arm = jnp.sum(inverse[:, :, None] * seen_arms[None], axis=1)
            carried = jnp.sum(arms[:, :, None] * by_arm[:, None], axis=(0, 3))
            left = materialise(jnp.diag(platform) - carried)
        return Elimination(robot.layout, ropes, seen, arms, seen_arms, moved, inverse, left)


class BareRopes(Linearisation):
    """Data that solves for ropes with free ends need in addition to their factor."""

    layout: Layout
    f: None = None
    exact: bool = eqx.field(static=True, default=True)

    def implicit_solve(self, factor, h, h2, b):
        return _substitute(self.layout, factor, b)


def _substitute(layout: Layout, factor, r):
    ropes, platform = factor
    b, p = layout.split(r)
    return layout.join(
        block_elimination.substitute(ropes, b), None if platform is None else p / platform
    )


def _of_ends(layout: Layout, jacobian):
    """For each rope, the two constraint rows of its end, by its coordinates (2, 2, s, m) and by
    those of the platform (2, 3, m)."""
    s, m = layout.count, layout.n_ropes
    blocks = jacobian[:, : 2 * s * m].reshape(m, 2, m, s, 2)
    own = jnp.stack([blocks[j, :, j] for j in range(m)], axis=-1)  # (2, s, 2, m)
    arms = jacobian[:, 2 * s * m :].reshape(m, 2, -1).transpose(1, 2, 0)
    return materialise((own.transpose(0, 2, 1, 3), arms))


class Elimination(eqx.Module):
    """Elimination of the ropes, condensed to their ends, and then of the platform. Fields: the
    factor of `ropes`; the constraint rows by rope coordinates (2, 2, s, m); `arms` (2, 3, m) of the
    platform in columns and in rows; the motion (2, 2, s, m) of ropes under unit pulls at their
    ends; the inverse (2, 2, m) of the constraint rows applied to this motion; and the matrix (3, 3)
    that remains for the platform."""

    layout: Layout
    ropes: block_elimination.Factor
    seen: Float[Array, "2 2 s m"]
    arms: Float[Array, "2 p m"]
    seen_arms: Float[Array, "2 p m"]
    moved: Float[Array, "2 2 s m"]
    inverse: Float[Array, "2 2 m"]
    left: Float[Array, "3 3"] | None

    def __call__(self, b, c):
        ropes, p = self.layout.split(b)
        free = block_elimination.substitute(self.ropes, ropes)
        # pulls: seen y = c - G (free + platform)
        gap = c.reshape(-1, 2).T - jnp.sum(self.seen * free, axis=(1, 2))
        pull = jnp.sum(self.inverse * gap, axis=1)
        x = None
        if self.left is not None:
            # (A_p - J_p^T inverse G_p) x = b_p - J_p^T inverse gap
            x = solve(self.left, p - jnp.sum(pull[:, None] * self.arms, axis=(0, 2)))
            reached = jnp.sum(self.seen_arms * x[:, None], axis=1)
            pull = pull - jnp.sum(self.inverse * reached, axis=1)
        moved = free + jnp.sum(self.moved * pull[:, None, None], axis=0)
        return self.layout.join(moved, x), pull.T.reshape(-1)


class Derivative(eqx.Module):
    """The matrix itself, which derivatives of solutions need."""

    motion: RopeLinearisation
    h: Float[Array, ""]
    h2: Float[Array, ""]
    jacobian: Float[Array, "k n"]
    rows: Float[Array, "k n"]

    def product(self, x, y):
        forces = self.motion.product(self.h, self.h2, x) + vecmat(y, self.jacobian)
        return jnp.concatenate([forces, matvec(self.rows, x)])


class RopeSaddle(eqx.Module):
    """Solver of `[A, J^T; G, 0] [x; y] = [b; c]`, as a function of b and c."""

    whole: Derivative
    elimination: Elimination

    def bare(self) -> Elimination:
        return self.elimination

    def __call__(self, b, c):
        n, fixed = b.shape[0], lax.stop_gradient(self.elimination)
        solved = lambda z: jnp.concatenate(fixed(z[:n], z[n:]))
        z = lax.custom_linear_solve(
            lambda z: self.whole.product(z[:n], z[n:]),
            jnp.concatenate([b, c]),
            lambda _, r: solved(r),
            lambda _, r: jax.linear_transpose(solved, r)(r)[0],
        )
        return z[:n], z[n:]


class RopeSaddlePoint(SaddlePoint):
    """Solver of `[M, J^T; J, 0]`, in the same manner."""

    solver: RopeSaddle

    def solve(self, f, b):
        return self.solver(jnp.zeros_like(self.solver.whole.motion.q) if f is None else f, b)
