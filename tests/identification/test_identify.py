"""Fits of a forced oscillator, whose answer is known."""

import re
import warnings
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import cordax
from cordax import Parameter, Recording, identify
from cordax.systems import Oscillator

TRUTH = Oscillator(2.0, 50.0, 0.8)
START = Oscillator(2.0, 50.0 * 3.0, 0.8 / 3.0)
NAMES = ["stiffness", "damping"]
SIGMA = 1e-3
SETUP = {"dt": 0.02, "integrator": "rk4", "check_step": False}


def force(t, state):
    return jnp.array([20.0 * jnp.sin(3.0 * t)])


@pytest.fixture(scope="module")
def exact():
    """The recording without noise, from a finer step."""
    run = cordax.simulate(
        TRUTH, dt=0.002, duration=4.0, integrator="rk4", control=force, save_every=10
    )
    return run.t, run["x"]


def noisy(exact, key=0):
    t, x = exact
    return Recording(t, {"x": x + SIGMA * jax.random.normal(jax.random.key(key), x.shape)})


@contextmanager
def warned(*patterns):
    """Each of these is warned of, whatever else is."""
    with pytest.warns(UserWarning) as caught:
        yield
    said = [str(w.message) for w in caught]
    for pattern in patterns:
        assert any(re.search(pattern, text) for text in said), (pattern, said)


@pytest.fixture(scope="module")
def fit(exact):
    return identify(START, noisy(exact), NAMES, control=force, noise=SIGMA, **SETUP)


def test_levenberg_marquardt_finds_the_parameters(fit):
    assert bool(fit.succeeded) and fit.reason.startswith("Converged")
    assert int(fit.iterations) < 40
    error = (fit.values - jnp.array([50.0, 0.8])) / fit.standard_errors
    assert np.all(np.abs(error) < 3.5)
    assert np.all(fit.standard_errors < jnp.array([0.05, 0.01]))
    assert np.isclose(fit["stiffness"], fit.system.stiffness)
    assert np.isclose(fit.estimates["damping"], fit.system.damping)
    assert np.array_equal(fit.start, [150.0, 0.8 / 3.0])
    assert 0.85 < float(fit.noise_scale) < 1.15
    assert np.isclose(np.std(fit.residuals["x"]), SIGMA, rtol=0.15)


def test_the_optimum_is_stationary_and_the_covariance_is_that_of_the_linearised_model(fit):
    """Against residuals and derivatives formed here, by central differences of simulations."""
    recorded = np.asarray(fit.recording.values["x"])

    def model(stiffness, damping):
        machine = Oscillator(2.0, stiffness, damping)
        run = cordax.simulate(machine, dt=0.02, duration=4.0, integrator="rk4", control=force)
        return np.asarray(run["x"])

    k, d = map(float, fit.values)
    slope = np.stack(
        [
            (model(k * (1 + 1e-5), d) - model(k * (1 - 1e-5), d)) / (2e-5 * k),
            (model(k, d * (1 + 1e-5)) - model(k, d * (1 - 1e-5))) / (2e-5 * d),
        ],
        axis=1,
    )
    r = recorded - model(k, d)
    assert np.allclose(r, fit.residuals["x"], atol=1e-12)
    cosine = slope.T @ r / (np.linalg.norm(slope, axis=0) * np.linalg.norm(r))
    assert np.all(np.abs(cosine) < 1e-5)
    covariance = np.linalg.inv(slope.T @ slope) * (r @ r) / (r.size - 2)
    assert np.allclose(fit.covariance, covariance, rtol=1e-5, atol=0.0)
    assert np.allclose(np.diag(fit.correlation), 1.0)
    low, high = np.asarray(fit.interval(0.95)).T
    assert np.allclose((high - low) / 2, 1.972 * fit.standard_errors, rtol=1e-3)
    assert np.all(np.asarray(fit.interval(0.99))[:, 0] < low) and np.all(low > 0)


def test_a_batch_of_noise_draws_is_one_call_and_is_covered(exact, fit):
    t, x = exact
    draws = x + SIGMA * jax.random.normal(jax.random.key(0), (200, *x.shape))

    @jax.jit
    def all_fits(draws):
        one = lambda x: identify(
            START, Recording(np.asarray(t), {"x": x}), NAMES, control=force, noise=SIGMA, **SETUP
        )
        return jax.vmap(one)(draws)

    fits = all_fits(draws)
    assert np.all(fits.succeeded) and fits.values.shape == (200, 2)
    interval = np.asarray(fits.interval())
    truth = np.array([50.0, 0.8])
    covered = np.mean((interval[..., 0] < truth) & (truth < interval[..., 1]), axis=0)
    # 200 draws at 95 %: the standard deviation of the share is 1.5 %
    assert np.all(covered > 0.90), covered
    scatter = np.std(fits.values, axis=0)
    assert np.allclose(scatter, fit.standard_errors, rtol=0.2)


