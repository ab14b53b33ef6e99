"""What failed sends no derivatives back."""

import jax
import jax.numpy as jnp
import numpy as np

from cordax._jax.gradient_guard import close, shield


def guarded(x, p):
    """`p / x` where that is finite, else x: the derivative of the quotient at 0 is NaN."""
    (y, q), token = shield((x, p))
    quotient = q / y
    ok = jnp.isfinite(quotient)
    return jnp.where(ok, close(quotient, token, ok), x)


def unguarded(x, p):
    quotient = p / x
    return jnp.where(jnp.isfinite(quotient), quotient, x)


XS = jnp.array([2.0, 0.0, 4.0])


def test_a_shared_parameter_gets_its_gradient_from_the_members_that_did_not_fail():
    total = lambda f: lambda p: jnp.sum(jax.vmap(lambda x: f(x, p))(XS))
    assert np.isnan(jax.grad(total(unguarded))(3.0))
    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_allclose(wrap(jax.grad(total(guarded)))(3.0), 0.75)
        np.testing.assert_allclose(wrap(jax.jacfwd(total(guarded)))(3.0), 0.75)


def test_without_the_guard_only_failed_members_differ(monkeypatch):
    slopes = lambda: np.asarray(jax.vmap(jax.grad(guarded, 1), in_axes=(0, None))(XS, 3.0))
    wanted = slopes()
    monkeypatch.setenv("CORDAX_GRADIENT_GUARD", "0")
    without = slopes()
    np.testing.assert_array_equal(without[[0, 2]], wanted[[0, 2]])
    assert np.isnan(without[1]) and wanted[1] == 0.0


def test_each_member_has_its_own_derivative():
    for slope in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(
            jax.vmap(slope(guarded), in_axes=(0, None))(XS, 3.0), [-0.75, 1.0, -3.0 / 16.0]
        )


def test_in_loops_with_and_without_checkpoints():
    """x <- guarded(x, p) alternates between x and p / x; the third member stays at zero."""

    def total(step):
        def run(p, xs):
            one = lambda x: jax.lax.scan(lambda x, _: (step(x, p), x), x, length=3)[0]
            return jnp.sum(jax.vmap(one)(xs))

        return run

    xs = jnp.array([2.0, 5.0, 0.0])
    for step in (guarded, jax.checkpoint(guarded)):
        np.testing.assert_allclose(jax.jit(jax.grad(total(step)))(3.0, xs), 0.5 + 0.2)
        np.testing.assert_allclose(jax.jit(jax.jacfwd(total(step)))(3.0, xs), 0.5 + 0.2)


def test_second_derivatives():
    f = lambda x: guarded(x, 3.0)
    for second in (jax.jacfwd(jax.grad(f)), jax.grad(jax.jacfwd(f)), jax.grad(jax.grad(f))):
        np.testing.assert_allclose(second(2.0), 6.0 / 8.0)
