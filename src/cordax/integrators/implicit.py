"""Implicit Euler and implicit midpoint, solved by Newton's method with the implicit-function
derivative."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..math.newton import Correction, newton
from ..mechanics import State
from .base import Integrator, Step


class _Implicit(Integrator):
    """Solve for the stage velocity w: `w = v + c dt a(t + c dt, q + c dt w, w)`, c = 1 (Euler) or
    1/2 (midpoint)."""

    abscissa: ClassVar[float]
    explicit = False
    tolerance: float = eqx.field(static=True, default=1e-12)
    max_iterations: int = eqx.field(static=True, default=20)

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v
        h = self.abscissa * dt

        def residual(w, args):
            dynamics, t, h, q, v, u = args
            stage = dynamics.retract(q, h * w)
            return w - v - h * dynamics.acceleration(t + h, stage, w, u(t + h, stage, w))

        # M (w - v) = h f: the Jacobian of the residual is M^-1 (M - h D - h^2 K)
        def linearise(w, args):
            dynamics, t, h, q, _, u = args
            stage = dynamics.retract(q, h * w)
            return dynamics.linearise(t + h, stage, w, u(t + h, stage, w))

        correction = Correction(
            linearise, lambda motion, args, r: motion.implicit_solve(args[2], motion.inertia(r))
        )
        tolerance = self.tolerance if v.dtype == jnp.float64 else 1e-5
        w, solved = newton(
            residual,
            v,
            (dynamics, t, h, q, v, u),
            tolerance=tolerance,
            max_iterations=self.max_iterations,
            correction=correction if dynamics.linearisation_is_exact else None,
        )
        return Step(State(dynamics.retract(q, dt * w), v + (w - v) / self.abscissa), carry, solved)


class ImplicitEuler(_Implicit):
    """Order 1, L-stable. Inputs, and dry friction, are taken at the end of the step."""

    order = 1
    abscissa = 1.0

    def growth(self, eigenvalue_dt):
        return 1 / abs(1 - eigenvalue_dt)


class ImplicitMidpoint(_Implicit):
    """Order 2, A-stable, symplectic: conserves quadratic invariants and keeps energy bounded."""

    order = 2
    abscissa = 0.5

    def growth(self, eigenvalue_dt):
        return abs((1 + eigenvalue_dt / 2) / (1 - eigenvalue_dt / 2))
