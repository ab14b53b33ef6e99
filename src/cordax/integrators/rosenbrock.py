"""An L-stable, linearly implicit method of order 2 with the same K and D as linearly implicit
Euler."""

import math

from ..mechanics import State
from .base import Integrator, Step, Traits

_GAMMA = 1.0 - 1.0 / math.sqrt(2.0)


class Rosenbrock2(Integrator):
    """The two-stage Rosenbrock-W method ROS2 (Verwer, Spee, Blom, Hundsdorfer, SIAM J. Sci. Comput.
    20 (1999) 1456).

    For y' = F(t, y) and any matrix J near dF/dy,

        (1 - g dt J) k1 = F(t, y)
        (1 - g dt J) k2 = F(t + dt, y + dt k1) - 2 k1
        y+ = y + dt (3 k1 + k2)/2

    with g = 1 - 1/sqrt(2). The method is L-stable, and of order 2 for any J. J may therefore omit
    the derivatives of the mass matrix, of held forces and of the inputs, and the linear solve is
    that of linearly implicit Euler, of size n_v instead of 2 n_v. Inputs are evaluated in both
    stages.

    Not for long undamped motions: nonlinear terms add energy, and stiff undamped wires diverge at
    steps above half a millisecond (`simulate` warns). Use `GeneralisedAlpha` instead."""

    traits = Traits(order=2, explicit=False, amplifies_unresolved=True)

    def step(self, dynamics, t, dt, state, u, carry):
        q, v = state.q, state.v
        motion = dynamics.linearise(t, q, v, u(t, q, v))
        h = _GAMMA * dt

        # For y = (q, v) and J = [[0, 1], [M^-1 K, M^-1 D]] the solve (1 - h J)(kq, kv) = (rq, rv)
        # reduces to
        # (M - h D - h^2 K) kv = M rv + h K rq,  kq = rq + h kv.
        solve = motion.implicit_solver(h)
        kv1 = solve(motion.f + h * motion.stiffness(v))
        kq1 = v + h * kv1
        q2, v2 = dynamics.retract(q, dt * kq1), v + dt * kv1
        a2 = dynamics.acceleration(t + dt, q2, v2, u(t + dt, q2, v2))
        rq, rv = v2 - 2.0 * kq1, a2 - 2.0 * kv1
        kv2 = solve(motion.inertia(rv) + h * motion.stiffness(rq))
        kq2 = rq + h * kv2
        q = dynamics.retract(q, dt * (1.5 * kq1 + 0.5 * kq2))
        return Step(State(q, v + dt * (1.5 * kv1 + 0.5 * kv2)), carry)

    def growth(self, eigenvalue_dt):
        z, g = eigenvalue_dt, _GAMMA
        return abs((1 + (1 - 2 * g) * z) / (1 - g * z) ** 2)
