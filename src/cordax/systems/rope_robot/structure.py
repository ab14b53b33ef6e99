"""Accelerations, solves and linearisation of ropes in O(s)."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from ..._jax.materialise import materialise
from ...mechanics.constraints import ConstraintTerms
from ...mechanics.residual_linearisation import ResidualStructure
from . import ends, forward
from .linearisation import RopeLinearisation, RopeSaddlePoint

if TYPE_CHECKING:
    from .robot import RopeRobot


class RopeStructure(ResidualStructure):
    """Structure of `RopeRobot`."""

    system: "RopeRobot"

    def constraint_terms(self, t, q, v) -> ConstraintTerms:
        if not self.system.n_constraints:
            return super().constraint_terms(t, q, v)
        _, x = self.system.motion(q, v)
        return materialise(ends.terms(self.system.roots, x, self.system.holding(t, q, v)))

    def acceleration(self, t, q, v, u):
        return self._accelerations(t, q, v, u, None)[0]

    def constrained_acceleration(self, t, q, v, u, stabilisation):
        if stabilisation.active is not None:
            return super().constrained_acceleration(t, q, v, u, stabilisation)
        return self._accelerations(t, q, v, u, stabilisation)

    def _accelerations(self, t, q, v, u, stabilisation):
        seg, x = self.system.motion(q, v)
        x = materialise(x)
        elastic = self.system.elastic_rows(seg, x) - self.system._touched(q, v)
        c = forward.condense(seg, x, -elastic, self.system.gravity)
        if not self.system.n_constraints:
            end = forward.sym(forward.sym_inverse(c.stiff), c.push - self.system.tip(u))
            return self.system.join(forward.substitute(seg, x, c, end)), jnp.zeros(0, q.dtype)
        held, push = self.system.holding(t, q, v), self.system.platform_push(u)
        end, a, pull = ends.close(self.system.roots, x, c, held, stabilisation, push)
        return self.system.join(forward.substitute(seg, x, c, end), a), pull.T.reshape(-1)

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        motion = RopeLinearisation.about(self.system, t, q, v, u, acceleration, multipliers)
        return motion.dense() if self.system.contact else motion

    def mass_solve(self, q, B):
        rest = jnp.zeros_like(q)
        zero, u = jnp.zeros((), q.dtype), jnp.zeros(self.system.n_u, q.dtype)
        at = RopeLinearisation.about(self.system, zero, q, rest, u)
        return jax.vmap(at.implicit_solver(jnp.zeros((), q.dtype)), in_axes=1, out_axes=1)(B)

    def saddle(self, t, q, active=None, *, jacobian=None):
        if active is not None or not self.system.n_constraints:
            return super().saddle(t, q, active, jacobian=jacobian)
        rest, zero = jnp.zeros_like(q), jnp.zeros((), q.dtype)
        J = self.constraint_terms(t, q, rest).jacobian if jacobian is None else jacobian
        u = jnp.zeros(self.system.n_u, q.dtype)
        motion = RopeLinearisation.about(self.system, t, q, rest, u)
        return RopeSaddlePoint(motion.constrained_solver(J, zero))
