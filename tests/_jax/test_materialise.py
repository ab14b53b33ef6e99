"""`materialise` changes nothing but the compiled program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax._jax.materialise import materialise


def shared(x):
    """Something nonlinear whose intermediate is materialised together with other leaves."""
    inner = {"s": jnp.sin(x), "c": jnp.cos(x)}
    inner = materialise(inner)
    return inner["s"] * inner["c"] + x**3


def plain(x):
    return jnp.sin(x) * jnp.cos(x) + x**3


X = jnp.array([0.3, -1.2, 2.5])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_values(dtype):
    x = X.astype(dtype)
    for f in (shared, jax.jit(shared)):
        assert f(x).dtype == dtype
        np.testing.assert_allclose(f(x), plain(x), rtol=4 * jnp.finfo(dtype).eps)


total = lambda f: lambda x: jnp.sum(f(x))
TRANSFORMATIONS = {
    "grad": lambda f: jax.grad(total(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (2.0 * x,))[1],
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, -x])),
    "jacfwd of grad": lambda f: jax.jacfwd(jax.grad(total(f))),
    "grad of grad": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(total(f))(x) ** 2)),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(total(f)))(jnp.stack([x, -x])),
    "checkpoint": lambda f: jax.grad(total(jax.checkpoint(f))),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_identity_under_transformations(name, jit):
    transform = TRANSFORMATIONS[name]
    got = jax.jit(transform(shared)) if jit else transform(shared)
    np.testing.assert_allclose(got(X), transform(plain)(X), rtol=1e-13)


def test_derivatives_of_some_leaves_only():
    """A leaf the derivative does not reach has a symbolic zero as tangent and as cotangent."""

    def f(x, y):
        a, b = materialise((x * y, y * y))
        return jnp.sum(a + b)

    np.testing.assert_allclose(jax.grad(f)(X, 2.0 * X), 2.0 * X)
    np.testing.assert_allclose(jax.jacfwd(f)(X, 2.0 * X), 2.0 * X)


def test_other_leaves_pass_through():
    count, empty, text = jnp.arange(3), jnp.zeros((0, 2)), "name"

    @jax.jit
    def f(x, count, empty):
        x, count, empty, word = materialise((x, count, empty, text))
        assert word == text
        return x, count, empty

    x, n, e = f(X, count, empty)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(n, count)
    assert n.dtype == count.dtype and e.shape == (0, 2)
    assert materialise((count, None)) == (count, None)


def test_mixed_precision_and_scalars():
    a, b, c = jax.jit(lambda: materialise((jnp.float32(1.5), jnp.ones((2, 2)), jnp.zeros(()))))()
    assert (a.dtype, b.dtype, c.dtype) == (jnp.float32, jnp.float64, jnp.float64)
    assert float(a) == 1.5 and b.shape == (2, 2) and float(c) == 0.0


def test_special_values_survive():
    x = jnp.array([jnp.nan, jnp.inf, -0.0])
    y = jax.jit(materialise)(x)
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="a conditional on CPU only")
def test_the_compiled_program_has_a_conditional():
    count = lambda f: jax.jit(f).lower(X).compile().as_text().count(" conditional(")
    assert count(plain) == 0
    assert count(shared) == 1
    assert count(jax.grad(total(shared))) >= 1