def test_other_starts_and_numbers_do_not_retrace(exact, fit):
    from cordax.identification._identify import _solve

    before = _solve.compiled._cached._cache_size()  # pyright: ignore
    other = Oscillator(2.0, 30.0, 1.2)
    again = identify(other, noisy(exact), NAMES, control=force, noise=SIGMA, **SETUP)
    assert _solve.compiled._cached._cache_size() == before  # pyright: ignore
    assert np.allclose(again.values, fit.values, rtol=1e-7)


def test_an_optax_optimiser_finds_the_same_optimum(exact, fit):
    found = identify(
        Oscillator(2.0, 60.0, 1.0),
        noisy(exact),
        NAMES,
        control=force,
        noise=SIGMA,
        method=optax.adam(optax.exponential_decay(0.05, 100, 0.5)),
        max_steps=1500,
        tolerance=1e-7,
        **SETUP,
    )
    assert bool(found.succeeded), found.reason
    assert np.allclose(found.values, fit.values, rtol=1e-5)
    assert np.allclose(found.covariance, fit.covariance, rtol=1e-3)


@pytest.fixture(scope="module")
def all_fits(exact):
    """Fits of many realisations (n, k), compiled once."""
    t = np.asarray(exact[0])
    one = lambda x: identify(TRUTH, Recording(t, {"x": x}), NAMES, control=force, **SETUP)
    return jax.jit(jax.vmap(one))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_intervals_contain_the_truth_where_errors_are_correlated(exact, all_fits, share):
    """Noise that keeps a share of itself from sample to sample: estimates scatter more than with
    independent errors, and 95 % intervals still cover the truth in 90 to 98 % of realisations."""
    x = exact[1]
    white = jax.random.normal(jax.random.key(3), (200, *x.shape))

    def autoregressive(e):
        step = lambda y, e: (share * y + e, share * y + e)
        return jax.lax.scan(step, e[0] / jnp.sqrt(1 - share**2), e)[1]

    fits = all_fits(x + SIGMA * jax.vmap(autoregressive)(white))
    scatter = np.std(fits.values, axis=0)
    ratio = np.mean(fits.standard_errors, axis=0) / scatter
    assert np.all((ratio > 0.85) & (ratio < 1.15)), ratio
    if share == 0.9:
        assert np.mean(fits.about.errors.white) == 0.0
        assert np.all(scatter > 2.0 * np.mean(fits.independent_errors, axis=0))
    interval, truth = np.asarray(fits.interval()), np.array([50.0, 0.8])
    covered = np.mean((interval[..., 0] < truth) & (truth < interval[..., 1]), axis=0)
    assert np.all((covered >= 0.9) & (covered <= 0.98)), covered


def test_intervals_include_the_bias_of_the_time_step(exact):
    """Steps so coarse that estimates are off by several standard errors."""
    t, x = exact
    noise = SIGMA * jax.random.normal(jax.random.key(4), x.shape)
    setup = {"dt": 0.02, "integrator": "rosenbrock_2"}
    with warned("time step"):
        found = identify(
            TRUTH, Recording(t, {"x": x + noise}), NAMES, control=force, noise=SIGMA, **setup
        )
    truth, values = np.array([50.0, 0.8]), np.asarray(found.values)
    assert np.any(np.abs(values - truth) > 3.0 * np.asarray(found.standard_errors))
    low, high = np.asarray(found.interval()).T
    assert np.all((low < truth) & (truth < high)), (low, high)
    assert np.all(high - low < 5.0 * np.abs(values - truth) + 5.0 * found.standard_errors)
    # of order 2: half the step removes three quarters of the bias
    slope = jax.jvp(found.parameters.values, (found.y,), (jnp.ones_like(found.y),))[1]
    np.testing.assert_allclose(0.75 * slope * found._step_bias(), found.step_shift, rtol=1e-12)


def test_smooth_residuals_are_said_not_to_show_what_the_motion_does_not_show():
    """A drift of the sensor much larger than what the damper does to a motion without resonance."""
    slow = lambda t, state: jnp.array([20.0 * jnp.sin(0.5 * t)])
    truth = Oscillator(2.0, 5e3, 2.0)
    still = cordax.State(jnp.zeros(1), jnp.zeros(1))
    run = cordax.simulate(
        truth, still, dt=0.02, duration=4.0, integrator="rosenbrock_2", control=slow
    )
    values = run["x"] + 1e-4 * jnp.sin(2.0 * run.t)
    start = Oscillator(2.0, 6e3, 4.0)
    setup = {**SETUP, "integrator": "rosenbrock_2", "control": slow, "state0": still}
    with warned("not noise", "does not show damping against errors.*could move it by a factor"):
        found = identify(start, Recording(run.t, {"x": values}), NAMES, **setup)
    low, high = np.asarray(found.interval())[1]
    assert low < 2.0 < high
    assert found.reach_of_errors[0] < 0.3 < found.reach_of_errors[1]
    assert "does not show damping" in found.summary()


