"""Ropes in space in use: simulated, differentiated, drawn, and given bad numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax.systems import (
    CableRobot,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    SpatialRopeRobot,
    box_inertia,
    ropes_for_cables,
)

CORNER = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
BODY = NaturalBody(5.0, box_inertia(5.0, (0.4, 0.3, 0.2)))
NUMBERS = ("EA", "EI", "line_density", "axial_time", "bending_time")


def machine(**changes):
    fields = {
        "roots": CORNER * 2.0 + [0.2, 0.0, 3.0],
        "length": 3.6,
        "EI": 0.05,
        "root_stiffness": 1.0,
        "platform": BODY,
        "attachments": CORNER * 0.2,
        "position": (0.0, 0.0, 0.4),
        "count": 3,
    }
    return SpatialRopeRobot(**{**fields, **changes})


def check(found, p):
    """Both modes against central differences of order 4, all from one program."""
    ahead = jnp.linspace(0.5, 1.5, len(p))

    @jax.jit
    def both(p):
        value, pull = jax.vjp(found, p)
        return value, jax.vmap(pull)(jnp.eye(len(value)))[0], jax.jvp(found, (p,), (ahead,))[1]

    _, backward, forward = both(p)
    assert np.all(np.abs(backward).max(axis=0) > 1e-9), "each number matters"
    np.testing.assert_allclose(forward, backward @ ahead, rtol=1e-7, atol=1e-10)
    step = 4e-3
    points = np.concatenate([np.asarray(p) + k * step * np.eye(len(p)) for k in (-2, -1, 1, 2)])
    low2, low, high, high2 = np.split(np.stack([both(x)[0] for x in points]), 4)
    central = (8.0 * (high - low) - (high2 - low2)).T / (12.0 * step)
    size = np.abs(backward).max(axis=0)
    # round-off of 1 m over the step is 1e-10, of what solves leave 1e-9
    np.testing.assert_allclose(backward / size, central / size, atol=2e-6 + 1e-9 / size.min())


def scaled(robot, p, names=NUMBERS):
    pick = lambda r: tuple(getattr(r, name) for name in names)
    return eqx.tree_at(pick, robot, tuple(x * p[i] for i, x in enumerate(pick(robot))))


def test_gradients_of_a_step():
    """A rope let go from a straight line aside of its clamp, by stiffnesses, damping and mass:
    one step of linearly implicit Euler."""
    down = (0.6, 0.0, -0.8)
    robot = SpatialRopeRobot(
        [[0.0, 0.0, 0.0]], 1.0, EA=500.0, root_stiffness=2.0, root_direction=down, count=3
    )
    start = robot.hanging()
    q = start.q + jnp.tile(jnp.array([0.0, 0.02, 0.0]), 3) * jnp.arange(9.0)
    speed = jnp.asarray(np.random.default_rng(0).normal(size=9))
    t, u, dt = jnp.zeros(()), jnp.zeros(3), jnp.asarray(0.02)

    def after(p):
        rope = scaled(robot, p)
        motion = rope.structure().linearise(t, q, speed, u)
        v = motion.implicit_solver(dt)(dt * (motion.f + dt * motion.stiffness(speed)))
        return q[-3:] + dt * (speed + v)[-3:]

    check(after, jnp.ones(5))


def test_gradients_of_rest():
    """Of the platform's place, by stiffnesses, rope mass and platform mass."""
    robot = machine()

    def place(p):
        heavier = eqx.tree_at(lambda r: r.platform.mass, robot, robot.platform.mass * p[3])
        return scaled(heavier, p, NUMBERS[:3]).rest().q[-12:-9]

    check(place, jnp.ones(4))


@pytest.fixture(scope="module")
def run():
    robot = machine()
    state = robot.rest()
    n = robot.n_v - 12
    v = state.v.at[n:].set(robot.platform.coordinates(np.zeros(3), np.eye(3), (0.3, 0.2, 0.0))[1])
    return robot, simulate(
        robot, State(state.q, v), dt=2.5e-4, duration=0.1, integrator="rosenbrock_2"
    )


def test_energy_of_a_swing(run):
    """What is lost is what dampers take, to second order of the step: 4 % at 1 ms."""
    robot, swing = run
    assert swing.drift().max() < 1e-6, "of rigidity"
    energy = np.asarray(swing.energy()["total"])
    power = np.asarray(jax.vmap(robot.dissipation)(swing.q, swing.v))
    lost = np.trapezoid(power, swing.t)
    assert lost > 1e-3
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-2)


