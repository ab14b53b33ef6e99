"""The classical Runge-Kutta method."""

from ..math.materialise import materialise
from ..mechanics import State
from .base import Integrator, Step


class RK4(Integrator):
    """Order 4, four evaluations per step, oscillator limit 2 sqrt(2). Inputs are evaluated in every
    stage."""

    order = 4
    explicit = True
    oscillator_limit = 2.8284271247461903

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v

        def slope(time, q, v):
            return materialise(
                (dynamics.rate(q, v), dynamics.acceleration(time, q, v, u(time, q, v)))
            )

        q1, v1 = slope(t, q, v)
        q2, v2 = slope(t + 0.5 * dt, q + 0.5 * dt * q1, v + 0.5 * dt * v1)
        q3, v3 = slope(t + 0.5 * dt, q + 0.5 * dt * q2, v + 0.5 * dt * v2)
        q4, v4 = slope(t + dt, q + dt * q3, v + dt * v3)
        q = dynamics.normalise(q + dt / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4))
        return Step(State(q, v + dt / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)), carry)

    def growth(self, eigenvalue_dt):
        z = eigenvalue_dt
        return abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4))))
