"""Implicit Euler and implicit midpoint methods, solved by Newton's method, with derivatives by the
implicit function theorem."""

from typing import ClassVar

import jax.numpy as jnp

from .._base.fields import count_field, setting_field
from .._base.results import Result, code_unless
from ..math.newton import Correction, newton
from ..mechanics import State
from ..mechanics.constraints import constraint_force, velocity_on_constraints
from ..mechanics.linearisation import bare
from .base import Integrator, Report, Step, Traits
from .newton_setup import holds_equations, linearisation_suffices


def _traits(order: int) -> Traits:
    return Traits(
        order=order,
        explicit=False,
        solves_constraints="allowed",
        self_starting=False,
        sees_both_ends=False,
        counts=("newton_iterations",),
    )


class _Implicit(Integrator):
    """Implicit method with one stage. Newton's method solves for the stage velocity w:
    `M (w - v) = c dt (f - Phi_q^T lambda)` at the stage `q + c dt w`, c = 1 (Euler) or 1/2
    (midpoint).

    With `Index3` the constraints hold at the end of the step, and the velocity there is projected
    onto them too. With other formulations the method integrates the constrained accelerations."""

    abscissa: ClassVar[float]
    tolerance: float = setting_field(default=1e-12)
    max_iterations: int = count_field(default=60)

    def init(self, dynamics, t, dt, state, u):
        m = dynamics.system.n_constraints if dynamics.formulation.keeps_constraints else 0
        return state.v, jnp.zeros(m, state.v.dtype)

    def step(self, dynamics, t, dt, state, u, carry):
        """Advance one step. `carry` contains the stage velocity and the multipliers of the previous
        step. They are a better initial guess than its final velocity, in which stiff forces cause
        oscillations."""
        q, v = state.q, state.v
        n, h = v.shape[0], self.abscissa * dt
        known = holds_equations(dynamics) and linearisation_suffices(dynamics, t, state, u)
        guess, multipliers = carry

        def correct(A, r):
            solver, h = A
            x, y = solver(r[:n], r[n:])
            return jnp.concatenate([x, y / h])

        w, solved, iterations = newton(
            self._residual if holds_equations(dynamics) else self._acceleration_residual,
            jnp.concatenate([guess, multipliers]),
            (dynamics, t, h, dt, q, v, u),
            tolerance=self._tolerance(h, q, v, guess),
            max_iterations=self.max_iterations,
            correction=Correction(self._linearise, correct, bare) if known else None,
            measure=lambda x, dx: jnp.max(jnp.abs(dx[:n])),
            radius=jnp.max(jnp.abs(v)) + jnp.max(jnp.abs(guess - v)),
        )
        w, multipliers = w[:n], w[n:]
        q, v = dynamics.retract(q, dt * w), v + (w - v) / self.abscissa
        if multipliers.shape[0]:
            v = velocity_on_constraints(dynamics.system, t + dt, q, v)[0]
        code = code_unless(solved, Result.NEWTON_NOT_CONVERGED)
        report = Report(counts={"newton_iterations": iterations})
        return Step(State(q, v), (w, multipliers), code, report)

    def _tolerance(self, h, q, v, guess):
        """Tolerance on velocities [units of v], relative to their size in this step. Round-off of
        the positions sets its lower bound."""
        eps = jnp.finfo(q.dtype).eps
        size = jnp.maximum(jnp.max(jnp.abs(v)), jnp.max(jnp.abs(guess)))
        floor = 64.0 * eps * (1.0 + jnp.max(jnp.abs(q))) / h
        tolerance = self.tolerance if v.dtype == jnp.float64 else 1e-5
        return jnp.maximum(tolerance * size, floor)

    def _residual(self, x, args):
        dynamics, t, h, dt, q, v, u = args
        system, n = dynamics.system, v.shape[0]
        w, multipliers = x[:n], x[n:]
        stage = system.retract(q, h * w)
        f = system.total_force(t + h, stage, w, u(t + h, stage, w))
        if multipliers.shape[0] == 0:
            return system.structure().momentum(stage, w - v) - h * f
        f = f + constraint_force(system, t + h, stage, multipliers)
        phi = system.constraint(t + dt, system.retract(q, dt * w))
        return jnp.concatenate([system.structure().momentum(stage, w - v) - h * f, phi / dt])

    def _acceleration_residual(self, w, args):
        dynamics, t, h, _, q, v, u = args
        stage = dynamics.retract(q, h * w)
        return w - v - h * dynamics.acceleration(t + h, stage, w, u(t + h, stage, w))

    def _linearise(self, x, args):
        """Solver of `[M - h D - h^2 K, h Phi_q^T; Phi_q, 0]`, with the lower row at the end of the
        step."""
        dynamics, t, h, dt, q, v, u = args
        system, n = dynamics.system, v.shape[0]
        w, multipliers = x[:n], x[n:]
        stage = system.retract(q, h * w)
        motion = system.structure().linearise(
            t + h,
            stage,
            w,
            u(t + h, stage, w),
            acceleration=(w - v) / h,
            multipliers=multipliers,
            hold=False,
        )
        jacobian = lambda t, q: system.structure().constraint_terms(t, q, w).jacobian
        J = jacobian(t + h, stage)
        ahead = None if self.abscissa == 1.0 else jacobian(t + dt, system.retract(q, dt * w))
        return motion.constrained_solver(J, h, h * h, ahead), h


class ImplicitEuler(_Implicit):
    """Implicit Euler method: order 1, L-stable. Inputs and dry friction are evaluated at the end of
    the step."""

    traits = _traits(1)
    abscissa = 1.0

    def growth(self, eigenvalue_dt):
        return 1 / abs(1 - eigenvalue_dt)


class ImplicitMidpoint(_Implicit):
    """Implicit midpoint method: order 2, A-stable, symplectic. It conserves quadratic invariants
    and keeps the energy bounded if the step resolves the motion.

    Not for undamped stiff structures whose fastest vibrations the step does not resolve (metal
    wires at milliseconds). The method keeps all energy of these vibrations, and the rotation of
    stiff directions adds more. The energy grows, however accurately the equations of a step are
    solved. Use `GeneralisedAlpha` instead."""

    traits = _traits(2)
    abscissa = 0.5

    def growth(self, eigenvalue_dt):
        return abs((1 + eigenvalue_dt / 2) / (1 - eigenvalue_dt / 2))
