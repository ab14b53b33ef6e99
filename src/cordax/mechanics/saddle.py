"""Saddle-point equations of constrained machines: `[M J^T; J 0] [x; lam] = [f; b]`, J the Jacobian
of the constraints.

Accelerations are the solution for (force, J a from the acceleration-level constraints), velocity
jumps for (0, -dPhi/dt), projections for (0, -Phi). Only the whole matrix must be regular, not M:
constraints may hold massless parts.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jax.materialise import materialise
from ..math.complementarity import masked_solve
from ..math.linalg import gram, matmul, matvec, pseudo_inverse, solve, vecmat

#: allowed difference of redundant rows per distance from the constraints: the correction of all
#: rows is a few times that of one row, and directions turn by about as much as coordinates move
DRIFT_MARGIN = 10.0
#: relative singular values above this are never attributed to drift
MOST_DRIFT = 1e-3


class SaddlePoint(eqx.Module):
    """Saddle-point matrix at one configuration, with the data that its solutions share. A machine
    whose structure allows a special elimination returns a subclass from `Structure.saddle`."""

    @abc.abstractmethod
    def solve(self, f, b) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Solve for x, shape (n_v,), and lam, shape (m,), with `f`, shape (n_v,), or None for zero,
        and `b`, shape (m,). Inactive rows have lam = 0. The result is NaN if the active rows are
        linearly dependent."""


class SchurComplement(SaddlePoint):
    """Solution by the Schur complement `J M^-1 J^T`, for a regular M with
    `Structure.mass_solve`."""

    structure: Any
    q: Float[Array, " n_q"]
    J: Float[Array, "m n"]
    W: Float[Array, "n m"]
    A: Float[Array, "m m"]
    active: Float[Array, " m"] | None

    @staticmethod
    def of(structure, q, J, active=None) -> "SchurComplement":
        W = materialise(structure.mass_solve(q, J.T))
        return SchurComplement(structure, q, J, W, matmul(J, W), active)

    def solve(self, f, b):
        if f is None:
            lam = solve_active(self.A, -b, self.active)
            return -matvec(self.W, lam), lam
        free = materialise(self.structure.mass_solve(self.q, f[:, None])[:, 0])
        lam = solve_active(self.A, matvec(self.J, free) - b, self.active)
        return free - matvec(self.W, lam), lam


class WholeMatrix(SaddlePoint):
    """Solution by pivoted elimination of the whole matrix; M may be singular."""

    M: Float[Array, "n n"]
    J: Float[Array, "m n"]
    active: Float[Array, " m"] | None

    def solve(self, f, b):
        n, m = self.M.shape[0], b.shape[0]
        J, idle = self.J, jnp.zeros(m, b.dtype)
        if self.active is not None:
            J, b, idle = J * self.active[:, None], b * self.active, 1.0 - self.active
        f = jnp.zeros(n, b.dtype) if f is None else f
        A = whole_matrix(self.M, J, idle)
        x = solve(*materialise((A, jnp.concatenate([f, b]))), pivoted=True, symmetric=True)
        return x[:n], x[n:]


def whole_matrix(M, J, idle=None) -> Float[Array, "k k"]:
    """Matrix `[M J^T; J 0]`, with `idle` (m,) on the diagonal: 1 for inactive rows."""
    m = J.shape[0]
    corner = jnp.zeros((m, m), M.dtype) if idle is None else jnp.diag(idle)
    return jnp.concatenate(
        [jnp.concatenate([M, J.T], axis=1), jnp.concatenate([J, corner], axis=1)]
    )


class LeastSquares(SaddlePoint):
    """Solution for constraints that may be redundant: `J x = b` in the least-squares sense with the
    smallest multipliers, by a singular value decomposition. `tolerance`: singular values below it,
    relative to the largest, count as zero."""

    M: Float[Array, "n n"]
    J: Float[Array, "m n"]
    tolerance: Float[Array, ""]
    regular: bool = eqx.field(static=True)

    @staticmethod
    def of(system, q, J, phi, tolerance: float = 1e-9) -> "LeastSquares":
        """Solver at a configuration with constraint errors `phi` (m,). Redundant rows differ away
        from the constraints, so the tolerance is at least in proportion to that distance, up to the
        drift that a run may have."""
        drift = jnp.minimum(DRIFT_MARGIN * _distance(J, phi), MOST_DRIFT)
        least = jnp.maximum(tolerance, lax.stop_gradient(drift))
        return LeastSquares(system.mass_matrix(q), J, least, system.mass_is_regular)

    def solve(self, f, b):
        M, J = self.M, self.J
        f = jnp.zeros(M.shape[0], b.dtype) if f is None else f
        if not self.regular:
            # has no effect if J x = b, and makes the matrix positive definite
            weights = row_weights(M, J)
            M, f = M + gram(J * weights[:, None], J), f + vecmat(weights * b, J)
        # Any factor of M can replace its square root: with M = C C^T, J C^-T =: B has the same
        # pseudo-inverse up to a rotation that cancels. Rows are scaled so that the tolerance does
        # not depend on their units.
        C = jnp.linalg.cholesky(M)
        B = lax.linalg.triangular_solve(C, J.T, left_side=True, lower=True).T
        size = jnp.linalg.norm(B, axis=1)
        scale = 1.0 / jnp.where(size > 0, size, 1.0)
        inverse = pseudo_inverse(B * scale[:, None], self.tolerance)
        half = lax.linalg.triangular_solve(C, f[:, None], left_side=True, lower=True)[:, 0]
        push = inverse @ (scale * (b - B @ half))
        x = lax.linalg.triangular_solve(
            C, (half + push)[:, None], left_side=True, lower=True, transpose_a=True
        )[:, 0]
        return x, -scale * (inverse.T @ push)


def _distance(J, phi):
    """Distance from the constraints, for coordinates of size 1: the largest correction by a single
    row."""
    size = jnp.linalg.norm(J, axis=1)
    return jnp.max(jnp.abs(phi) / jnp.where(size > 0, size, 1.0), initial=0.0)


def solve_active(A, b, active=None):
    """Solve `A x = b` for symmetric positive definite A without inactive rows (x = 0 there).

    If A is singular the result is NaN, never a large number: see `math.linalg.solve`.
    """
    if b.shape[0] == 0:  # a machine without constraints
        return b
    if active is not None:
        return masked_solve(A, b, active)
    return solve(*materialise((A, b)), spd=True, nan_if_singular=True)


def row_weights(M, J) -> Float[Array, " m"]:
    """Approximate effective mass of each constraint row: weights w that make `M + J^T w J` well
    scaled, and positive definite if the saddle-point matrix is regular."""
    own = jnp.diagonal(M)
    own = jnp.maximum(own, 1e-3 * jnp.max(own))
    size = jnp.sum(J * J / own, axis=1)
    return 1.0 / jnp.where(size > 0, size, 1.0)
