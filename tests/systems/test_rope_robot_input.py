"""Bad input to ropes: errors that name the field, what was given and what is expected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax.systems import Platform, RopeRobot, WinchedRopes, Winches, two_rope_robot

ROOT = [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count: got 0, expected a whole number >= 1"),
        ({"count": 2.5}, "count: got 2.5"),
        ({"length": 0.0}, "length: got 0.0, expected finite values > 0"),
        ({"length": [1.0, 2.0]}, "length: got shape"),
        ({"EA": -1.0}, "EA: got -1.0, expected finite values > 0"),
        ({"EI": -1e-3}, "EI: got -0.001, expected finite values >= 0"),
        ({"line_density": np.nan}, "line_density: got nan"),
        ({"bending_time": -1.0}, "bending_time: got -1.0"),
        ({"roots": [0.0, 0.0]}, "roots: got shape"),
        (
            {"end_point": [[2.0, 0.0]]},
            "end_point: got end of rope 1 is 100 % of its length too far",
        ),
        ({"end_point": [2.0, 0.0]}, "end_point: got shape"),
        ({"platform": Platform(1.0, 1.0, [[0.0, 0.0]] * 2)}, "platform.attachments: got shape"),
    ],
)
def test_numbers(change, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        RopeRobot(**{"roots": ROOT, "length": 1.0, "count": 3, **change})


def test_a_platform_that_ropes_cannot_carry():
    with pytest.raises(ValueError, match=r"platform\.mass: got 0\.0"):
        Platform(0.0, 1.0, [[0.0, 0.0]])
    # roots further apart than ropes and platform are long
    far = RopeRobot(
        [[0.0, 0.0], [40.0, 0.0]],
        1.0,
        platform=Platform.plate(1.0, (1.0, 0.3), [[-0.5, 0.0], [0.5, 0.0]]),
        count=3,
    )
    with pytest.raises(
        ValueError, match=r"length: got ropes stretched by .*expected ropes that reach"
    ):
        far.rest()


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        ([0.5, -3.0], r"pose: got shape \(2,\), expected shape \(3,\)"),
        ([0.5, np.nan, 0.0], "pose: got .*expected finite"),
        ([0.5, -6.0, 0.0], "pose: got end of rope .* too far from the root"),
    ],
)
def test_a_pose_to_hang_in(pose, message):
    with pytest.raises(ValueError, match=message):
        two_rope_robot(3).hanging(pose)


def test_ropes_that_winches_have_reeled_in():
    drive = Winches([2.0, 3.1], radius=0.1, rotor_inertia=0.02)
    with pytest.raises(ValueError, match=r"lengths: got \[2\..*between exit and first gap"):
        WinchedRopes(two_rope_robot(3), drive).rest()


def test_inside_of_jit_why_there_is_no_rest_is_said_first(caplog):
    guess = State(0.3 * jnp.ones(6), jnp.zeros(6))
    rest = lambda length: RopeRobot(ROOT, length, count=3).rest(guess=guess, max_steps=1).q
    with pytest.raises((RuntimeError, ValueError), match="no state at rest"):
        jax.block_until_ready(jax.jit(rest)(1.0))
    first = caplog.records[0]
    assert first.name == "cordax" and first.getMessage().startswith("rest: no state at rest found")


def test_an_inconsistent_start():
    robot = RopeRobot(ROOT, 1.0, end_point=[[0.5, -0.5]], count=3)
    state = State(jnp.zeros(6), jnp.zeros(6))
    with pytest.raises(ValueError, match=r"state0: .*violates the constraints, \|Phi\| = 0\.5"):
        simulate(robot, state, dt=1e-3, duration=0.01)


def test_initial_states_at_rest_in_single_precision():
    exact = two_rope_robot(4).default_state().q
    with jax.enable_x64(False):
        single = two_rope_robot(4).default_state().q
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, exact, atol=1e-4)


def test_a_single_rope_with_a_free_end_runs_to_an_accuracy():
    rope = RopeRobot(ROOT, 1.0, root_angle=0.2, count=2)
    given = {"integrator": "rosenbrock_2", "duration": 0.004}
    fine = simulate(rope, rope.hanging(), dt=1e-4, save_every=40, **given)
    found = simulate(rope, rope.hanging(), dt=2e-3, accuracy=1e-5, **given)
    np.testing.assert_allclose(found.q[-1], fine.q[-1], atol=1e-4)
