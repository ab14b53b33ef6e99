"""Autoregressive models of residuals and the covariance they give to estimates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import toeplitz

from cordax.identification import residual_correlation as correlation

RNG = np.random.default_rng(5)
error_covariance = jax.jit(correlation.error_covariance)


def autoregressive(share, *shape, rng=RNG):
    """Stationary AR(1) processes of unit variance along the first axis."""
    r = rng.normal(size=shape)
    for i in range(1, len(r)):
        r[i] = share * r[i - 1] + np.sqrt(1.0 - share**2) * r[i]
    return r


def model(r, seen=None):
    """Error model of a single recording (k, c), and a covariance for one parameter: the mean."""
    seen = np.ones(r.shape, bool) if seen is None else seen
    slopes = seen[..., None].astype(float)
    half = jnp.eye(1) / np.sqrt(seen.sum())
    return error_covariance([jnp.asarray(r)], [jnp.asarray(slopes)], [jnp.asarray(seen)], half)


def test_score_covariance_is_the_double_sum():
    k, c, p = 30, 2, 3
    J, gamma = RNG.normal(size=(k, c, p)), np.zeros((c, k))
    gamma[0, :5] = [4.0, 3.0, 2.0, 1.0, 0.5]
    gamma[1, :2] = [1.0, 0.4]
    expected = sum(J[:, i].T @ toeplitz(gamma[i]) @ J[:, i] for i in range(c))
    padded = np.concatenate([gamma, np.zeros((c, 1)), gamma[:, :0:-1]], axis=1)
    spectrum, waves = np.fft.rfft(padded, axis=1).real.T, np.fft.rfft(J, 2 * k, axis=0)
    found = jax.jit(correlation.score_covariance)(waves, spectrum)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_independent_errors_are_white_and_gaps_count_for_nothing():
    r = RNG.normal(size=(400, 3))
    errors, covariance, _ = model(r)
    assert bool(errors.white) and np.all(errors.length < 2.5)
    np.testing.assert_allclose(errors.innovation, np.mean(r**2, axis=0), rtol=0.05)
    np.testing.assert_allclose(covariance[0, 0], np.mean(r**2) / r.size, rtol=0.2)
    gaps = RNG.random((400, 3)) < 0.5
    errors, covariance, _ = model(np.where(gaps, 0.0, r), ~gaps)
    assert bool(errors.white)
    np.testing.assert_array_equal(errors.count, np.sum(~gaps, axis=0))
    variance = [np.mean(r[~gaps[:, i], i] ** 2) for i in range(3)]
    np.testing.assert_allclose(errors.innovation, variance, rtol=0.05)


def test_a_share_kept_from_sample_to_sample_is_found():
    """Errors that keep a share a are correlated over (1 + a)/(1 - a) samples, and so is the
    variance of their mean larger."""
    a, k = 0.8, 40_000
    errors, covariance, _ = model(autoregressive(a, k, 1))
    assert not bool(errors.white)
    assert abs(float(errors.lag_one[0]) - a) < 0.02
    assert abs(float(np.sum(errors.coefficients)) - a) < 0.05
    # the taper takes some of it: within a quarter
    assert 0.75 * 9.0 < float(errors.length[0]) < 1.25 * 9.0
    assert abs(float(covariance[0, 0]) * k / 9.0 - 1.0) < 0.2


def test_errors_that_the_fit_follows_are_added_to_the_covariance():
    """Means of 60 strongly correlated samples: residuals are smaller and less correlated than the
    errors. Averaged over realisations, the estimated variance is still that of the means."""
    a, k, draws = 0.8, 60, 400
    r = autoregressive(a, k, draws, rng=np.random.default_rng(1))
    means = r.mean(axis=0)
    slopes, seen, half = jnp.ones((k, 1, 1)), jnp.ones((k, 1), bool), jnp.eye(1) / np.sqrt(k)

    @functools.partial(jax.vmap, in_axes=1)
    def variance(r):
        return correlation.error_covariance([r[:, None]], [slopes], [seen], half)[1][0, 0]

    ratio = np.mean(jax.jit(variance)(jnp.asarray(r - means))) / np.var(means)
    assert 0.8 < ratio < 1.25, ratio


def test_degrees_of_freedom_are_those_of_the_scatter_of_variances():
    """Relative variance of estimated variances against their scatter over realisations."""
    a, k, draws = 0.6, 400, 300
    r = jnp.asarray(autoregressive(a, k, draws, rng=np.random.default_rng(2)))
    slopes, seen, half = jnp.ones((k, 1, 1)), jnp.ones((k, 1), bool), jnp.eye(1) / np.sqrt(k)

    @functools.partial(jax.vmap, in_axes=1)
    def described(r):
        _, covariance, relative = correlation.error_covariance([r[:, None]], [slopes], [seen], half)
        return covariance[0, 0], relative[0]

    variance, relative = jax.jit(described)(r - jnp.mean(r, axis=0))
    observed = np.var(variance) / np.mean(variance) ** 2
    assert 0.5 < np.median(relative) / observed < 2.0, (np.median(relative), observed)


def test_one_smooth_curve_leaves_few_degrees_of_freedom():
    t = np.linspace(0.0, 1.0, 2000)
    errors, _, relative = model(np.cos(2 * np.pi * t)[:, None])
    assert not bool(errors.white) and 2.0 / float(relative[0]) < 20


def test_a_sensor_read_seldom_is_as_coloured_as_one_read_at_every_instant():
    """Of a recording with other instants between, or cut in two."""
    k = 4000
    r = autoregressive(0.8, k, 1)
    errors, covariance, _ = model(r)
    seldom, seen = np.zeros((10 * k, 1)), np.zeros((10 * k, 1), bool)
    seldom[::10], seen[::10] = r, True
    sparse, sparse_covariance, _ = model(seldom, seen)
    assert np.allclose(sparse.length, errors.length, rtol=1e-9)
    assert np.allclose(sparse.coefficients, errors.coefficients, rtol=1e-4, atol=1e-6)
    assert np.allclose(sparse_covariance, covariance, rtol=1e-3) and not bool(sparse.white)
    halves = [jnp.asarray(x) for x in np.split(r, 2)]
    seen = jnp.ones((k // 2, 1), bool)
    slopes = [jnp.ones((k // 2, 1, 1))] * 2
    parts, parted, _ = error_covariance(halves, slopes, [seen] * 2, jnp.eye(1) / np.sqrt(k))
    assert not bool(parts.white) and parts.length.shape == (2,)
    assert np.isclose(parted, covariance, rtol=0.3)
