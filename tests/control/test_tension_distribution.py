"""Tension distribution: which tensions produce a wanted torque."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.control import BoundedTension, MeanTension, MinimumTension
from cordax.systems import Neck

tensions = eqx.filter_jit(lambda rule, W, tau: rule(W, tau))


@pytest.fixture(scope="module")
def problem():
    """W of the three-joint neck at some posture, shape (3, 4), and a torque [N m]."""
    posture = np.array([0.5, -0.4, 0.8])
    J, _ = eqx.filter_jit(lambda neck: neck.length_derivatives(posture))(Neck.default(3))
    return -np.asarray(J).T, np.array([0.3, -0.5, 0.2])


@pytest.mark.parametrize("rule", [MeanTension(35.0), MinimumTension(6.0)])
def test_the_torque_is_produced(problem, rule):
    W, tau = problem
    np.testing.assert_allclose(W @ tensions(rule, W, tau), tau, atol=1e-12)


def test_mean_tension_is_the_closest_to_equal_tensions(problem):
    W, tau = problem
    T = np.asarray(tensions(MeanTension(35.0), W, tau))
    null = np.linalg.svd(W)[2][-1]
    # the distance to (35, ..., 35) has no component along the null space
    assert np.dot(T - 35.0, null) == pytest.approx(0.0, abs=1e-10)


def test_minimum_tension_is_reached_exactly(problem):
    W, tau = problem
    for minimum in (0.0, 5.0, 60.0):
        assert np.min(tensions(MinimumTension(minimum), W, tau)) == pytest.approx(minimum, abs=1e-9)


def test_more_tendons_than_necessary():
    W, tau = np.random.default_rng(3).normal(size=(2, 5)), np.array([1.0, -2.0])
    T = np.asarray(tensions(MeanTension(10.0), W, tau))
    np.testing.assert_allclose(W @ T, tau, atol=1e-12)
    null = np.linalg.svd(W)[2][2:]
    np.testing.assert_allclose(null @ (T - 10.0), 0.0, atol=1e-12)


def test_derivative_of_the_smooth_rule(problem):
    W, tau = problem
    dT = jax.jit(jax.jacfwd(MeanTension(35.0), argnums=1))(W, tau)
    np.testing.assert_allclose(W @ dT, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(("rule", "name"), [(MeanTension, "mean"), (MinimumTension, "minimum")])
def test_bad_input(rule, name):
    with pytest.raises(ValueError, match=f"{name}: got -5.0, expected finite values >= 0"):
        rule(-5.0)


def eight_cables():
    """Eight cables from the corners of a room to those of a box, upper to lower ones."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    arms, exits = signs * [0.2, 0.15, -0.1], signs * [1.5, 1.2, 0.9] + [0.1, 0.05, 0.0]
    pull = (exits - arms) / np.linalg.norm(exits - arms, axis=1)[:, None]
    return np.hstack([pull, np.cross(arms, pull)]).T


def trusted(W, tau, least, most, mean):
    """By sequential quadratic programming in SciPy."""
    from scipy.optimize import minimize

    return minimize(
        lambda T: 0.5 * np.sum((T - mean) ** 2),
        np.full(8, 60.0),
        jac=lambda T: T - mean,
        bounds=list(zip(least, most, strict=True)),
        constraints={"type": "eq", "fun": lambda T: W @ T - tau, "jac": lambda T: np.asarray(W)},
        options={"ftol": 1e-14, "maxiter": 500},
    ).x


#: bounds of each cable: the same, and different ones
LEAST = (np.full(8, 20.0), np.array([25.0, 1.0, 8.0, 1.0, 2.0, 1.0, 9.0, 1.0]))


@pytest.mark.parametrize("least", LEAST)
def test_bounded_tensions_are_those_of_a_trusted_solver(least):
    W, tau = eight_cables(), np.array([5.0, -3.0, 196.2, 1.0, 0.0, 0.2])
    most, mean = np.full(8, 200.0), np.full(8, 40.0)
    T = np.asarray(tensions(BoundedTension(least, most, mean), W, tau))
    np.testing.assert_allclose(W @ T, tau, atol=1e-9)
    assert np.min(T - least) > -1e-9
    np.testing.assert_allclose(T, trusted(W, tau, least, most, mean), atol=1e-4)
    assert np.min(np.abs(T - least)) < 1e-9, "a bound should act, or the case shows nothing"
    if np.ptp(least) == 0.0:
        np.testing.assert_allclose(
            tensions(BoundedTension(20.0, 200.0, 40.0), W, tau), T, rtol=1e-12
        )


def test_bounds_of_each_cable_are_checked():
    with pytest.raises(ValueError, match=r"maximum: got .* more than minimum"):
        BoundedTension(LEAST[1], np.full(8, 3.0))
    with pytest.raises(ValueError, match=r"minimum: got shape \(3,\), expected a scalar or shape"):
        BoundedTension(np.ones(3), 50.0)(eight_cables(), jnp.ones(6))


def test_bounded_tensions_say_when_there_are_none():
    assert np.all(np.isnan(tensions(BoundedTension(20.0, 25.0), eight_cables(), np.full(6, 200.0))))
    with pytest.raises(ValueError, match="maximum: got 10"):
        BoundedTension(20.0, 10.0)


def test_derivatives_of_bounded_tensions_in_both_modes():
    """By wrench, bounds and geometry, where bounds act."""
    W, tau = eight_cables(), np.array([5.0, -3.0, 196.2, 1.0, 0.0, 0.2])

    def sum_of_squares(x):
        rule = BoundedTension(20.0 + x[0], 200.0, mean=40.0)
        return jnp.sum(rule(W * (1.0 + x[1] * W), tau * (1.0 + x[2])) ** 2)

    f, zero, h = jax.jit(sum_of_squares), jnp.zeros(3), 1e-5
    central = [(f(zero.at[i].set(h)) - f(zero.at[i].set(-h))) / (2 * h) for i in range(3)]
    np.testing.assert_allclose(jax.jit(jax.jacfwd(sum_of_squares))(zero), central, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.grad(sum_of_squares))(zero), central, rtol=1e-7)
