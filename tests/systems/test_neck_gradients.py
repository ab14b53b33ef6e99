"""Derivatives of a whole run of the neck with respect to its physical parameters, and batches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import ComputedTorque, RaisedCosine
from cordax.systems import Neck
from systems.reference import AMPLITUDE

NOMINAL = Neck.default(3)
CONTROL = ComputedTorque(NOMINAL, RaisedCosine(AMPLITUDE[3]))
PARAMETERS = ("tendon stiffness", "tendon damping", "rotor inertia")


@jax.jit
def tracking_error(scale):
    """Mean squared tracking error [rad^2] over 6.3 s of a neck whose k_c, d_c and rotor inertia are
    `scale` times the nominal ones, which the controller believes in; shape (3,) to ()."""
    where = lambda m: (m.tendon.stiffness, m.tendon.damping, m.motors.inertia)
    plant = eqx.tree_at(where, NOMINAL, [x * s for x, s in zip(where(NOMINAL), scale, strict=True)])
    run = cordax.simulate(
        plant, CONTROL.start(), dt=2e-3, duration=6.3, control=CONTROL, throw=False
    )
    return jnp.mean(CONTROL.tracking_error(run) ** 2)


@pytest.fixture(scope="module")
def differences():
    """Central differences of order 4, shape (3,)."""
    h, f = 1e-3, lambda i, s: float(tracking_error(jnp.ones(3).at[i].add(s)))
    return np.array(
        [(8 * (f(i, h) - f(i, -h)) - (f(i, 2 * h) - f(i, -2 * h))) / (12 * h) for i in range(3)]
    )


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.grad], ids=["forward", "reverse"])
def test_gradient_of_a_long_run(mode, differences):
    gradient = np.asarray(jax.jit(mode(tracking_error))(jnp.ones(3)))
    for name, mine, expected in zip(PARAMETERS, gradient, differences, strict=True):
        assert abs(expected) > 1e-12, name
        assert mine == pytest.approx(expected, rel=1e-6), name


def test_batch_equals_single_runs():
    scales = jnp.asarray([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [1.0, 3.0, 0.5]])
    batch = np.asarray(jax.jit(jax.vmap(tracking_error))(scales))
    singles = [float(tracking_error(s)) for s in scales]
    np.testing.assert_allclose(batch, singles, rtol=1e-9)
    assert len(set(np.round(batch, 12))) == 3
