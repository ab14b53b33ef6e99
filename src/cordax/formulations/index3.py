"""The constraints as they stand, for integrators that solve them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._precision import float_field
from ..math.linalg import matvec, solve
from ..math.materialise import materialise
from ..mechanics import Linearisation
from ..mechanics.constraints import ConstraintTerms, constraint_force
from .index1 import Baumgarte


class SaddleLinearisation(Linearisation):
    """A linearly implicit step under constraints: `implicit_solve` returns the velocity change that
    also brings the linearised constraints to zero at the end of the step."""

    M: Float[Array, "n n"]
    f: Float[Array, " n"]
    K: Float[Array, "n n"]
    D: Float[Array, "n n"]
    terms: ConstraintTerms

    def stiffness(self, x):
        return matvec(self.K, x)

    def inertia(self, x):
        return matvec(self.M, x)

    def implicit_solve(self, factor, h, h2, b):
        # Phi + h (dPhi/dt + Phi_q dv) = 0 at the end of the step; the multiplier is an impulse
        phi, J, rate, _ = self.terms
        m = phi.shape[0]
        A = jnp.block([[self.M - h * self.D - h2 * self.K, J.T], [J, jnp.zeros((m, m))]])
        x = solve(*materialise((A, jnp.concatenate([b, -rate - phi / h]))))
        return x[: b.shape[0]]

    def matrices(self):
        return self.M, self.K, self.D


class Index3(Baumgarte):
    """The index-3 equations `M a = f - Phi_q^T lambda`, `Phi = 0`, not differentiated: for
    `GeneralisedAlpha` and `LinearlyImplicitEuler`, which solve the constraints in every step.

    Reported multipliers are those of the index-1 form at the stored state."""

    alpha: Float[Array, ""] = float_field(default=0.0)
    beta: Float[Array, ""] = float_field(default=0.0)

    def linearise(self, system, t, q, v, u):
        n = system.n_v
        terms = system.constraint_terms(t, q, v)
        # the stiffness of the constraint forces (a pendulum has no other) at their present size
        multipliers = self.acceleration(system, t, q, v, u)[1]

        def force(z):
            moved = system.retract(q, z[:n])
            f = system.total_force(t, moved, v + z[n:], u)
            return f + constraint_force(system, t, moved, multipliers), f

        J, f = materialise(jax.jacfwd(force, has_aux=True)(jnp.zeros(2 * n, v.dtype)))
        return SaddleLinearisation(system.mass_matrix(q), f, J[:, :n], J[:, n:], terms)
