"""Solves and linearisation of ropes in space in O(s)."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from ...._jax.materialise import materialise
from ....mechanics.constraints import ConstraintTerms
from ....mechanics.residual_linearisation import ResidualStructure
from ...cable_robot.block_solve import rigidity_terms
from .linearisation import SpatialRopeLinearisation, SpatialRopeSaddlePoint, solve_ropes

if TYPE_CHECKING:
    from .robot import SpatialRopeRobot


class SpatialRopeStructure(ResidualStructure):
    """Structure of `SpatialRopeRobot`."""

    system: "SpatialRopeRobot"

    def mass_solve(self, q, B):
        factor = materialise(self.system.mass_factor(q))
        product = lambda x: self.system.momentum(q, x)
        one = lambda b: solve_ropes(self.system, factor, product, b, symmetric=True)
        return jax.vmap(one, in_axes=1, out_axes=1)(B)

    def acceleration(self, t, q, v, u):
        return self.mass_solve(q, self.system.force(t, q, v, u)[:, None])[:, 0]

    def constraint_terms(self, t, q, v) -> ConstraintTerms:
        if self.system.platform is None:
            return super().constraint_terms(t, q, v)
        phi, J, rate, bias = rigidity_terms(q[-12:], v[-12:], self.system.platform.gram)
        J = jnp.pad(J, ((0, 0), (self.system.n_q - 12, 0)))
        return materialise(ConstraintTerms(phi, J, rate, bias))

    def saddle(self, t, q, active=None, *, jacobian=None):
        if active is not None or self.system.platform is None:
            return super().saddle(t, q, active, jacobian=jacobian)
        J = (
            self.constraint_terms(t, q, jnp.zeros_like(q)).jacobian
            if jacobian is None
            else jacobian
        )
        return SpatialRopeSaddlePoint.of(self.system, q, J)

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        motion = SpatialRopeLinearisation.about(self.system, t, q, v, u, acceleration, multipliers)
        return motion.dense() if self.system.contact else motion