def test_gaps_and_partial_observation(exact):
    t, _ = exact
    values = np.array(noisy(exact).values["x"])
    values[20:60] = np.nan
    gaps = Recording(t, {"x": values})
    keep = ~np.isnan(values)
    without = Recording(np.asarray(t)[keep], {"x": values[keep]})
    a, b = (identify(START, r, NAMES, control=force, **SETUP) for r in (gaps, without))
    assert np.allclose(a.values, b.values, rtol=1e-7)
    assert np.allclose(a.covariance, b.covariance, rtol=1e-6)
    assert int(a.freedom) == keep.sum() - 2
    assert np.array_equal(np.isnan(a.residuals["x"]), ~keep)


def test_start_and_inputs_may_depend_on_the_machine_and_be_fitted():
    rest = lambda machine: cordax.State(jnp.array([10.0]) / machine.stiffness, jnp.zeros(1))
    push = lambda machine: jnp.array([5.0]) + 0.0 * machine.mass
    run = cordax.simulate(
        TRUTH, rest(TRUTH), dt=0.02, duration=4.0, integrator="rk4", control=push(TRUTH)
    )
    recording = Recording(run.t, {"x": run["x"]})
    found = identify(START, recording, NAMES, state0=rest, control=push, **SETUP)
    assert np.allclose(found.values, [50.0, 0.8], rtol=1e-6)
    guess = cordax.State(jnp.array([0.3]), jnp.array([0.1]))
    also = identify(
        START, recording, [*NAMES, "state0.q[0]", "state0.v[0]"], state0=guess,
        control=push(TRUTH), **SETUP,
    )  # fmt: skip
    assert np.allclose(also.values, [50.0, 0.8, 0.2, 0.0], rtol=1e-5, atol=1e-6)


def test_what_cannot_be_told_apart_is_named():
    """Free vibration knows only the ratios of mass, stiffness and damping."""
    run = cordax.simulate(TRUTH, dt=0.02, duration=4.0, integrator="rk4")
    recording = Recording(run.t, {"x": run["x"] + SIGMA * jnp.cos(1e3 * run.t)})
    machine = Oscillator(2.1, 45.0, 0.9)
    with warned("does not determine.*mass.*stiffness.*damping", "not noise"):
        found = identify(machine, recording, ["mass", *NAMES], **SETUP)
    (direction,) = found.about.lost_directions()
    assert np.allclose(np.abs(direction), 1 / np.sqrt(3), atol=1e-5)
    assert np.isclose(found["stiffness"] / found["mass"], 25.0, rtol=1e-3)
    assert "does not determine" in found.summary()
    # an input gain that never acts is lost altogether
    with pytest.warns(UserWarning, match=r"determine \+?-?1\.000 log\(mass\)"):
        still = cordax.State(jnp.zeros(1), jnp.zeros(1))
        identify(
            machine, Recording(run.t, {"x": jnp.zeros_like(run.t)}), ["mass"], state0=still, **SETUP
        )


def test_single_samples_far_from_the_others_are_named(exact):
    """Two of 201 samples that the sensor got wrong move the estimates by standard errors of all the
    others; without them they are right."""
    t, clean = exact[0], noisy(exact).values["x"]
    spoilt = clean.at[jnp.array([40, 90])].add(0.2)
    fitting = lambda x: identify(START, Recording(t, {"x": x}), NAMES, control=force, **SETUP)
    with warned(r"single samples lie far.*x at 0\.8, 1\.8 s.*make them NaN"):
        found = fitting(spoilt)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fitting(spoilt.at[jnp.array([40, 90])].set(jnp.nan))
    moved, errors = found.values - again.values, again.standard_errors
    assert np.max(np.abs(moved / errors)) > 2.0
    assert np.all(np.abs(again.values - jnp.array([50.0, 0.8])) < 3.5 * errors)
    assert "single samples" not in again.summary()


def test_a_number_that_goes_towards_zero_is_named():
    """A motion that grows a little wants less damping than none."""
    run = cordax.simulate(Oscillator(2.0, 50.0, 0.0), dt=0.02, duration=4.0, integrator="rk4")
    recording = Recording(run.t, {"x": run["x"] * jnp.exp(0.01 * run.t)})
    with warned("damping went towards zero.*Set it to zero"):
        found = identify(START, recording, NAMES, max_steps=30, **SETUP)
    assert "warning: damping went towards zero" in found.summary()
    assert float(found["damping"]) < 0.01


