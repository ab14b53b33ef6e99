"""Common part of the formulations for constrained machines."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from .._jax.materialise import materialise
from .._jax.program_cache import kept_filter_jit
from ..mechanics import DenseLinearisation, State
from ..mechanics.constraints import constraint_jacobian, velocity_on_constraints
from ..mechanics.saddle import LeastSquares, SaddlePoint
from .base import Formulation, require_regular


class Constrained(Formulation):
    """A formulation that turns constraints into accelerations."""

    accepts_redundant: ClassVar[bool] = False

    def check(self, system):
        """All machines are supported, also those without constraints."""
        require_regular(system)

    def linearise(self, system, t, q, v, u):
        """The accelerations differentiated as they stand, multipliers, stabilisation and held
        forces included: `1 a = a(q, v)`, an ordinary differential equation."""
        n = system.n_v

        def a(z):
            a, _ = self.acceleration(system, t, system.retract(q, z[:n]), v + z[n:], u)
            return a, a

        J, a0 = materialise(jax.jacfwd(a, has_aux=True)(jnp.zeros(2 * n, v.dtype)))
        return DenseLinearisation(M=jnp.eye(n, dtype=v.dtype), f=a0, K=J[:, :n], D=J[:, n:])

    @kept_filter_jit  # called between runs: one program instead of hundreds of small ones
    def enter(self, system, t, state):
        if system.n_constraints == 0:
            return state
        saddle = self.saddle(system, t, state.q)
        return State(state.q, velocity_on_constraints(system, t, state.q, state.v, saddle)[0])

    def saddle(self, system, t, q) -> SaddlePoint:
        """Saddle-point solver for the impulses of newly joined bodies; a least-squares solution if
        rows may be redundant."""
        if not self.accepts_redundant:
            return system.structure().saddle(t, q)
        return LeastSquares.of(
            system, q, constraint_jacobian(system, t, q), system.constraint(t, q)
        )
