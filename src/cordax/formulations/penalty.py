"""Augmented mass matrix: constraints as stiff springs with large inertia."""

from jaxtyping import Array, Float

from .._base.checks import require_positive
from .._base.precision import float_field
from .._jax.materialise import materialise
from ..math.linalg import gram, matvec, solve, vecmat
from .constrained import Constrained


class Penalty(Constrained):
    """The augmented mass matrix of Bayo, García de Jalón and Serna (1988), as in Piva, Richiedei
    and Trevisani (2024), eq. (21):

        (M + alpha Phi_q^T Phi_q) a = f - alpha Phi_q^T (bias + 2 xi omega dPhi/dt + omega^2 Phi)

    `alpha` [the unit of mass over that of Phi_q squared], `xi` [-], `omega` [1/s]. Runs through
    singular positions and redundant rows; positions and tensions are off by order 1/alpha. Needs
    float64: the matrix is conditioned like alpha."""

    alpha: Float[Array, ""] = float_field(default=1e8)
    xi: Float[Array, ""] = float_field(unit="-", default=1.0)
    omega: Float[Array, ""] = float_field(unit="1/s", default=1e2)
    accepts_redundant = True

    def __check_init__(self):
        require_positive("alpha", self.alpha)
        require_positive("xi", self.xi, zero_allowed=True)
        require_positive("omega", self.omega, zero_allowed=True)

    def acceleration(self, system, t, q, v, u):
        phi, J, rate, bias = system.structure().constraint_terms(t, q, v)
        pull = bias + 2.0 * self.xi * self.omega * rate + self.omega**2 * phi
        f = system.total_force(t, q, v, u) - self.alpha * vecmat(pull, J)
        A = system.mass_matrix(q) + self.alpha * gram(J, J)
        a = solve(*materialise((A, f)), spd=True)
        return a, self.alpha * (matvec(J, a) + pull)
