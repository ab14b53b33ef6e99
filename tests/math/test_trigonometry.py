"""Vectorised sine, cosine and arc tangent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math.trigonometry import arctan, sincos


@pytest.mark.parametrize("reach", [0.1, 4.0, 1e3, 1e5])
def test_accuracy(reach):
    """Against long double, which has eleven more bits."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-reach, reach, 20_000)
    s, c = jax.jit(sincos)(x)
    exact = np.asarray(x, np.longdouble)
    for got, want in ((s, np.sin(exact)), (c, np.cos(exact))):
        error = np.abs(np.asarray(got, np.longdouble) - want)
        assert np.max(error) < 2.0**-52
        if reach <= np.pi / 4:  # no reduction: the last bit
            assert np.max(error / np.spacing(np.abs(want.astype(float)))) < 1.0


def test_special_angles():
    k = np.arange(-8, 9)
    s, c = sincos(jnp.asarray(k * np.pi / 2))
    np.testing.assert_allclose(s, np.array([0.0, 1.0, 0.0, -1.0])[k % 4], atol=2e-15)
    np.testing.assert_allclose(c, np.array([1.0, 0.0, -1.0, 0.0])[k % 4], atol=2e-15)
    assert all(np.isnan(y) for y in sincos(jnp.asarray(np.nan)))


def test_derivatives():
    x = jnp.linspace(-7.0, 7.0, 29)
    s, c = jnp.sin(x), jnp.cos(x)
    for mode in (jax.jacfwd, jax.jacrev, lambda f: jax.vmap(jax.grad(f))):
        ds, dc = (jax.jit(mode(lambda x, i=i: sincos(x)[i]))(x) for i in (0, 1))
        ds, dc = (d if d.ndim == 1 else jnp.diag(d) for d in (ds, dc))
        np.testing.assert_allclose(ds, c, atol=1e-15)
        np.testing.assert_allclose(dc, -s, atol=1e-15)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(lambda x: sincos(x)[0]))))(x)
    np.testing.assert_allclose(second, -s, atol=1e-15)


def test_single_precision():
    s, c = sincos(jnp.float32(1.0))
    assert s.dtype == c.dtype == jnp.float32
    np.testing.assert_allclose([s, c], [np.sin(1.0), np.cos(1.0)], rtol=1e-7)


@pytest.mark.parametrize("reach", [0.4, 3.0, 1e6])
def test_arc_tangent(reach):
    x = np.random.default_rng(0).uniform(-reach, reach, 20_000)
    want = np.arctan(np.asarray(x, np.longdouble))
    error = np.abs(np.asarray(jax.jit(arctan)(x), np.longdouble) - want)
    assert np.max(error / np.spacing(np.abs(want.astype(float)))) < 1.0
    slope = jax.vmap(jax.grad(arctan))(jnp.asarray(x[:20]))
    np.testing.assert_allclose(slope, 1.0 / (1.0 + x[:20] ** 2), rtol=1e-14)


def test_arc_tangent_at_the_ends():
    x = jnp.array([0.0, -0.0, jnp.inf, -jnp.inf, 0.4375, 1.0])
    np.testing.assert_allclose(arctan(x), np.arctan(np.asarray(x)), rtol=2e-16)
    assert np.isnan(arctan(jnp.asarray(jnp.nan)))
    assert arctan(jnp.float32(1.0)).dtype == jnp.float32
