"""Linearly implicit (Rosenbrock-) Euler: one Jacobian and one linear solve per step."""

from ..mechanics import State
from .base import Integrator, Step, Traits


class LinearlyImplicitEuler(Integrator):
    """Linearly implicit Euler method: one Newton step of implicit Euler, with inputs, held forces
    and mass matrix frozen at the start of the step:

        (M - dt D - dt^2 K) dv = dt (f + dt K v),    v+ = v + dv,    q+ = q + dt v+

    Order 1, L-stable. This is the method of Testard, Chevallereau and Wenger (CableCon 2023), eqs.
    (7) and (17)-(20), with K = df/dq and D = df/dv from the linearisation of the machine. With
    `Index3` the linearised constraints hold at the end of the step."""

    traits = Traits(order=1, explicit=False, sees_both_ends=False, solves_constraints="allowed")

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v
        motion = dynamics.linearise(t, q, v, u(t, q, v))
        v = v + motion.implicit_solver(dt)(dt * (motion.f + dt * motion.stiffness(v)))
        return Step(State(dynamics.retract(q, dt * v), v), carry)

    def growth(self, eigenvalue_dt):
        return 1 / abs(1 - eigenvalue_dt)
