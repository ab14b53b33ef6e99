"""The generalised-alpha method on the index-3 equations."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import require_values
from .._base.fields import count_field, setting_field
from .._base.precision import float_field
from .._base.results import Result, code_unless
from ..math.newton import Correction, corrected, newton
from ..mechanics import State
from ..mechanics.linearisation import bare
from .base import Integrator, Report, Step, Traits, as_inputs
from .newton_setup import linearisation_suffices


class GeneralisedAlpha(Integrator):
    """Generalised-alpha method of Chung and Hulbert (1993) in the form of Arnold and Brüls (2007)
    for constrained machines: the constraints themselves, not their derivatives, hold at the end of
    every step.

    Order 2. `rho`, from 0 to 1, is the fraction of the fastest oscillations that remains after a
    step: 1 keeps them all, 0 damps them at once. Above about 0.6, stiff undamped structures that
    turn by a tenth of a radian per step (metal wires at 5 ms) gain energy in vibrations that the
    step does not resolve. Newton's method stops at `tolerance`, relative to the accelerations of
    the step; derivatives follow from the implicit function theorem. Inputs are evaluated at the end
    of the step.

    `corrections`, if given: fixed number of Newton corrections per step, each with a new
    linearisation. One correction preserves order 2; the constraint error is then far below the
    error of the step, but above round-off. If one more correction would be longer than half of the
    last, the run stops as if Newton's method had not converged. Derivatives are those of the
    corrections."""

    rho: Float[Array, ""] = float_field(default=0.5)
    tolerance: float = setting_field(default=1e-10)
    max_iterations: int = count_field(default=60)
    corrections: int | None = count_field(default=None)

    traits = Traits(
        order=2,
        explicit=False,
        self_starting=False,
        solves_constraints="needed",
        counts=("newton_iterations",),
    )

    def __check_init__(self):
        allowed = lambda rho: (rho >= 0) & (rho <= 1)
        require_values("rho", allowed, self.rho, expected="a number from 0 to 1")

    def init(self, dynamics, t, dt, state, u):
        inputs = u(t, state.q, state.v)
        multipliers = None
        if linearisation_suffices(dynamics, t, state, u):
            # Acceleration of a linearly implicit Euler step, which differs by O(dt): an initial
            # state slightly off the equilibrium of stiff forces has accelerations so large that
            # they would spoil the first step.
            motion = dynamics.linearise(t, state.q, state.v, inputs)
            impulse = dt * (motion.f + dt * motion.stiffness(state.v))
            a = motion.implicit_solver(dt)(impulse) / dt
            multipliers = motion.initial_multipliers()
        else:
            a = dynamics.acceleration(t, state.q, state.v, inputs)
        if multipliers is None:
            multipliers = dynamics.multipliers(t, state.q, state.v, inputs)
        return a, a, multipliers, inputs

    def step(self, dynamics, t, dt, state, u, carry):
        q, v, n = state.q, state.v, state.v.shape[0]
        a, smooth, multipliers, before = carry
        a, smooth = self._jump(dynamics, t, state, u, before, a, smooth)
        weights = self._weights()
        now = (q, v, a, smooth)

        def correct(A, r):
            solver, share = A
            return jnp.concatenate(solver(r[:n], r[n:] / share))

        known = linearisation_suffices(dynamics, t, state, u)
        problem = (
            _residual,
            jnp.concatenate([a, multipliers]),
            (dynamics.system, t + dt, dt, u, now, weights),
        )
        options = {
            "tolerance": self._tolerance(dt, q, v, a),
            "correction": Correction(_linearise, correct, bare) if known else None,
            "measure": lambda x, dx: jnp.max(jnp.abs(dx[:n])),
        }
        if self.corrections is None:
            # the acceleration that corresponds to the motion within the step, plus the previous one
            radius = jnp.max(jnp.abs(v)) / (weights.beta * weights.share * dt)
            radius = radius + jnp.max(jnp.abs(a))
            most = self.max_iterations
            x, solved, iterations = newton(*problem, max_iterations=most, radius=radius, **options)
        else:
            x, solved = corrected(*problem, self.corrections, **options)
            iterations = self.corrections
        q, v, smooth = _end(dynamics.system, x[:n], now, dt, weights)
        code = code_unless(solved, Result.NEWTON_NOT_CONVERGED)
        inner = x[:n], smooth, x[n:], u(t + dt, q, v)
        report = Report(multipliers, counts={"newton_iterations": jnp.int32(iterations)})
        return Step(State(q, v), inner, code, report)

    def _weights(self) -> "_Weights":
        mean_a, mean_f = (2.0 * self.rho - 1.0) / (self.rho + 1.0), self.rho / (self.rho + 1.0)
        gamma = 0.5 + mean_f - mean_a
        share = (1.0 - mean_f) / (1.0 - mean_a)
        return _Weights(mean_a, mean_f, gamma, 0.25 * (gamma + 0.5) ** 2, share)

    def _jump(self, dynamics, t, state, u, before, a, smooth):
        """Accelerations corrected for a jump of held inputs since the last step. Without the
        correction the jump would act up to one step late. Inputs that are not held do not jump."""
        if before.shape[0] == 0 or not as_inputs(u).held:
            return a, smooth
        q, v = state.q, state.v
        inputs = u(t, q, v)

        def change():
            accelerate = lambda inputs: dynamics.acceleration(t, q, v, inputs)
            both = lax.map(accelerate, jnp.stack([inputs, before]))  # compiled once
            return both[0] - both[1]

        jump = lax.cond(jnp.any(inputs != before), change, lambda: jnp.zeros_like(a))
        return a + jump, smooth + jump

    def _tolerance(self, dt, q, v, a):
        """Tolerance on accelerations, relative to their size in this step or to |v|/dt if that is
        larger. Its lower bound is the round-off of the positions over dt^2."""
        eps = jnp.finfo(q.dtype).eps
        size = jnp.maximum(jnp.max(jnp.abs(a)), jnp.max(jnp.abs(v)) / dt)
        floor = 64.0 * eps * (1.0 + jnp.max(jnp.abs(q))) / (dt * dt)
        tolerance = self.tolerance if v.dtype == jnp.float64 else 1e-5
        return jnp.maximum(tolerance * size, floor)

    def growth(self, eigenvalue_dt):
        """Spectral radius of the amplification matrix for the oscillator with this eigenvalue."""
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


class _Weights(NamedTuple):
    """Coefficients of the method: weights alpha_m and alpha_f of inertia and forces, Newmark's
    gamma and beta, and the share of a new acceleration in the algorithmic one."""

    mean_a: Float[Array, ""]
    mean_f: Float[Array, ""]
    gamma: Float[Array, ""]
    beta: Float[Array, ""]
    share: Float[Array, ""]


def _end(system, new, now, h, weights: _Weights):
    """State and algorithmic acceleration at the end of the step, from the acceleration `new`
    there."""
    q, v, a, smooth = now
    mean_a, mean_f, gamma, beta, _ = weights
    next_smooth = ((1.0 - mean_f) * new + mean_f * a - mean_a * smooth) / (1.0 - mean_a)
    dq = h * v + h * h * ((0.5 - beta) * smooth + beta * next_smooth)
    dv = h * ((1.0 - gamma) * smooth + gamma * next_smooth)
    return system.retract(q, dq), v + dv, next_smooth


def _residual(x, args):
    system, t, h, u, now, weights = args
    n = system.n_v
    new, multipliers = x[:n], x[n:]
    q, v, _ = _end(system, new, now, h, weights)
    forces = system.structure().residual(t, q, v, u(t, q, v), new, multipliers)
    if multipliers.shape[0] == 0:
        return forces
    # divided by h^2 beta, constraints scale like accelerations at every step size
    phi = system.constraint(t, q) / (weights.beta * h * h)
    return jnp.concatenate([forces, phi])


def _linearise(x, args):
    """Solver of `[M - h_v D - h_q K, Phi_q^T; share Phi_q, 0]`."""
    system, t, h, u, now, weights = args
    n = system.n_v
    new, multipliers = x[:n], x[n:]
    q, v, _ = _end(system, new, now, h, weights)
    motion = system.structure().linearise(
        t, q, v, u(t, q, v), acceleration=new, multipliers=multipliers, hold=False
    )
    J = system.structure().constraint_terms(t, q, v).jacobian
    share = weights.share
    h_v, h_q = weights.gamma * share * h, weights.beta * share * h * h
    return motion.constrained_solver(J, h_v, h_q), share
