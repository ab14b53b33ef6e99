"""A robot on two ropes, 83 coordinates, by functions that know nothing about ropes."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State
from cordax.systems import Platform, RopeRobot


def test_two_ropes_from_a_poor_guess():
    """Straight ropes that do not reach the platform; pose, forces, slowest mode and largest step of
    RK4 are known."""
    platform = Platform(5.0, 5.0 * (1.0 + 0.3**2) / 12.0, [[-0.5, 0.15], [0.5, 0.15]])
    robot = RopeRobot(
        [[0.0, 0.0], [1.0, -0.25]], 3.0, 0.029, 4e4, 0.01, 2e-3, 0.05, platform=platform, count=20
    )
    angles = np.array([0.02 * name.startswith("angle_") for name in robot.coordinate_names])
    q = jnp.asarray(np.concatenate([angles[:-3], [0.5, -3.2, -0.2]]))
    rest = cordax.equilibrium(robot, guess=State(q, jnp.zeros(robot.n_v)), full=True)
    assert bool(rest.found) and bool(rest.stable)
    known = [0.46132122, -3.27207796, -0.25236777]
    np.testing.assert_allclose(rest.state.q[-3:], known, atol=1e-8)
    known = [-0.13095975, 26.45601617, 0.13095975, 22.59398383]
    np.testing.assert_allclose(rest.multipliers, known, atol=1e-6)
    limit = cordax.step_limit(robot, rest.state, "rk4")
    assert limit.dt == pytest.approx(5.72e-6, rel=2e-3)
    slowest = limit.eigenvalues[0]
    assert abs(slowest.imag) == pytest.approx(1.817, abs=1e-3)
