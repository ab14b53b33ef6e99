"""The classical Runge-Kutta method."""

import jax.numpy as jnp
from jax import lax

from .._base.results import GOOD
from .._jax.materialise import materialise
from ..mechanics import State
from .base import Integrator, Report, Step, Traits

# each stage uses the slope of the previous stage and its own node
_NODES = (0.0, 0.5, 0.5, 1.0)
_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


class RK4(Integrator):
    """Classical Runge-Kutta method: order 4, four evaluations per step, oscillator limit 2 sqrt(2).
    Inputs are evaluated in every stage."""

    traits = Traits(
        order=4, explicit=True, reports_initial_stage=True, oscillator_limit=2.8284271247461903
    )

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v

        # A loop over the stages compiles in a quarter of the time of four copies.
        def stage(carry, coefficients):
            (dq, dv), (sum_q, sum_v) = carry
            node, weight = coefficients
            time, at_q, at_v = t + node * dt, q + node * dt * dq, v + node * dt * dv
            inputs = u(time, at_q, at_v)
            a, multipliers = dynamics.accelerate(time, at_q, at_v, inputs)
            slope = materialise((dynamics.rate(at_q, at_v), a))
            sums = sum_q + weight * slope[0], sum_v + weight * slope[1]
            return (slope, sums), (multipliers, inputs)

        zeros = (jnp.zeros_like(q), jnp.zeros_like(v))
        tableau = jnp.asarray(_NODES, q.dtype), jnp.asarray(_WEIGHTS, q.dtype)
        (_, (dq, dv)), (multipliers, inputs) = lax.scan(stage, (zeros, zeros), tableau)
        new = State(dynamics.normalise(q + dt * dq), v + dt * dv)
        return Step(new, carry, GOOD, Report(multipliers[0], inputs[0]))

    def growth(self, eigenvalue_dt):
        z = eigenvalue_dt
        return abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4))))
