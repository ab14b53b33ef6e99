"""Modes, stable steps and stiffness of the neck, against what theory says of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import ComputedTorque, RaisedCosine
from cordax.systems import Neck
from helpers.neck_reference import AMPLITUDE

ELASTIC = 20.0  # rad/s: modes of joints and rotors moving together on the springs are slower


def elastic_oscillations(limit):
    """Step limits of modes that stretch tendons and oscillate."""
    values = limit.eigenvalues
    chosen = (np.abs(values) > ELASTIC) & (np.abs(values.imag) > 1e-6 * np.abs(values))
    return limit.per_mode[chosen], values[chosen]


def open_loop(neck, state):
    return elastic_oscillations(cordax.step_limit(neck, state, "explicit_euler", held=False))


@pytest.mark.parametrize("joints", [1, 3, 4, 8])
def test_open_loop_limit_is_damping_over_stiffness(joints):
    """Damping in proportion to stiffness gives every elastic oscillation the limit d_c/k_c: exactly
    so where tendons are the only springs and dampers, within 1 % for the robot of the paper."""
    for routing in ("single", "cumulative"):
        neck = Neck.default(joints, routing=routing)
        bare = eqx.tree_at(
            lambda m: (m.springs.stiffness, m.gravity, m.pivot_friction),
            neck,
            (jnp.zeros_like(neck.springs.stiffness), jnp.zeros(()), jnp.zeros(())),
        )
        limits, values = open_loop(bare, neck.state_at(np.zeros(joints)))
        assert len(values) == 2 * (joints + 1) and np.any(np.abs(values) < 2000.0)
        np.testing.assert_allclose(limits, 1e-3, rtol=1e-6)
        # forward Euler: |1 + lambda dt| = 1
        np.testing.assert_allclose(np.abs(1.0 + values * limits), 1.0, atol=1e-9)
        if routing == "single" and joints in AMPLITUDE:
            limits, values = open_loop(neck, None)
            assert len(values) == 2 * (joints + 1)
            np.testing.assert_allclose(limits, 1e-3, rtol=0.01)


@pytest.mark.parametrize(
    ("joints", "open_loop", "closed_loop"),
    [(3, -7.8 + 125.2j, -1.5 + 126.0j), (4, -3.1 + 78.1j, 3.3 + 79.0j)],
)
def test_feedback_takes_damping_from_the_lowest_elastic_mode(joints, open_loop, closed_loop):
    neck = Neck.default(joints)
    neck = eqx.tree_at(lambda m: m.motors.dry_friction, neck, jnp.zeros(()))
    control = ComputedTorque(neck, RaisedCosine(AMPLITUDE[joints]))
    start = control.start()

    def nearest(limit, value):
        i = np.argmin(np.abs(limit.eigenvalues - value))
        return limit.eigenvalues[i], limit.per_mode[i]

    # without dry friction there is nothing to hold: the compiled function of the test above
    freely = cordax.step_limit(neck, start, "explicit_euler", held=False)
    assert abs(nearest(freely, open_loop)[0] - open_loop) < 0.08
    limit = cordax.step_limit(neck, start, "explicit_euler", control)
    value, step = nearest(limit, closed_loop)
    assert abs(value - closed_loop) < 0.08
    if joints == 3:
        assert step == pytest.approx(0.185e-3, abs=0.0005e-3)
        assert limit.dt == step and limit.growing.size == 0
    else:
        assert step == 0.0
        assert np.any(np.abs(limit.growing - value) < 1e-9)


@pytest.mark.parametrize(("joints", "smallest"), [(3, 0.343), (4, -0.026)])
def test_upright_stiffness_with_slack_tendons(joints, smallest):
    """Three joints stand on their springs; four buckle slightly without prestress."""
    neck = Neck.default(joints)
    slack = lambda alpha: neck.joint_torque(alpha, 0 * alpha, 0 * alpha)
    tense = lambda alpha: -neck.length_derivatives(alpha)[0].T @ jnp.ones(joints + 1)
    both = jax.jit(jax.jacfwd(lambda alpha: (slack(alpha), tense(alpha))))
    stiffness, added = (np.asarray(x) for x in both(jnp.zeros(joints)))
    assert np.max(np.abs(stiffness - stiffness.T)) < 1e-12
    assert np.linalg.eigvalsh(stiffness)[0] == pytest.approx(smallest, abs=5e-4)
    # equal tensions t add 0.01443 t to every joint
    np.testing.assert_allclose(added, -0.01443 * np.eye(joints), atol=5e-6)


def test_structure_mass_matrix_upright():
    expected = [
        [7.24e-3, 3.41333e-3, 8.4e-4],
        [3.41333e-3, 1.78667e-3, 4.8e-4],
        [8.4e-4, 4.8e-4, 1.73333e-4],
    ]
    M = eqx.filter_jit(Neck.default(3).mass_matrix)(jnp.zeros(7))
    np.testing.assert_allclose(M[:3, :3], expected, atol=5e-9)
    np.testing.assert_allclose(M[3:, 3:], 5e-5 * np.eye(4))
    np.testing.assert_allclose(M[:3, 3:], 0.0)
