"""Linearised equations of ropes in space: solves along the ropes, then for the platform."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...._jax.materialise import materialise
from ....math.linalg import matvec, solve, vecmat
from ....mechanics.linearisation import ComplementSolver
from ....mechanics.residual_linearisation import ResidualLinearisation
from ....mechanics.saddle import SaddlePoint
from . import chain


class Factor(eqx.Module):
    """Factor of the ropes, and the matrix (12, 12) that remains for the platform, or None. Without
    a platform, the ends are free or `held`."""

    ropes: chain.ChainFactor
    weights: Float[Array, "m 4"] | None
    platform: Float[Array, "12 12"] | None
    held: bool = eqx.field(static=True)

    @staticmethod
    def of(elements, weights, platform, held: bool) -> "Factor":
        """Create the factor from `weights` (m, 4) of the attachments and the matrix (12, 12) of the
        `platform` alone."""
        ropes = chain.factorise(elements)
        if platform is None:
            return Factor(ropes, None, None, held)
        S = jnp.moveaxis(ropes.end, -1, 0)  # (m, 3, 3)
        w = weights[:, :, None, None, None] * weights[:, None, None, :, None]
        seen = jnp.sum(w * S[:, None, :, None, :], axis=0).reshape(12, 12)
        return Factor(ropes, weights, platform + seen, held)

    def begin(self, b, p):
        """Condense the ropes: their solution with fixed ends, and the right-hand side of the ends
        or platform."""
        alone, g = chain.condense(self.ropes, b)
        if self.weights is None:
            return alone, g
        return alone, p + jnp.sum(self.weights[:, :, None] * g.T[:, None], axis=0).reshape(12)

    def finish(self, alone, x):
        """Nodes (3, s, m) for the motion of the ends (3, m) or of the platform (12,)."""
        if self.weights is not None:
            x = jnp.sum(self.weights[..., None] * x.reshape(4, 3), axis=1).T
        return chain.substitute(self.ropes, alone, x)

    def ends(self, g):
        """Motion of the rope ends without a platform, shape (3, m)."""
        return jnp.zeros_like(g) if self.held else chain.apply(chain.inverse(self.ropes.end), g)


class SpatialRopeLinearisation(ResidualLinearisation):
    """Linearisation of a spatial rope robot; linear systems are solved along the ropes
    (`chain`)."""

    def factorise(self, h, h2) -> Factor:
        robot = self.robot
        x = materialise(robot.segments(self.q, self.v, self.a))
        elements = chain.motion_elements(robot.ropes(), x, h, h2)
        held = robot.end_point is not None
        if robot.platform is None:
            return Factor.of(elements, None, None, held)
        q, v, a = (robot.split(z)[1] for z in (self.q, self.v, self.a))
        body = lambda z: robot.body_residual(q + h2 * z, v + h * z, a + z, self.u, self.pull)
        alone = jax.jacfwd(body)(jnp.zeros(12, q.dtype))
        return Factor.of(elements, robot.weights(), alone, held)

    def implicit_solve(self, factor, h, h2, b):
        return solve_ropes(self.robot, factor, lambda x: self.product(h, h2, x), b)

    def constrained_solver(self, jacobian, h, h2=None, rows=None):
        h2 = h * h if h2 is None else h2
        if self.robot.platform is None:  # no constraints
            return ComplementSolver(self.implicit_solver(h, h2), jacobian, rows)
        rows = jacobian if rows is None else rows
        factor = lax.stop_gradient(self).factorise(*lax.stop_gradient((h, h2)))
        saddle = _saddle_matrix(*lax.stop_gradient((factor, jacobian, rows)))
        return SpatialRopeSaddle(self, h, h2, jacobian, rows, materialise(factor), saddle)


def solve_ropes(robot, factor: Factor, product, b, symmetric: bool = False):
    """Solve `A x = b`, where `product(x)` is A x."""
    factor = lax.stop_gradient(factor)

    def alone(r):
        nodes, p = robot.split(r)
        ropes, g = factor.begin(robot.with_ends(nodes), p)
        if factor.platform is None:
            return robot.join(factor.finish(ropes, factor.ends(g)))
        x = solve(factor.platform, materialise(g))
        return robot.join(factor.finish(ropes, x), x)

    back = lambda _, r: jax.linear_transpose(alone, r)(r)[0]
    return lax.custom_linear_solve(product, b, lambda _, r: alone(r), back, symmetric=symmetric)


def _saddle_matrix(factor: Factor, jacobian, rows):
    """Matrix (18, 18) of the platform with the rigidity of its body, the only constraints."""
    J, G = jacobian[:, -12:], rows[:, -12:]
    zero = jnp.zeros((J.shape[0], J.shape[0]), J.dtype)
    return materialise(jnp.block([[factor.platform, J.T], [G, zero]]))


class SpatialRopeSaddle(eqx.Module):
    """Solver of `[A, J^T; G, 0] [x; y] = [b; c]`: ropes are condensed to their ends, then the
    platform is solved for."""

    motion: Any
    h: Float[Array, ""]
    h2: Float[Array, ""]
    jacobian: Float[Array, "k n"]
    rows: Float[Array, "k n"]
    factor: Factor
    matrix: Float[Array, "l l"]

    def __call__(self, b, c):
        n, robot = b.shape[0], self.motion.robot
        J, G = self.jacobian[:, -12:], self.rows[:, -12:]

        def product(z):
            x, y = z[:n], z[n:]
            forces = self.motion.product(self.h, self.h2, x)
            forces = forces.at[-12:].add(vecmat(y, J))
            return jnp.concatenate([forces, matvec(G, x[-12:])])

        factor, matrix = lax.stop_gradient((self.factor, self.matrix))

        def solved(z):
            nodes, p = robot.split(z[:n])
            ropes, p = factor.begin(robot.with_ends(nodes), p)
            x = solve(matrix, materialise(jnp.concatenate([p, z[n:]])), pivoted=True)
            return jnp.concatenate([robot.join(factor.finish(ropes, x[:12]), x[:12]), x[12:]])

        back = lambda _, r: jax.linear_transpose(solved, r)(r)[0]
        z = jnp.concatenate([b, c])
        z = lax.custom_linear_solve(product, z, lambda _, r: solved(r), back)
        return z[:n], z[n:]


class MassMatrix(eqx.Module):
    """Mass matrix of `[M, J^T; J, 0]` as a linearisation without motion."""

    robot: Any
    q: Float[Array, " n"]

    def product(self, h, h2, x):
        return self.robot.momentum(self.q, x)


class SpatialRopeSaddlePoint(SaddlePoint):
    """Solver of `[M, J^T; J, 0]`, in the same manner."""

    solver: SpatialRopeSaddle

    @staticmethod
    def of(robot, q, jacobian) -> "SpatialRopeSaddlePoint":
        factor, J = lax.stop_gradient((robot.mass_factor(q), jacobian))
        zero = jnp.zeros((), q.dtype)
        matrix = _saddle_matrix(factor, J, J)
        motion = MassMatrix(robot, q)
        return SpatialRopeSaddlePoint(
            SpatialRopeSaddle(motion, zero, zero, jacobian, jacobian, materialise(factor), matrix)
        )

    def solve(self, f, b):
        return self.solver(jnp.zeros_like(self.solver.motion.q) if f is None else f, b)
