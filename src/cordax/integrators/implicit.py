"""Implicit Euler and implicit midpoint, solved by Newton's method with the implicit-function
derivative."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from .._results import Code, code_unless
from ..math.newton import Correction, newton
from ..mechanics import State
from .base import Integrator, Step, linearisation_is_exact


class _Implicit(Integrator):
    """Solve for the stage velocity w: `w = v + c dt a(t + c dt, q + c dt w, w)`, c = 1 (Euler) or
    1/2 (midpoint)."""

    abscissa: ClassVar[float]
    explicit = False
    self_starting = False
    tolerance: float = eqx.field(static=True, default=1e-12)
    max_iterations: int = eqx.field(static=True, default=20)

    def init(self, dynamics, t, dt, state, u):
        return state.v

    def step(self, dynamics, t, dt, state, u, carry):
        """`carry`: the stage velocity of the step before, a better guess than the velocity at its
        end, which stiff forces throw to and fro."""
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
            return dynamics.linearise(t + h, stage, w, u(t + h, stage, w)).implicit_solver(h)

        correction = Correction(linearise, lambda solve, r: solve(solve.motion.inertia(r)))
        # velocities can be solved no better than rounded positions tell
        floor = 64.0 * jnp.finfo(q.dtype).eps * jnp.max(jnp.abs(q), initial=0.0) / h
        tolerance = self.tolerance if v.dtype == jnp.float64 else 1e-5
        w, solved = newton(
            residual,
            carry,
            (dynamics, t, h, q, v, u),
            tolerance=jnp.maximum(tolerance, lax.stop_gradient(floor)),
            max_iterations=self.max_iterations,
            correction=correction if linearisation_is_exact(dynamics, t, state, u) else None,
        )
        code = code_unless(solved, Code.NEWTON_NOT_CONVERGED)
        return Step(State(dynamics.retract(q, dt * w), v + (w - v) / self.abscissa), w, code)


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
