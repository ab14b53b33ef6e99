"""Values and derivatives exactly at the singular points, and elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math.safe import safe_arccos, safe_norm, safe_sqrt, safe_unit

SINGULAR = [
    # function, point, value there; first and second derivatives must vanish
    pytest.param(safe_sqrt, 0.0, 0.0, id="sqrt at 0"),
    pytest.param(safe_sqrt, -1.0, 0.0, id="sqrt below 0"),
    pytest.param(safe_norm, [0.0, 0.0, 0.0], 0.0, id="norm at 0"),
    pytest.param(safe_unit, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], id="unit at 0"),
    pytest.param(safe_arccos, 1.0, 0.0, id="arccos at 1"),
    pytest.param(safe_arccos, -1.0, np.pi, id="arccos at -1"),
    pytest.param(safe_arccos, 1.0 + 1e-12, 0.0, id="arccos beyond 1"),
]


@pytest.mark.parametrize(("f", "x", "value"), SINGULAR)
def test_at_the_singular_point(f, x, value):
    x = jnp.asarray(x)
    np.testing.assert_allclose(f(x), value, atol=1e-15)
    derivatives = (
        jax.jacfwd(f),
        jax.jacrev(f),
        jax.jacfwd(jax.jacrev(f)),
        jax.jacrev(jax.jacfwd(f)),
        jax.jacfwd(jax.jacfwd(f)),
    )
    for got in jax.jit(lambda x: [d(x) for d in derivatives])(x):
        np.testing.assert_array_equal(got, np.zeros_like(got))


REGULAR = [
    pytest.param(safe_sqrt, jnp.sqrt, 2.3, id="sqrt"),
    pytest.param(safe_norm, jnp.linalg.norm, [0.3, -0.4, 1.2], id="norm"),
    pytest.param(safe_unit, lambda x: x / jnp.linalg.norm(x), [0.3, -0.4, 1.2], id="unit"),
    pytest.param(safe_arccos, jnp.arccos, 0.4, id="arccos"),
    pytest.param(safe_arccos, jnp.arccos, -0.999999, id="arccos near -1"),
]


@pytest.mark.parametrize(("f", "textbook", "x"), REGULAR)
def test_elsewhere_like_the_textbook(f, textbook, x):
    x = jnp.asarray(x)
    transforms = (lambda f: f, jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f)))
    both = jax.jit(lambda x: [(d(f)(x), d(textbook)(x)) for d in transforms])
    for got, want in both(x):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_axis_of_norm_and_unit():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(safe_norm(x), [5.0, 0.0])
    np.testing.assert_allclose(safe_norm(x, axis=0), [3.0, 4.0])
    np.testing.assert_allclose(safe_unit(x), [[0.6, 0.8], [0.0, 0.0]])
