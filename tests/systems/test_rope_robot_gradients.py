"""Derivatives of simulated ropes by their numbers, in both modes, against central differences:
taut, slack, and exactly straight."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Dynamics, Index3, LinearlyImplicitEuler, State, simulate
from cordax.systems import RopeRobot, WinchedRopes, Winches, two_rope_robot
from helpers.rope_robot_reference import fields, inputs_of, robot_of

NUMBERS = ("EA", "EI", "axial_time", "bending_time", "line_density")


def scaled(robot, p):
    """With its numbers, and the mass of the platform, times `p`."""
    pick = lambda r: tuple(getattr(r, name) for name in NUMBERS)
    robot = eqx.tree_at(pick, robot, tuple(x * p[i] for i, x in enumerate(pick(robot))))
    if robot.platform is None:
        return robot
    return eqx.tree_at(lambda r: r.platform.mass, robot, robot.platform.mass * p[5])


class Derivatives:
    """A function of numbers `p` and of others, its derivative by `p` forwards, and backwards with
    its value: one program each."""

    def __init__(self, found):
        twice = lambda *given: (found(*given),) * 2
        self.forward = jax.jit(jax.jacfwd(found))
        self.backward = jax.jit(jax.jacrev(twice, has_aux=True))


def check(run, p, *others, step=4e-3):
    """Both modes against central differences, of order 4: round-off of stiff stretches asks for
    large steps."""
    forward, backward = (
        np.asarray(x) for x in (run.forward(p, *others), run.backward(p, *others)[0])
    )
    found = lambda p: np.asarray(run.backward(p, *others)[1])
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


DT, STEPS = 1e-3, 800


@cache
def winched():
    """A soft robot of three segments on winches, in 800 linearly implicit steps of 1 ms, as a
    function of numbers `p`, state, pushes (800,) on the platform and torques; and what it begins
    with."""
    ropes = two_rope_robot(3, EA=800.0, EI=0.05)
    drive = Winches([3.2, 3.1], radius=0.1, rotor_inertia=0.5)
    method = LinearlyImplicitEuler()

    def after(p, state, push, torque):
        """Pose of the platform and angles of drums; tensions and bends on the way."""
        machine = WinchedRopes(scaled(ropes, p[2:]), drive, reserve=5.0)
        dynamics = Dynamics(machine, Index3())

        def step(now, push):
            u = jnp.concatenate([jnp.stack([0.0 * push, push, 0.0 * push]), torque + p[:2] - 1.0])
            end = method.step(dynamics, 0.0, DT, now, lambda *_: u, ()).state
            stretch, angle = end.q[:12].reshape(2, 3, 2).transpose(2, 0, 1)
            return end, (800.0 * stretch[:, 1:].mean(axis=1), jnp.diff(angle, axis=1))

        end, seen = jax.lax.scan(step, state, push)
        return end.q[-5:], seen

    @jax.jit
    def both(p, *given):
        """All derivatives backwards (5, 8), one direction of them forwards (5,), tensions and
        bends."""
        found = lambda p: after(p, *given)
        _, pull, seen = jax.vjp(found, p, has_aux=True)
        forward = jax.jvp(lambda p: found(p)[0], (p,), (AHEAD,))[1]
        return jax.vmap(pull)(jnp.eye(5))[0], forward, seen

    values = jax.jit(lambda *given: after(*given)[0])

    machine = WinchedRopes(ropes, drive, reserve=5.0)
    rest = machine.rest()
    holding = machine.holding(0.0, rest.q)
    # lifted by 0.25 m, of which 0.1 m is stretch, on sagging ropes, and carried from there
    n, up = ropes.n_q, jnp.array([0.0, 0.25, 0.0])
    higher = machine.paid_out(0.0, rest.q, rest.v).hanging(rest.q[n - 3 : n] + up).q
    lifted = State(jnp.concatenate([higher, rest.q[n:]]), rest.v)
    t = DT * np.arange(STEPS)
    pulse = 75.0 * (np.clip(t / 0.1, 0.0, 1.0) - np.clip((t - 0.25) / 0.1, 0.0, 1.0))
    constant = np.ones(STEPS)
    starts = {
        "taut": (rest, 0.0 * constant, holding),
        "slack": (lifted, 50.0 * constant, jnp.array([-0.03, -0.03])),
        "taut, slack, taut": (rest, pulse, holding),
    }
    return values, both, starts


AHEAD = np.linspace(0.5, 1.5, 8)


@pytest.mark.parametrize("phase", ["taut", "slack", "taut, slack, taut"])
def test_winches(phase):
    """By torques of both drums, and all numbers of ropes and platform, over 0.8 s."""
    values, both, starts = winched()
    p, step, given = np.ones(8), 2e-3, starts[phase]
    backward, forward, (tension, bends) = (jax.tree.map(np.asarray, x) for x in both(p, *given))
    most, bend = np.max(tension, axis=1), np.min(np.abs(bends), axis=(1, 2))
    if phase == "taut":
        assert np.all(np.asarray(tension) > 5.0)
    elif phase == "slack":
        assert most[-1] < 1.0 and bend[-1] > 0.1
    else:  # without tension for more than a tenth of a second, then a snap
        free = np.flatnonzero(most < 1.0)
        assert np.all(tension[0] > 20.0) and len(free) > 100 and free[0] > 100
        assert np.max(tension[free[-1] :]) > 30.0
    size = np.abs(backward).max(axis=0)
    assert size[:2].min() > 1e-3
    np.testing.assert_allclose(forward, backward @ AHEAD, atol=1e-8 * size.max())
    for i in range(len(p)):
        at = lambda k, i=i: np.asarray(values(p + k * step * np.eye(8)[i], *given))
        central = (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)
        np.testing.assert_allclose(backward[:, i], central, atol=1e-6 * size[i] + 2e-10)


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
