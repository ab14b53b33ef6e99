"""Zhai's explicit two-step method (W. M. Zhai, Int. J. Numer. Meth. Engng 39 (1996) 4199)."""

import numpy as np

from .._base.results import GOOD
from ..mechanics import State
from .base import Integrator, Report, Step, Traits


class Zhai(Integrator):
    """Zhai's method: explicit, one evaluation per step, order 2, oscillator limit 2. It supports
    velocity-dependent forces.

        q+ = q + v dt + (1/2 + psi) a dt^2 - psi a_before dt^2
        v+ = v + (1 + phi) a dt - phi a_before dt

    with psi = phi = 1/2 (0 in the first step). Without velocity-dependent forces the positions are
    those of velocity Verlet."""

    traits = Traits(
        order=2,
        explicit=True,
        reports_initial_stage=True,
        variable_step=False,
        self_starting=False,
        oscillator_limit=2.0,
    )

    def init(self, dynamics, t, dt, state, u):
        # With a_before = a the formulas reduce to psi = phi = 0, as the first step requires.
        return dynamics.acceleration(t, state.q, state.v, u(t, state.q, state.v))

    def step(self, dynamics, t, dt, state, u, carry):
        q, v, before = state.q, state.v, carry
        inputs = u(t, q, v)
        a, multipliers = dynamics.accelerate(t, q, v, inputs)
        dq = dt * v + dt * dt * (a - 0.5 * before)
        new = State(dynamics.retract(q, dq), v + dt * (1.5 * a - 0.5 * before))
        return Step(new, a, GOOD, Report(multipliers, inputs))

    def amplification(self, stiffness, damping):
        q, v, before = np.split(np.eye(3 * stiffness.shape[-1]), 3)
        a = stiffness @ q + damping @ v
        new = q + v + a - 0.5 * before, v + 1.5 * a - 0.5 * before, a
        return np.concatenate(new, axis=-2)
