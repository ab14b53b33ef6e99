"""Tension distribution: which tensions produce a wanted torque."""

import jax
import numpy as np
import pytest

from cordax.control import MeanTension, MinimumTension
from cordax.systems import Neck


@pytest.fixture(scope="module")
def problem():
    """W of the three-joint neck at some posture, shape (3, 4), and a torque [N m]."""
    J, _ = Neck.default(3).length_derivatives(np.array([0.5, -0.4, 0.8]))
    return -np.asarray(J).T, np.array([0.3, -0.5, 0.2])


@pytest.mark.parametrize("rule", [MeanTension(35.0), MinimumTension(6.0)])
def test_the_torque_is_produced(problem, rule):
    W, tau = problem
    np.testing.assert_allclose(W @ rule(W, tau), tau, atol=1e-12)


def test_mean_tension_is_the_closest_to_equal_tensions(problem):
    W, tau = problem
    T = np.asarray(MeanTension(35.0)(W, tau))
    null = np.linalg.svd(W)[2][-1]
    # the distance to (35, ..., 35) has no component along the null space
    assert np.dot(T - 35.0, null) == pytest.approx(0.0, abs=1e-10)


def test_minimum_tension_is_reached_exactly(problem):
    W, tau = problem
    for minimum in (0.0, 5.0, 60.0):
        assert np.min(MinimumTension(minimum)(W, tau)) == pytest.approx(minimum, abs=1e-9)


def test_more_tendons_than_necessary():
    W, tau = np.random.default_rng(3).normal(size=(2, 5)), np.array([1.0, -2.0])
    T = np.asarray(MeanTension(10.0)(W, tau))
    np.testing.assert_allclose(W @ T, tau, atol=1e-12)
    null = np.linalg.svd(W)[2][2:]
    np.testing.assert_allclose(null @ (T - 10.0), 0.0, atol=1e-12)


def test_derivative_of_the_smooth_rule(problem):
    W, tau = problem
    dT = jax.jacfwd(MeanTension(35.0), argnums=1)(W, tau)
    np.testing.assert_allclose(W @ dT, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(("rule", "name"), [(MeanTension, "mean"), (MinimumTension, "minimum")])
def test_bad_input(rule, name):
    with pytest.raises(ValueError, match=f"{name}: got -5.0, expected finite values >= 0"):
        rule(-5.0)
