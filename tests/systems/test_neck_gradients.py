"""Derivatives of a whole run of the neck with respect to its physical parameters, and batches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import ComputedTorque, RaisedCosine
from cordax.systems import Neck
from helpers.neck_reference import AMPLITUDE

NOMINAL = Neck.default(3)
CONTROL = ComputedTorque(NOMINAL, RaisedCosine(AMPLITUDE[3]))


def tracking_error(scale):
    """Mean squared tracking error [rad^2] over 6.3 s of a neck whose k_c, d_c and rotor inertia are
    `scale` times the nominal ones, which the controller believes in; shape (3,) to ()."""
    where = lambda m: (m.tendon.stiffness, m.tendon.damping, m.motors.inertia)
    plant = eqx.tree_at(where, NOMINAL, [x * s for x, s in zip(where(NOMINAL), scale, strict=True)])
    run = cordax.simulate(
        plant, CONTROL.start(), dt=2e-3, duration=6.3, control=CONTROL, throw=False
    )
    return jnp.mean(CONTROL.tracking_error(run) ** 2)


H = 1e-3  # of the differences
OFFSETS = (2 * H, H, -H, -2 * H)


@pytest.fixture(scope="module")
def batch():
    """Tracking errors of the nominal neck, then of those with one parameter offset: parameter by
    parameter, by each of `OFFSETS`; shape (13,)."""
    changed = [jnp.ones(3).at[i].add(offset) for i in range(3) for offset in OFFSETS]
    return np.asarray(jax.jit(jax.vmap(tracking_error))(jnp.stack([jnp.ones(3), *changed])))


def test_gradient_of_a_long_run(batch):
    """In both modes against central differences of order 4. The run that reverse mode goes through
    is a single one: what it finds equals the member of the batch."""
    value, reverse = jax.jit(jax.value_and_grad(tracking_error))(jnp.ones(3))
    forward = jax.jit(jax.jacfwd(tracking_error))(jnp.ones(3))
    assert float(value) == pytest.approx(batch[0], rel=1e-9)
    up2, up, down, down2 = batch[1:].reshape(3, 4).T
    expected = (8 * (up - down) - (up2 - down2)) / (12 * H)
    assert np.all(np.abs(expected) > 1e-12)
    np.testing.assert_allclose(forward, expected, rtol=1e-6)
    np.testing.assert_allclose(reverse, expected, rtol=1e-6)
    assert len(set(batch)) == 13
