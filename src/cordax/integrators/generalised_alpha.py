"""The generalised-alpha method on the index-3 equations."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._checks import known_values, require
from .._precision import float_field
from .._results import Code, code_unless
from ..math.newton import Correction, newton
from ..mechanics import State
from ..mechanics.constraints import constraint_force
from .base import Integrator, Step, linearisation_is_exact


class GeneralisedAlpha(Integrator):
    """Chung and Hulbert's method (1993) in the form of Arnold and Brüls (2007) for constrained
    machines: the constraints themselves, not their derivatives, hold at the end of every step.

    Order 2; `rho`, from 0 to 1, is what is left of the fastest oscillations after a step: 1 keeps
    them all, 0 damps them at once. Newton's method stops at `tolerance`; its derivative is that of
    the implicit function. Inputs are evaluated at the end of the step."""

    rho: Float[Array, ""] = float_field(default=0.8)
    tolerance: float = eqx.field(static=True, default=1e-10)
    max_iterations: int = eqx.field(static=True, default=20)

    order = 2
    explicit = False
    self_starting = False
    solves_constraints = "needed"

    def __check_init__(self):
        rho = known_values(self.rho)
        require(rho is None or bool(0 <= rho <= 1), "rho", self.rho, "a number from 0 to 1")

    def init(self, dynamics, t, dt, state, u):
        inputs = u(t, state.q, state.v)
        if linearisation_is_exact(dynamics, t, state, u):
            # That of an implicit Euler step, which differs by O(dt): a start a little off the
            # balance of stiff forces has accelerations that would throw the first step far off.
            motion = dynamics.linearise(t, state.q, state.v, inputs)
            a = motion.implicit_solver(dt)(motion.f + dt * motion.stiffness(state.v))
        else:
            a = dynamics.acceleration(t, state.q, state.v, inputs)
        return a, a, dynamics.multipliers(t, state.q, state.v, inputs), inputs

    def step(self, dynamics, t, dt, state, u, carry):
        system = dynamics.system
        q, v, n = state.q, state.v, state.v.shape[0]
        a, smooth, multipliers, before = carry
        # Inputs that have jumped since the last step take the accelerations with them; left to the
        # method, a held input would act up to a step late.
        accelerate = lambda inputs: dynamics.acceleration(t, q, v, inputs)
        both = lax.map(accelerate, jnp.stack([u(t, q, v), before]))  # compiled once
        jump = both[0] - both[1]
        a, smooth = a + jump, smooth + jump
        mean_a, mean_f = (2.0 * self.rho - 1.0) / (self.rho + 1.0), self.rho / (self.rho + 1.0)
        gamma = 0.5 + mean_f - mean_a
        beta = 0.25 * (gamma + 0.5) ** 2

        def end(new, args):
            """State and algorithmic acceleration at the end for an acceleration there."""
            q, v, a, smooth, h = args
            next_smooth = ((1.0 - mean_f) * new + mean_f * a - mean_a * smooth) / (1.0 - mean_a)
            dq = h * v + h * h * ((0.5 - beta) * smooth + beta * next_smooth)
            dv = h * ((1.0 - gamma) * smooth + gamma * next_smooth)
            return system.retract(q, dq), v + dv, next_smooth

        def residual(x, args):
            system, t, h, u, now = args
            new, lam = x[:n], x[n:]
            q, v, _ = end(new, (*now, h))
            f = system.total_force(t, q, v, u(t, q, v)) + constraint_force(system, t, q, lam)
            # constraints over h^2 beta weigh like accelerations, at every step size
            phi = system.constraint(t, q) / (beta * h * h)
            return jnp.concatenate([system.momentum(q, new) - f, phi])

        # d(residual)/d(new) = M - h_v D - h_q K
        share = (1.0 - mean_f) / (1.0 - mean_a)

        def linearise(x, args):
            system, t, h, u, now = args
            q, v, _ = end(x, (*now, h))
            motion = system.linearise(t, q, v, u(t, q, v))
            return motion.implicit_solver(gamma * share * h, beta * share * h * h)

        known = Correction(linearise, lambda solve, r: solve(r))
        now = (q, v, a, smooth)
        guess = jnp.concatenate([a, multipliers])
        # round-off of the constraints, over h^2, is all that accelerations can be solved to
        floor = 64.0 * jnp.finfo(q.dtype).eps / (dt * dt)
        x, solved = newton(
            residual,
            guess,
            (system, t + dt, dt, u, now),
            tolerance=jnp.maximum(self.tolerance, floor),
            max_iterations=self.max_iterations,
            correction=known if linearisation_is_exact(dynamics, t, state, u) else None,
        )
        q, v, smooth = end(x[:n], (*now, dt))
        code = code_unless(solved, Code.NEWTON_NOT_CONVERGED)
        return Step(State(q, v), (x[:n], smooth, x[n:], u(t + dt, q, v)), code, multipliers)

    def growth(self, eigenvalue_dt):
        """Spectral radius of the amplification matrix on the oscillator with this eigenvalue."""
        rho, z = float(self.rho), complex(eigenvalue_dt)
        mean_a, mean_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 + mean_f - mean_a
        beta = 0.25 * (gamma + 0.5) ** 2
        k, c = abs(z) ** 2, -2.0 * z.real  # of x'' = -k x - c x', in steps
        end = [
            [1.0, 0.0, -beta],
            [0.0, 1.0, -gamma],
            [(1.0 - mean_f) * k, (1.0 - mean_f) * c, 1.0 - mean_a],
        ]
        start = [
            [1.0, 1.0, 0.5 - beta],
            [0.0, 1.0, 1.0 - gamma],
            [-mean_f * k, -mean_f * c, -mean_a],
        ]
        return float(np.max(np.abs(np.linalg.eigvals(np.linalg.solve(end, start)))))
