"""Forward Euler."""

from .._base.results import GOOD
from ..mechanics import State
from .base import Integrator, Report, Step, Traits


class ExplicitEuler(Integrator):
    """Explicit Euler method, `q+ = q + dt v`, `v+ = v + dt a(t, q, v)`: order 1, unstable for
    undamped oscillations at every step size."""

    traits = Traits(
        order=1,
        explicit=True,
        reports_initial_stage=True,
        sees_both_ends=False,
        oscillator_limit=0.0,
    )

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v
        inputs = u(t, q, v)
        a, multipliers = dynamics.accelerate(t, q, v, inputs)
        new = State(dynamics.retract(q, dt * v), v + dt * a)
        return Step(new, carry, GOOD, Report(multipliers, inputs))

    def growth(self, eigenvalue_dt):
        return abs(1 + eigenvalue_dt)
