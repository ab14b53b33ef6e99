"""Autocovariance of residuals and the covariance it gives to estimates, against plain sums."""

import jax.numpy as jnp
import numpy as np

from cordax.identification.colour import colour, score_covariance

RNG = np.random.default_rng(5)


def test_score_covariance_is_the_double_sum():
    k, c, p = 30, 2, 3
    J, gamma = RNG.normal(size=(k, c, p)), np.zeros((c, k))
    gamma[0, :5] = [4.0, 3.0, 2.0, 1.0, 0.5]
    gamma[1, :2] = [1.0, 0.4]
    lag = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    expected = sum(J[:, i].T @ gamma[i][lag] @ J[:, i] for i in range(c))
    found = score_covariance(jnp.asarray(J), jnp.asarray(gamma))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_independent_errors_are_white_and_gaps_count_for_nothing():
    r = RNG.normal(size=(400, 3))
    found, covariance = colour(jnp.asarray(r), jnp.ones((400, 3), bool))
    assert bool(found.white)
    np.testing.assert_allclose(covariance[:, 0], np.mean(r**2, axis=0), rtol=1e-12)
    assert np.all(found.samples < 2.5) and float(found.independent) > 500
    gaps = RNG.random((400, 3)) < 0.5
    found, covariance = colour(jnp.asarray(np.where(gaps, 0.0, r)), jnp.asarray(~gaps))
    assert bool(found.white)
    variance = [np.mean(r[~gaps[:, i], i] ** 2) for i in range(3)]
    np.testing.assert_allclose(covariance[:, 0], variance, rtol=1e-12)


def test_a_share_kept_from_sample_to_sample_is_found():
    """Errors that keep a share a agree over (1 + a)/(1 - a) samples."""
    a, k = 0.8, 40_000
    e, r = RNG.normal(size=k), np.zeros(k)
    for i in range(1, k):
        r[i] = a * r[i - 1] + e[i]
    found, _ = colour(jnp.asarray(r[:, None]), jnp.ones((k, 1), bool))
    assert not bool(found.white)
    assert abs(float(found.neighbours[0]) - a) < 0.02
    # the taper takes some of it: within a quarter
    assert 0.75 * 9.0 < float(found.samples[0]) < 1.25 * 9.0


def test_one_smooth_curve_is_a_handful_of_numbers():
    t = np.linspace(0.0, 1.0, 2000)
    found, _ = colour(jnp.asarray(np.cos(2 * np.pi * t)[:, None]), jnp.ones((2000, 1), bool))
    assert not bool(found.white) and float(found.independent) < 10
