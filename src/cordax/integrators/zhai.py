"""Zhai's explicit two-step method (W. M. Zhai, Int. J. Numer. Meth. Engng 39 (1996) 4199)."""

import numpy as np

from .._base.results import GOOD
from ..mechanics import State
from .base import Integrator, Step


class Zhai(Integrator):
    """One evaluation per step, order 2, oscillator limit 2; velocity-dependent forces are taken as
    they are.

    q+ = q + v dt + (1/2 + psi) a dt^2 - psi a_before dt^2,    v+ = v + (1 + phi) a dt - phi
    a_before dt

    with psi = phi = 1/2 (0 in the first step). Without velocity-dependent forces the positions are
    those of velocity Verlet."""

    order = 2
    explicit = True
    begins_at_start = True
    new_steps = False
    self_starting = False
    oscillator_limit = 2.0

    def init(self, dynamics, t, dt, state, u):
        # With a_before = a the formulas reduce to psi = phi = 0, as the first step requires.
        return dynamics.acceleration(t, state.q, state.v, u(t, state.q, state.v))

    def step(self, dynamics, t, dt, state, u, carry):
        q, v, before = state.q, state.v, carry
        inputs = u(t, q, v)
        a, multipliers = dynamics.accelerate(t, q, v, inputs)
        dq = dt * v + dt * dt * (a - 0.5 * before)
        new = State(dynamics.retract(q, dq), v + dt * (1.5 * a - 0.5 * before))
        return Step(new, a, GOOD, multipliers, inputs)

    def growth(self, eigenvalue_dt):
        # One step of (q, v, a_before) on q'' = 2 d q' - q, time in units of 1/|lambda|: the pair
        # lambda, conj(lambda). A real eigenvalue counts twice, as of a critically damped mode: on
        # the safe side for an overdamped one.
        h = abs(eigenvalue_dt)
        d = eigenvalue_dt.real / h if h else 0.0
        a = np.array([-1.0, 2.0 * d, 0.0])
        before = np.array([0.0, 0.0, 1.0])
        q = np.array([1.0, h, 0.0]) + h * h * (a - 0.5 * before)
        v = np.array([0.0, 1.0, 0.0]) + h * (1.5 * a - 0.5 * before)
        return float(np.max(np.abs(np.linalg.eigvals(np.stack([q, v, a])))))
