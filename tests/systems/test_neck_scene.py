"""States, names and pictures of the neck."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.systems import Neck
from cordax.systems.neck.tendons import RigidTendon

ALPHA = np.array([0.5, -0.7, 0.9])
DIAGONAL = np.array([0.1, 0.12, 0.09])


@pytest.fixture(scope="module")
def neck():
    return eqx.tree_at(lambda m: m.bars.diagonal, Neck.default(3), jnp.asarray(DIAGONAL))


@pytest.fixture(scope="module")
def scene(neck):
    return eqx.filter_jit(neck.geometry)(0.0, neck.state_at(ALPHA).q)


def _lengths(lines):
    return np.linalg.norm(np.asarray(lines[:, 1] - lines[:, 0]), axis=1)


def test_bars_keep_their_lengths(neck, scene):
    bars = scene.lines["bar"]
    assert bars.shape == (4 + 6, 2, 2)
    np.testing.assert_allclose(_lengths(bars[:4]), 0.05, rtol=1e-12)
    np.testing.assert_allclose(_lengths(bars[4:]), np.tile(DIAGONAL, 2), rtol=1e-12)
    assert scene.points["pivot"].shape == (8, 2)


def test_sides_and_springs(neck, scene):
    springs = scene.lines["spring"]
    assert springs.shape == (6, 2, 2)
    h, s = neck.joint_shape(jnp.asarray(ALPHA))
    np.testing.assert_allclose(_lengths(springs), np.concatenate([h - s, h + s]), rtol=1e-12)
    upright, _ = neck.joint_shape(jnp.zeros(3))
    left, right = (np.asarray(x - upright) for x in (h - s, h + s))
    # routing "single": the first tendon along all left sides, the others along one right side each
    expected = [left.sum(), *right]
    np.testing.assert_allclose(neck.tendon_length(jnp.asarray(ALPHA)), expected, rtol=1e-12)


def test_tendons_and_tip(neck, scene):
    tendons = scene.lines["tendon"]
    assert tendons.shape == (4, 7, 2)  # the first point is on the drum
    state = neck.state_at(ALPHA)
    outputs = neck.outputs(0.0, state.q, state.v, jnp.zeros(4), ())
    top = scene.lines["bar"][3]
    np.testing.assert_allclose(outputs["tip_position"], top.mean(axis=0), atol=1e-12)
    direction = np.asarray(top[1] - top[0])
    assert np.arctan2(direction[1], direction[0]) == pytest.approx(float(outputs["tip_angle"]))
    assert float(outputs["tip_angle"]) == pytest.approx(ALPHA.sum())
    # the tendon of joint 1 ends there, on its right
    assert np.ptp(np.asarray(tendons[1, 2:]), axis=0) == pytest.approx(0.0)
    # tendons of the top joint end near the top bar
    for tendon in (tendons[0], tendons[3]):
        assert np.linalg.norm(tendon[-1] - top.mean(axis=0)) < 0.05


def test_elastic_state_carries_the_tensions(neck):
    tension, rate = np.array([10.0, 20.0, 30.0, 40.0]), np.array([0.3, 1.0, -2.0])
    state = neck.state_at(ALPHA, rate, tension)
    np.testing.assert_allclose(neck.tension(0.0, state.q, state.v, jnp.zeros(4)), tension)
    np.testing.assert_allclose(neck.elongation(state.q), tension / 1e5)
    alpha, theta = neck.split(state.q)
    np.testing.assert_array_equal(alpha, ALPHA)
    np.testing.assert_array_equal(neck.motor_angle(state.q), theta)
    # the motors move with the joints: tensions stay
    J, _ = neck.length_derivatives(alpha)
    np.testing.assert_allclose(neck.motor_rate(state.q, state.v), J @ rate / 8e-4, rtol=1e-12)
    start = neck.default_state()
    np.testing.assert_allclose(neck.tension(0.0, start.q, start.v, jnp.zeros(4)), 20.0)


def test_rigid_motors_follow_the_joints():
    rigid = Neck.default(3, tendon=RigidTendon())
    state = rigid.state_at(ALPHA, [0.3, 1.0, -2.0])
    assert rigid.n_q == 3 and not rigid.elastic
    np.testing.assert_array_equal(state.q, ALPHA)
    length = rigid.tendon_length(state.q)
    np.testing.assert_allclose(rigid.motor_angle(state.q), length / 8e-4, rtol=1e-12)
    outputs = rigid.outputs(0.0, state.q, state.v, jnp.zeros(4), ())
    np.testing.assert_allclose(outputs["motor_position"], length / 8e-4, rtol=1e-12)
    np.testing.assert_array_equal(outputs["elongation"], 0.0)


def test_names():
    neck = Neck.default(2)
    assert neck.coordinate_names == ("alpha_1", "alpha_2", "theta_1", "theta_2", "theta_3")
    assert neck.input_names == ("torque_1", "torque_2", "torque_3")
    assert Neck.default(2, tendon=RigidTendon()).coordinate_names == ("alpha_1", "alpha_2")


def test_validity_ends_where_a_joint_folds():
    neck = Neck.default(2)
    at = lambda angle: bool(neck.valid(0.0, neck.state_at([0.0, angle]).q, None))
    assert at(3.14) and at(-3.14)
    assert not at(3.15) and not at(-3.15)
    # motor angles may be large
    assert bool(neck.valid(0.0, jnp.asarray([0.0, 0.0, 40.0, -40.0, 0.0]), None))