def test_scene(run):
    """The ropes are drawn from their roots to the platform."""
    robot, swing = run
    scene = robot.geometry(swing.t[-1], swing.q[-1])
    assert scene.lines["cable"].shape == (4, 4, 3)
    np.testing.assert_allclose(scene.lines["cable"][:, -1], scene.points["joint"])
    np.testing.assert_allclose(scene.lines["cable"][:, 0], robot.roots)
    corners = np.asarray(scene.bodies["body"].corners()).reshape(-1, 3)
    centre = np.asarray(swing["position"][-1])
    far = np.linalg.norm(np.array([0.4, 0.3, 0.2]) / 2.0)
    joints = np.asarray(scene.points["joint"])
    # a box of its inertia is smaller than its attachments: their polygon is drawn
    assert np.linalg.norm(joints - centre, axis=1).max() > far
    for joint in joints:
        assert np.linalg.norm(corners - joint, axis=1).min() < 1e-12


def cables():
    exits = PointExit(CORNER * 2.0 + [0.0, 0.0, 3.0])
    return CableRobot(BODY, CORNER * 0.2, exits, ProgrammedLengths(np.full(4, 3.0)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roots": [0.0, 0.0, 1.0]}, r"roots: .*shape \(m, 3\)"),
        ({"length": -1.0}, "length"),
        ({"EA": 0.0}, "EA"),
        ({"EI": -1.0}, "EI"),
        ({"line_density": [1.0, 2.0]}, "line_density"),
        ({"count": 1}, "count: .*2 or more"),
        ({"count": 0}, "count"),
        ({"root_direction": (0.0, 0.0, -2.0)}, "root_direction: .*length 1"),
        ({"attachments": None}, "attachments"),
        ({"attachments": CORNER[:3]}, "attachments"),
        ({"end_point": CORNER}, "end_point: .*one of them"),
        ({"position": (0.0, 0.0, -9.0)}, "position: .*too far"),
        ({"rotation": 2.0 * np.eye(3)}, "rotation"),
    ],
)
def test_bad_numbers(changes, message):
    with pytest.raises(ValueError, match=message):
        machine(**changes)


@pytest.mark.parametrize("end", [None, (0.6, 0.0, -0.5)])
def test_ropes_without_a_platform_take_implicit_steps(end):
    """Free and held ends: what generalised alpha and implicit methods solve."""
    held = None if end is None else jnp.array([end])
    rope = SpatialRopeRobot(roots=np.zeros((1, 3)), length=1.0, count=2, end_point=held)
    q, n, h = rope.hanging().q, rope.n_q, 1e-3

    @jax.jit
    def solved(b):
        v, u = 0.1 * jnp.ones(n), jnp.zeros(rope.n_u)
        motion = rope.structure().linearise(jnp.zeros(()), q, v, u)
        x, pull = motion.constrained_solver(jnp.zeros((0, n)), h)(b, jnp.zeros(0))
        return motion.product(h, h * h, x), pull

    b = jnp.linspace(1.0, 2.0, n)
    found, pull = solved(b)
    np.testing.assert_allclose(found, b, rtol=1e-9)
    assert pull.shape == (0,)


def test_ropes_that_hang_upright_have_gradients():
    """Where a search begins: a stretched rope, its end right below its root."""

    def lowest(end):
        alone = {"platform": None, "attachments": None, "end_point": end[None]}
        robot = machine(roots=jnp.array([[0.0, 0.0, 3.0]]), length=2.2, **alone)
        return robot.hanging().q[2]

    slope = jax.jit(jax.grad(lowest))(jnp.array([0.0, 0.0, 0.4]))
    np.testing.assert_allclose(slope, [0.0, 0.0, 1.0 / 3.0], atol=1e-12)


def test_bad_cables():
    with pytest.raises(ValueError, match="tension"):
        ropes_for_cables(cables(), EA=1e4, line_density=0.03, tension=np.ones(3))
    with pytest.raises((TypeError, ValueError), match="robot"):
        ropes_for_cables(machine(), EA=1e4, line_density=0.03)
    held = cables().with_payload(BODY, np.zeros(3))
    with pytest.raises(ValueError, match="payload"):
        ropes_for_cables(held, EA=1e4, line_density=0.03)


def test_pulled_away():
    """A pull far beyond what ropes of 1 N bear has no rest within half of their length."""
    with pytest.raises(ValueError, match=r"guess: .*stay"):
        machine(EA=1.0).rest(max_steps=5)
