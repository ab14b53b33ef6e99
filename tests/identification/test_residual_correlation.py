"""Autocovariance of residuals and the covariance it gives to estimates, against plain sums."""

import jax
import jax.numpy as jnp
import numpy as np

from cordax.identification import residual_correlation as colours

colour, score_covariance = jax.jit(colours.colour), jax.jit(colours.score_covariance)
RNG = np.random.default_rng(5)


def one(r, seen=None):
    """Of a single recording."""
    seen = np.ones(r.shape, bool) if seen is None else seen
    found, (covariance,) = colour([jnp.asarray(r)], [jnp.asarray(seen)])
    return found, covariance


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
    found, covariance = one(r)
    assert bool(found.white)
    np.testing.assert_allclose(covariance[:, 0], np.mean(r**2, axis=0), rtol=1e-12)
    assert np.all(found.samples < 2.5) and float(found.independent) > 500
    gaps = RNG.random((400, 3)) < 0.5
    found, covariance = one(np.where(gaps, 0.0, r), ~gaps)
    assert bool(found.white)
    variance = [np.mean(r[~gaps[:, i], i] ** 2) for i in range(3)]
    np.testing.assert_allclose(covariance[:, 0], variance, rtol=1e-12)


def test_a_share_kept_from_sample_to_sample_is_found():
    """Errors that keep a share a agree over (1 + a)/(1 - a) samples."""
    a, k = 0.8, 40_000
    e, r = RNG.normal(size=k), np.zeros(k)
    for i in range(1, k):
        r[i] = a * r[i - 1] + e[i]
    found, _ = one(r[:, None])
    assert not bool(found.white)
    assert abs(float(found.neighbours[0]) - a) < 0.02
    # the taper takes some of it: within a quarter
    assert 0.75 * 9.0 < float(found.samples[0]) < 1.25 * 9.0


def test_one_smooth_curve_is_a_handful_of_numbers():
    t = np.linspace(0.0, 1.0, 2000)
    found, _ = one(np.cos(2 * np.pi * t)[:, None])
    assert not bool(found.white) and float(found.independent) < 10


def test_a_sensor_read_seldom_is_as_coloured_as_one_read_at_every_instant():
    """Of a recording with other instants between, or cut in two."""
    a, k = 0.8, 4000
    e, r = RNG.normal(size=k), np.zeros(k)
    for i in range(1, k):
        r[i] = a * r[i - 1] + e[i]
    whole, _ = one(r[:, None])
    seldom, seen = np.zeros((10 * k, 1)), np.zeros((10 * k, 1), bool)
    seldom[::10, 0], seen[::10] = r, True
    found, _ = one(seldom, seen)
    assert np.allclose(found.samples, whole.samples, rtol=1e-9)
    assert np.allclose(found.neighbours, whole.neighbours, rtol=1e-9)
    assert not bool(found.white)
    halves = [jnp.asarray(x[:, None]) for x in np.split(r, 2)]
    parts, _ = colour(halves, [jnp.ones((k // 2, 1), bool)] * 2)
    assert not bool(parts.white) and parts.samples.shape == (2,)
    assert np.isclose(parts.independent, whole.independent, rtol=0.3)
