"""Starts that satisfy the constraints, and those that do not."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State, simulate
from cordax.systems import Pendulum
from helpers.hung_ball import Ball

OFF = State(np.array([0.6, -0.9]), np.array([1.0, 1.0]))
UNIT = np.array([0.6, -0.9]) / np.hypot(0.6, 0.9)


def test_the_nearest_state():
    """On a circle: along the radius; velocity: the tangential part."""
    state = cordax.consistent(Ball(), OFF)
    np.testing.assert_allclose(state.q, UNIT, atol=1e-12)
    np.testing.assert_allclose(state.v, OFF.v - (OFF.v @ UNIT) * UNIT, atol=1e-12)


def test_constraints_that_move():
    ball = Ball(amplitude=0.1)
    state = cordax.consistent(ball, OFF, t=0.3)
    terms = ball.structure().constraint_terms(jnp.asarray(0.3), state.q, state.v)
    np.testing.assert_allclose(terms.phi, 0.0, atol=1e-12)
    np.testing.assert_allclose(terms.rate, 0.0, atol=1e-12)


def test_a_consistent_start_stays_as_it_is_and_machines_without_constraints_too():
    start = Ball().default_state()
    np.testing.assert_allclose(cordax.consistent(Ball()).q, start.q, atol=1e-15)
    pendulum = Pendulum().default_state()
    np.testing.assert_array_equal(cordax.consistent(Pendulum()).q, pendulum.q)


def test_no_state_nearby():
    apart = Ball(anchors=[[0.0, 0.0], [5.0, 0.0]], lengths=[1.0, 1.0])
    with pytest.raises(ValueError, match=r"state: no state near.*\|Phi\| stays at"):
        cordax.consistent(apart, OFF)


def test_an_inconsistent_start_is_refused_and_the_way_back_measured():
    with pytest.raises(ValueError) as error:
        simulate(Ball(), OFF, dt=0.01, duration=0.02)
    message = str(error.value)
    assert "|Phi| = 0.17 in row 0" in message and "cordax.consistent" in message
    dq, dv = re.search(r"coordinates by up to (\S+), velocities by up to (\S+)\)", message).groups()
    moved = cordax.consistent(Ball(), OFF)
    assert float(dq) == pytest.approx(float(np.max(np.abs(moved.q - OFF.q))), rel=1e-2)
    assert float(dv) == pytest.approx(float(np.max(np.abs(moved.v - OFF.v))), rel=1e-2)


def test_a_wrong_velocity_is_refused():
    start = State(UNIT, 0.1 * UNIT)
    with pytest.raises(ValueError, match=r"\|dPhi/dt\| = 0.2 in row 0"):
        simulate(Ball(), start, dt=0.01, duration=0.02)


def test_a_slack_string_is_a_start_for_one_sided_constraints():
    slack = State(np.array([0.1, -0.5]), np.zeros(2))
    options = {"dt": 0.01, "duration": 0.1}
    run = simulate(Ball(one_way=True), slack, integrator=cordax.Unilateral(), **options)
    np.testing.assert_allclose(run.q[-1], [0.1, -0.5 - 0.5 * 9.81 * 0.01], atol=1e-12)
    with pytest.raises(ValueError, match="violates the constraints"):
        simulate(Ball(one_way=True), slack, **options)


def test_derivatives_of_the_projection():
    f = jax.jit(lambda l: cordax.consistent(Ball(lengths=l[None]), OFF).q)
    np.testing.assert_allclose(jax.jacfwd(f)(jnp.asarray(1.0)), UNIT, rtol=1e-9)
    np.testing.assert_allclose(jax.jacrev(f)(jnp.asarray(1.0)), UNIT, rtol=1e-9)
