"""Robust losses, and simulations that fail."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Fit, Parameter, Recording, State, identify
from cordax.identification.loss import SCALES, Loss
from cordax.systems import Oscillator

TRUTH = Oscillator(2.0, 50.0, 0.8)
GUESS = Experiment(
    Oscillator(2.0, 60.0, 0.5), State(jnp.array([0.3]), jnp.zeros(1)), dt=0.01, integrator="rk4"
)
NOISE = 2e-3


@pytest.fixture(scope="module")
def clean():
    truth = GUESS.replace(system=TRUTH, dt=2.5e-3, duration=3.0, save_every=8)
    run = cordax.simulate(truth)
    return np.asarray(run.t), np.asarray(run["x"])


@pytest.fixture(scope="module")
def spoiled(clean):
    """A tenth of the samples far off, all to one side: sensors fail like this."""
    t, x = clean
    random = np.random.default_rng(1)
    x = x + NOISE * random.normal(size=t.size)
    x[random.choice(t.size, t.size // 10, replace=False)] += 0.1
    return Recording(t, {"x": x})


@pytest.mark.parametrize("kind", SCALES)
def test_losses_are_those_of_their_definitions(kind):
    """Values as scipy defines them, their derivatives and second derivatives, also at zero."""
    loss = Loss(kind, jnp.asarray(1.5), jnp.asarray(1.0))
    r = np.array([-30.0, -1.4, 0.0, 1e-9, 1e-4, 1.0, 1.6, 4.0])
    z = (r / 1.5) ** 2
    rho = {
        "soft_l1": 2.0 * (np.sqrt(1.0 + z) - 1.0),
        "huber": np.where(z <= 1.0, z, 2.0 * np.sqrt(z) - 1.0),
        "cauchy": np.log1p(z),
    }[kind]
    np.testing.assert_allclose(loss.transformed(r) ** 2, 1.5**2 * rho, rtol=1e-7, atol=1e-15)
    value = lambda r: 0.5 * loss.transformed(r) ** 2
    slope = jax.vmap(jax.grad(value))(jnp.asarray(r))
    np.testing.assert_allclose(loss.influence(r), slope, rtol=1e-6, atol=1e-12)
    second = jax.vmap(jax.grad(jax.grad(value)))(jnp.asarray(r))
    np.testing.assert_allclose(loss.curvature(jnp.asarray(r)), second, rtol=1e-4, atol=1e-8)


def fitted(data, loss, parameters=("stiffness", "damping")):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the summary contains them
        return identify(GUESS, data, list(parameters), noise=NOISE, loss=loss)


def test_outliers_hardly_move_a_robust_fit(spoiled, tmp_path):
    plain, robust = fitted(spoiled, "linear"), fitted(spoiled, "cauchy")
    assert "use a robust loss" in plain.summary()
    assert "cauchy loss reduces their weight" in robust.summary()
    truth, linear = np.array([50.0, 0.8]), np.asarray(robust.interval())
    assert bool(robust.succeeded) and not bool(plain.succeeded)
    assert np.all((linear[:, 0] < truth) & (truth < linear[:, 1]))
    assert np.all(robust.standard_errors < 0.3 * plain.standard_errors)
    assert 0.8 < float(robust.noise_scale) < 1.6 and float(plain.noise_scale) > 5.0
    # the profile of the loss agrees with the linearised interval
    profile = np.asarray(robust.interval(method="profile"))
    assert np.all(np.abs(profile - linear) < 0.15 * np.diff(linear, axis=1))
    again = Fit.load(robust.save(tmp_path / "fit.npz"))
    np.testing.assert_allclose(again.interval(), linear)
    assert again.problem.loss.kind == "cauchy"


def test_without_outliers_a_robust_fit_is_almost_that_of_least_squares(clean):
    t, x = clean
    data = Recording(t, {"x": x + NOISE * np.random.default_rng(2).normal(size=t.size)})
    known = Parameter("stiffness", prior=(50.0, 1.0))
    plain, robust = (fitted(data, loss, (known, "damping")) for loss in ("linear", "huber"))
    assert np.all(np.abs(robust.independent_errors / plain.independent_errors - 1.0) < 0.1)
    assert np.all(np.abs(robust.values - plain.values) < plain.independent_errors)


def test_a_loss_needs_a_scale(spoiled):
    with pytest.raises(ValueError, match="loss='huber' needs noise=, or loss_scale="):
        identify(GUESS, spoiled, ["stiffness"], loss="huber")
    with pytest.raises(ValueError, match="loss: got 'l1', expected one of linear, soft_l1"):
        identify(GUESS, spoiled, ["stiffness"], loss="l1")
    with pytest.raises(ValueError, match="loss_scale: got -1"):
        identify(GUESS, spoiled, ["stiffness"], loss="huber", loss_scale=-1.0)
    with pytest.raises(ValueError, match=r"loss_scale: got 2\.0, expected none with loss='linear'"):
        identify(GUESS, spoiled, ["stiffness"], loss_scale=2.0)


def test_a_simulation_that_fails_does_not_end_the_search(clean):
    """One of two recordings cannot be simulated: the other is fitted, and the result is no
    success."""
    t, x = clean
    good = Recording(t, {"x": x})
    bad = GUESS.replace(state0=State(jnp.array([0.3]), jnp.array([1.5e308])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = identify([GUESS, bad], [good, good], ["stiffness", "damping"], noise=NOISE)
    assert not bool(fit.succeeded) and "simulations of some recordings fail" in fit.reason
    assert np.isfinite(float(fit.cost))
    np.testing.assert_allclose(fit.values, [50.0, 0.8], rtol=1e-3)