def test_a_step_that_biases_the_estimates_is_reported(exact):
    setup = {**SETUP, "check_step": True}
    with warned(
        "(stiffness|damping) depends on the time step",
        "time step or noise level that do not suit",
        "residuals are not noise",
        "how the motion is simulated matters.*half the time step",
    ):
        crude = identify(
            START, noisy(exact), NAMES, control=force, noise=SIGMA,
            **{**setup, "integrator": "linearly_implicit_euler"},
        )  # fmt: skip
    # damping goes to zero: the search ends when smaller values change nothing
    assert int(crude.iterations) < 50
    assert "warning: damping depends on the time step" in crude.summary()
    assert abs(float(crude["damping"]) - 0.8) > 5 * float(crude.standard_errors[1])
    good = identify(START, noisy(exact), NAMES, control=force, noise=SIGMA, **setup)
    halved = identify(
        START, noisy(exact), NAMES, control=force, noise=SIGMA, **{**SETUP, "dt": 0.01}
    )
    assert np.allclose(good.step_shift, halved.values - good.values, rtol=0.01)


def test_a_search_that_ends_early_says_why(exact):
    with pytest.warns(UserWarning, match="allowed number of iterations"):
        short = identify(START, noisy(exact), NAMES, control=force, max_steps=2, **SETUP)
    assert not bool(short.succeeded)
    with pytest.warns(UserWarning, match="failed with the start values"):
        hopeless = eqx.tree_at(lambda o: o.stiffness, START, jnp.array(1e9))
        failed = identify(hopeless, noisy(exact), NAMES, control=force, **SETUP)
    assert np.array_equal(failed.values, failed.start)


def test_residuals_far_above_the_given_noise_are_no_success(exact, fit):
    """Inputs that are not those of the recording: the search ends, at numbers that explain
    nothing. Without a noise level only their colour tells."""
    t, _ = exact
    setup = {**SETUP, "control": force}
    other = Recording(t, {"x": noisy(exact).values["x"] + 0.05 * jnp.cos(20.0 * t)})
    with warned("more than 3 times the given noise", "residuals are not noise"):
        found = identify(START, other, NAMES, noise=SIGMA, **setup)
    assert not bool(found.succeeded) and float(found.noise_scale) > 3.0
    assert "more than 3 times the given noise" in found.summary()
    with warned("residuals are not noise"):
        again = identify(START, other, NAMES, **setup)
    assert bool(again.succeeded) and np.allclose(again.values, found.values, rtol=1e-6)


def test_bad_arguments_are_named(exact):
    recording = noisy(exact)
    bad = [
        ({"noise": {"y": 1.0}}, "noise.*exactly x"),
        ({"noise": -1.0}, "standard deviation > 0"),
        ({"noise": np.inf}, "finite standard deviation > 0"),
        ({"method": "newton"}, "'levenberg-marquardt' or an optax"),
        ({"max_steps": 0}, "max_steps"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"dt": -0.03}, "dt.*> 0"),
        ({"integrator": "magic"}, "one of explicit_euler"),
    ]
    for options, message in bad:
        with pytest.raises(ValueError, match=message):
            identify(START, recording, NAMES, **{**SETUP, **options})
    with pytest.raises(ValueError, match=r"'y'.*names of the machine: x"):
        identify(START, Recording(recording.t, {"y": recording.values["x"]}), NAMES, **SETUP)
    with pytest.raises(ValueError, match="inf, expected finite values"):
        values = recording.values["x"].at[3].set(jnp.inf)
        identify(START, Recording(recording.t, {"x": values}), NAMES, **SETUP)
    for rest in (0, 2):  # nothing, or as many numbers as are asked for
        values = recording.values["x"].at[rest:].set(jnp.nan)
        with pytest.raises(ValueError, match=f"got {rest} numbers.*more than the 2 fitted"):
            identify(START, Recording(recording.t, {"x": values}), NAMES, **SETUP)
    with pytest.raises(ValueError, match="a Recording"):
        identify(START, recording.values, NAMES, **SETUP)  # pyright: ignore


def test_bounds_hold(exact):
    low = Parameter("stiffness", bounds=(10.0, 45.0))
    start = Oscillator(2.0, 30.0, 0.8)
    with warned("stiffness ended at its bound, 45", "residuals are not noise"):
        found = identify(start, noisy(exact), [low], control=force, **SETUP)
    assert 44.9 < float(found["stiffness"]) <= 45.0
