"""Derivatives of simulated ropes by their numbers, in both modes, against central differences:
taut, slack, and exactly straight."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rope_robot_reference import fields, inputs_of, robot_of

from cordax import Index3, State, simulate
from cordax.systems import RopeRobot

NUMBERS = ("EA", "EI", "axial_time", "bending_time", "line_density")


def scaled(robot, p):
    """With its numbers, and the mass of the platform, times `p`."""
    pick = lambda r: tuple(getattr(r, name) for name in NUMBERS)
    robot = eqx.tree_at(pick, robot, tuple(x * p[i] for i, x in enumerate(pick(robot))))
    if robot.platform is None:
        return robot
    return eqx.tree_at(lambda r: r.platform.mass, robot, robot.platform.mass * p[5])


class Derivatives:
    """A function of numbers `p` and of others, and its derivatives by `p`: one program each."""

    def __init__(self, found):
        self.found = jax.jit(found)
        self.forward, self.backward = jax.jit(jax.jacfwd(found)), jax.jit(jax.jacrev(found))


def check(run, p, *others, step=4e-3):
    """Both modes against central differences, of order 4: round-off of stiff stretches asks for
    large steps."""
    forward, backward = (np.asarray(f(p, *others)) for f in (run.forward, run.backward))
    found = lambda p: np.asarray(run.found(p, *others))
    size = np.abs(forward).max(axis=0)
    np.testing.assert_allclose(forward / size, backward / size, atol=1e-8)
    for i in range(len(p)):
        d = step * np.eye(len(p))[i]
        slope = lambda h, d=d: (found(p + h * d) - found(p - h * d)) / (2.0 * h * step)
        central = (4.0 * slope(1.0) - slope(2.0)) / 3.0
        # 2e-10: round-off of stretches, in millimetres, over the step
        np.testing.assert_allclose(forward[:, i], central, atol=1e-6 * size[i] + 2e-10)


@cache
def robot_run():
    robot, inputs = robot_of("paper2_s6"), inputs_of("paper2_s6")

    def after(p, t0, q, v):
        """Pose of the platform, shape of a rope and pulls after 0.1 s."""
        trajectory = simulate(
            scaled(robot, p),
            State(q, v),
            dt=1e-3,
            duration=0.1,
            save_every=100,
            integrator="linearly_implicit_euler",
            formulation=Index3(),
            control=lambda t, state: inputs(t0 + t),
            adjoint="scan",
            throw=False,
        )
        return jnp.concatenate([trajectory.q[-1, -3:], trajectory.q[-1, :12:2] * 1e3])

    return Derivatives(after)


@pytest.mark.parametrize("instant", [3.0, 5.0], ids=["taut", "slack"])
def test_robot(instant):
    s = fields("paper2_s6")
    k = int(np.argmin(np.abs(s.t_full - instant)))
    check(robot_run(), np.ones(6), np.asarray(instant), s.q_full[k], s.v_full[k])


def test_exactly_straight():
    """A rope with no stretch and no angle anywhere, let go."""
    robot = RopeRobot([[0.0, 0.0]], 1.0, root_angle=0.2, root_stiffness=2.0, count=4)
    zero = np.zeros(robot.n_q)

    def after(p):
        run = simulate(
            scaled(robot, p),
            State(zero, zero),
            dt=1e-3,
            duration=0.05,
            save_every=50,
            integrator="linearly_implicit_euler",
            throw=False,
        )
        return run.q[-1]

    check(Derivatives(after), np.ones(5))
