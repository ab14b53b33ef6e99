"""Solves with the matrices of a machine: dense by default, faster where a machine has structure."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from ..math.linalg import solve
from .constraints import (
    ConstraintTerms,
    Stabilisation,
    constrained_acceleration,
    constraint_force,
    constraint_jacobian,
    constraint_terms,
)
from .linearisation import Linearisation, linearise_densely
from .saddle import SaddlePoint, SchurComplement, WholeMatrix


class Structure(eqx.Module):
    """Quantities that follow from the equations of `system`, here computed from its mass matrix,
    force and constraints.

    A machine with structure returns a subclass from `System.structure`, with faster methods of the
    same results; `cordax.check_machine` compares them."""

    system: Any

    @property
    def separable(self) -> bool:
        """Whether the acceleration is known to depend on q and t alone (constant mass matrix, no
        damping), as splitting methods require."""
        return False

    @property
    def constraint_pattern(self) -> np.ndarray:
        """Entries of Phi_q that may differ from zero, shape (m, n_v), type bool."""
        return np.ones((self.system.n_constraints, self.system.n_v), bool)

    @property
    def mass_pattern(self) -> np.ndarray:
        """Entries of M that may differ from zero, shape (n_v, n_v), type bool."""
        return np.ones((self.system.n_v, self.system.n_v), bool)

    def fastest_frequency(self) -> float | None:
        """Estimate of the highest angular frequency [rad/s], or None: `simulate` warns if an
        explicit step is too large for it."""
        return None

    def momentum(self, q, v) -> Float[Array, " n"]:
        """`M v`, shape (n_v,)."""
        return self.system.mass_matrix(q) @ v

    def mass_solve(self, q, B) -> Float[Array, "n k"]:
        """`M^-1 B`, shape (n_v, k)."""
        M = self.system.mass_matrix(q)
        return jax.vmap(lambda b: solve(M, b, spd=True), in_axes=1, out_axes=1)(B)

    def acceleration(self, t, q, v, u) -> Float[Array, " n"]:
        """`M^-1 f` of a machine without constraints, shape (n_v,)."""
        return solve(self.system.mass_matrix(q), self.system.total_force(t, q, v, u), spd=True)

    def residual(self, t, q, v, u, a, multipliers) -> Float[Array, " n"]:
        """`M a + Phi_q^T lambda - f` for accelerations and multipliers, shape (n_v,)."""
        left = self.momentum(q, a) - self.system.total_force(t, q, v, u)
        if multipliers.shape[0] == 0:
            return left
        return left - constraint_force(self.system, t, q, multipliers)

    def constraint_terms(self, t, q, v) -> ConstraintTerms:
        """Constraints, their Jacobian, rate and bias; by automatic differentiation."""
        return constraint_terms(self.system, t, q, v)

    def equations(
        self, t, q, v, u
    ) -> tuple[Float[Array, "n n"], Float[Array, " n"], ConstraintTerms]:
        """Mass matrix (n_v, n_v), total force (n_v,) and constraint terms."""
        f = self.system.total_force(t, q, v, u)
        return self.system.mass_matrix(q), f, self.constraint_terms(t, q, v)

    def saddle(self, t, q, active=None, *, jacobian=None) -> SaddlePoint:
        """Solver of `[M J^T; J 0] [x; lam] = [f; b]`, J the Jacobian of the constraints, for
        accelerations, velocity jumps and projections. `active`, shape (m,), 1 or 0: the active
        rows, or None for all; `jacobian`: J if the caller has computed it.

        It uses the Schur complement of M if `System.mass_is_regular`, else pivoted elimination."""
        J = constraint_jacobian(self.system, t, q) if jacobian is None else jacobian
        if self.system.mass_is_regular:
            return SchurComplement.of(self, q, J, active)
        return WholeMatrix(self.system.mass_matrix(q), J, active)

    def constrained_acceleration(
        self, t, q, v, u, stabilisation: Stabilisation
    ) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Acceleration, shape (n_v,), and multipliers, shape (m,), of the index-1 equations."""
        return constrained_acceleration(self, t, q, v, u, stabilisation)

    def linearise(
        self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True
    ) -> Linearisation:
        """Linearise the equations at a state: force, mass matrix and derivatives of the residual
        `M(q) a + Phi_q^T lambda - f`, by automatic differentiation.

        - `acceleration` (n_v,): acceleration for d(M a)/dq; None: the mass matrix is frozen;
        - `multipliers` (m,): multipliers for d(Phi_q^T lambda)/dq; None: this term is omitted;
        - `hold`: whether held forces are frozen instead of differentiated.

        A machine whose result omits a requested part sets `Linearisation.exact` to False."""
        return linearise_densely(
            self, t, q, v, u, acceleration=acceleration, multipliers=multipliers, hold=hold
        )
