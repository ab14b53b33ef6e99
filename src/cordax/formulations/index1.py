"""The constraints differentiated twice: accelerations and multipliers from one linear system."""

from jaxtyping import Array, Float

from .._base.checks import require_positive
from .._base.fields import setting_field
from .._base.precision import float_field
from ..mechanics.constraints import Stabilisation
from ..mechanics.linearisation import StabilisedLinearisation
from ..mechanics.saddle import LeastSquares
from .constrained import Constrained


class Baumgarte(Constrained):
    """Index-1 equations with Baumgarte's stabilisation, `d2Phi/dt2 + 2 alpha dPhi/dt + beta^2 Phi =
    0`; `alpha`, `beta` [1/s].

    Errors of the constraints decay within about 1/alpha; an explicit method needs `alpha dt` below
    about 1. With both zero the constraints are only differentiated, and drift with the error of the
    integrator. Redundant constraints end a run with `singular_constraints`."""

    alpha: Float[Array, ""] = float_field(unit="1/s", default=10.0)
    beta: Float[Array, ""] = float_field(unit="1/s", default=10.0)
    #: rows that act, shape (m,); None: all. Set by `Unilateral`.
    active: Float[Array, " m"] | None = float_field(checked=False, default=None)
    switches_rows = True

    def __check_init__(self):
        require_positive("alpha", self.alpha, zero_allowed=True)
        require_positive("beta", self.beta, zero_allowed=True)

    def acceleration(self, system, t, q, v, u):
        stabilisation = Stabilisation(self.alpha, self.beta, self.active)
        return system.structure().constrained_acceleration(t, q, v, u, stabilisation)

    def linearise(self, system, t, q, v, u):
        """With the machine's own solve, and the stiffness of the constraint forces at their present
        size; the accelerations differentiated where rows are switched off."""
        if self.active is not None:
            return super().linearise(system, t, q, v, u)
        phi, jacobian, rate, bias = system.structure().constraint_terms(t, q, v)
        multipliers = self.acceleration(system, t, q, v, u)[1]
        motion = system.structure().linearise(t, q, v, u, multipliers=multipliers, hold=False)
        stiffening = self.beta**2
        wanted = -bias - 2.0 * self.alpha * rate - stiffening * phi
        return StabilisedLinearisation(motion, wanted, jacobian, self.alpha, stiffening)  # pyright: ignore[reportCallIssue]


class UdwadiaKalaba(Constrained):
    """The equation of Udwadia and Kalaba, `a = a0 + M^-1/2 (Phi_q M^-1/2)^+ (b - Phi_q a0)`, with
    a0 = M^-1 f and b as in `Baumgarte`.

    The pseudo-inverse takes redundant constraints: accelerations are unique, and multipliers are
    the smallest ones in the least-squares sense. A singular value decomposition in every
    evaluation makes it slower than `Baumgarte`, with which it agrees where rows are
    independent. A singular M is made positive definite by the constraints
    first. `tolerance`: singular values below it, relative to the largest, count as zero. It is
    raised to ten times the distance from the constraints (coordinates of size 1): a redundant row
    is redundant only as far as the others hold, and what drift leaves of it would lock a
    mechanism."""

    alpha: Float[Array, ""] = float_field(default=10.0)
    beta: Float[Array, ""] = float_field(default=10.0)
    tolerance: float = setting_field(default=1e-9)
    accepts_redundant = True

    def __check_init__(self):
        require_positive("alpha", self.alpha, zero_allowed=True)
        require_positive("beta", self.beta, zero_allowed=True)

    def acceleration(self, system, t, q, v, u):
        terms = system.structure().constraint_terms(t, q, v)
        b = -terms.bias - 2.0 * self.alpha * terms.rate - self.beta**2 * terms.phi
        saddle = LeastSquares.of(system, q, terms.jacobian, terms.phi, self.tolerance)
        return saddle.solve(system.total_force(t, q, v, u), b)
