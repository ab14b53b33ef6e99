"""Payloads beside the centre, or turned; platforms that turn; pulleys above attachments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.control import RaisedCosine
from cordax.io import example_path, read_machine
from cordax.math import rotations
from cordax.mechanics.constraints import Stabilisation
from cordax.mechanics.parts.drives import Winches
from cordax.mechanics.parts.exits import PointExit, PulleyExit, SwivelPulleyExit
from cordax.mechanics.reference_motion import Quintic
from cordax.systems import End
from cordax.systems.cable_robot import CableRobot, NaturalBody, box_inertia

BODY = NaturalBody(20.0, box_inertia(20.0, (0.4, 0.3, 0.2)))
LOAD = NaturalBody(5.0, box_inertia(5.0, (0.1, 0.2, 0.1)), centre=(0.02, 0.0, 0.01))
ARMS = np.array(
    [[0.3, 0.1, 0.15], [0.3, -0.1, 0.15], [-0.05, 0.25, 0.15],
     [-0.25, 0.15, 0.15], [-0.25, -0.15, 0.15], [-0.05, -0.25, 0.15]]
)  # fmt: skip
POINTS = np.array(
    [[1.0, 1.8, 3.0], [1.0, -1.8, 3.0], [1.1, 1.7, 3.0],
     [-2.0, 0.2, 3.0], [-2.0, -0.2, 3.0], [1.1, -1.7, 3.0]]
)  # fmt: skip
TURNED = np.asarray(rotations.exponential_matrix(jnp.array([0.3, -0.5, 1.1])))


@pytest.fixture(scope="module")
def held():
    """A robot of six cables on winches with a turned payload beside its centre, in its grip."""
    winches = Winches(np.full(6, 3.0), 0.05, 0.01)
    robot = CableRobot(BODY, ARMS, PointExit(POINTS), winches)
    robot = robot.with_payload(LOAD, (0.25, 0.1, -0.2), rotation=TURNED)
    return robot.pick(robot.default_state())


def test_a_payload_starts_as_it_lies(held):
    state = held.default_state()
    look = lambda q: (LOAD.rotation(held.split(q).payload), held.constraint(jnp.zeros(()), q))
    axes, phi = jax.jit(look)(state.q)
    np.testing.assert_allclose(axes, TURNED, atol=1e-14)
    np.testing.assert_allclose(phi, 0.0, atol=1e-13)


def test_static_tensions_carry_the_payload_too(held):
    """Motors that hold them: nothing accelerates."""
    state = held.default_state()
    static = np.asarray(held.static_tensions(state.q))
    u = np.concatenate([-0.05 * static, np.zeros(6)])

    @jax.jit
    def look(q, v):
        zero, free = jnp.zeros(()), Stabilisation(0.0, 0.0, None)
        a, multipliers = held.structure().constrained_acceleration(zero, q, v, u, free)
        return a, held.multiplier_forces(zero, q, multipliers)[:6], held.static_wrench(q)[2]

    a, lift, weight = look(state.q, state.v)
    np.testing.assert_allclose(a, 0.0, atol=1e-8)
    np.testing.assert_allclose(lift, static, rtol=1e-9)
    assert float(weight) == pytest.approx(25.0 * 9.81)


def test_a_turned_payload_from_a_file(tmp_path):
    text = (
        example_path("pick_and_place")
        .read_text()
        .replace("[payload]", "[payload]\neuler = [0.0, 0.0, 0.7]")
    )
    path = tmp_path / "turned.toml"
    path.write_text(text)
    robot = read_machine(path).experiment.system
    assert float(robot.payload_rotation[1, 0]) == pytest.approx(np.sin(0.7))


def test_the_platform_turns_along_a_reference():
    """Drum angles of a move of the axes are those of the lengths at each pose."""
    robot = CableRobot(BODY, ARMS, PointExit(POINTS), Winches(np.full(6, 3.0), 0.05, 0.01))
    turn = Quintic(np.zeros(3), [[0.0, 0.1, 0.4]], [[0.0, 1.0]])
    found = robot.winch_reference([0.0, 0.0, 0.1], turn=turn).position(jnp.asarray(1.0))
    R = rotations.exponential_matrix(jnp.array([0.0, 0.1, 0.4]))
    wanted = (robot.lengths([0.0, 0.0, 0.1], R) - 3.0) / 0.05
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", [PulleyExit, SwivelPulleyExit])
def test_a_pulley_exactly_above_its_attachment(kind):
    """The direction of the pulley is anyone's there, but nothing is NaN."""
    more = {} if kind is PulleyExit else {"pulley_inertia": 0.01}
    exits = kind(np.array([[0.0, 0.0, 2.0]]), 0.05, **more)
    t, below = jnp.zeros(()), jnp.zeros((1, 3))

    def looked_at(b):
        if kind is PulleyExit:
            return exits.swivel(t, b), exits.length(t, b, jnp.zeros((1, 0)))
        y, rate = exits.start(t, b, jnp.ones((1, 3)))
        return y, rate, exits.length(t, b, y)

    for mode in (jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f))):
        assert all(np.all(np.isfinite(x)) for x in jax.jit(mode(looked_at))(below))


def test_a_cosine_for_each_joint():
    motion = RaisedCosine([1.0, 2.0], frequency=[1.0, 3.0])
    expected = 0.5 * np.array([1.0, 2.0]) * (1.0 - np.cos(np.array([0.4, 1.2])))
    np.testing.assert_allclose(motion.position(0.4), expected, rtol=1e-14)


def test_the_spring_of_a_sliding_end_has_an_anchor():
    default = (jnp.zeros(3), jnp.zeros(3), jnp.zeros(()))
    end = End.sliding(50.0, (0.1, 0.2, 0.3))
    np.testing.assert_allclose(end.place(0.0, *default)[0], [0.1, 0.2, 0.3])
    assert End.sliding(50.0, Quintic(np.zeros(3), [[1.0, 0.0, 0.0]], [[0.0, 1.0]])).moves
