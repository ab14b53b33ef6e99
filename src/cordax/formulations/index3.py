"""Index-3 equations, for integrators that solve the constraints."""

from jaxtyping import Array, Float

from .._base.precision import float_field
from ..mechanics.linearisation import SaddleLinearisation
from .index1 import Baumgarte


class Index3(Baumgarte):
    """The index-3 equations `M a = f - Phi_q^T lambda`, `Phi = 0`, not differentiated: for
    `GeneralisedAlpha` and `LinearlyImplicitEuler`, which solve the constraints in every step.

    Reported multipliers are those of the index-1 form at the stored state."""

    alpha: Float[Array, ""] = float_field(default=0.0)
    beta: Float[Array, ""] = float_field(unit="1/s", default=0.0)
    keeps_constraints = True
    switches_rows = False

    def linearise(self, system, t, q, v, u):
        phi, jacobian, rate, _ = system.structure().constraint_terms(t, q, v)
        # the stiffness of the constraint forces (a pendulum has no other) at their present size
        multipliers = self.acceleration(system, t, q, v, u)[1]
        motion = system.structure().linearise(t, q, v, u, multipliers=multipliers, hold=False)
        return SaddleLinearisation(  # pyright: ignore[reportCallIssue]
            motion, phi, jacobian, rate, multipliers
        )
