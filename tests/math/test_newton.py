"""Newton's method and the derivative of the implicit function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math.newton import Correction, newton


def residual(x, args):
    a, b = args
    return jnp.stack([x[0] ** 3 + a * x[1] - 2.0, jnp.exp(x[1]) - b * x[0]])


def root(args, x0=(1.0, 0.5), max_iterations=20):
    limits = {"tolerance": 1e-15, "max_iterations": max_iterations}
    return newton(residual, jnp.asarray(x0), args, **limits)[:2]


jitted = jax.jit(root)
ARGS = jnp.array([0.7, 1.6])


def test_value():
    x, converged = jitted(ARGS)
    assert bool(converged)
    np.testing.assert_allclose(residual(x, ARGS), 0.0, atol=1e-14)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivative_is_that_of_the_implicit_function(mode):
    slope = jax.jit(mode(lambda p: root(p)[0]))(ARGS)
    x = jitted(ARGS)[0]
    exact = -np.linalg.solve(jax.jacfwd(residual)(x, ARGS), jax.jacfwd(residual, 1)(x, ARGS))
    np.testing.assert_allclose(slope, exact, rtol=1e-11)
    h = 1e-5
    for i, e in enumerate(np.eye(2)):
        central = (jitted(ARGS + h * e)[0] - jitted(ARGS - h * e)[0]) / (2 * h)
        np.testing.assert_allclose(slope[:, i], central, rtol=1e-7)


def test_what_the_residual_closes_over_has_derivatives():
    def closed(p):
        x, *_ = newton(
            lambda x, _: residual(x, p),
            jnp.array([1.0, 0.5]),
            (),
            tolerance=1e-15,
            max_iterations=20,
        )
        return x

    direct = jax.jit(jax.jacrev(lambda p: root(p)[0]))(ARGS)
    np.testing.assert_allclose(jax.jit(jax.jacrev(closed))(ARGS), direct, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(closed))(ARGS), direct, rtol=1e-12)


def test_starts_where_the_jacobian_misleads():
    """arctan: Newton's method alone diverges from 1.4 on."""
    flat = lambda x, a: jnp.arctan(x) - a
    size = lambda x, dx: jnp.max(jnp.abs(dx))
    options = {"tolerance": 1e-12, "max_iterations": 60, "measure": size, "radius": 2.0}
    x, converged, _ = newton(flat, jnp.array([20.0]), jnp.asarray(0.0), **options)
    assert bool(converged)
    np.testing.assert_allclose(x, 0.0, atol=1e-12)


def test_the_start_carries_no_derivative():
    slope = jax.jit(jax.jacrev(lambda x0: root(ARGS, x0)[0]))(jnp.array([1.0, 0.5]))
    np.testing.assert_array_equal(slope, np.zeros((2, 2)))


def test_failure_is_told():
    assert not bool(root(ARGS, max_iterations=1)[1])
    no_root = lambda x, args: x**2 + args
    _, converged, _ = newton(
        no_root, jnp.array([1.3]), jnp.asarray(1.0), tolerance=1e-12, max_iterations=50
    )
    assert not bool(converged)


def test_members_of_a_batch_do_not_disturb_each_other():
    args = jnp.array([[0.7, 1.6], [0.2, 2.5], [np.nan, 1.0]])
    x, converged = jax.jit(jax.vmap(root))(args)
    np.testing.assert_array_equal(converged, [True, True, False])
    np.testing.assert_allclose(x[1], jitted(args[1])[0], rtol=1e-12)


def test_round_off_within_the_tolerance_is_a_solution_however_small_the_radius():
    noise = lambda x, args: -1e-11 - 1e-3 * x  # corrections make it larger
    exact = Correction(lambda x, args: jnp.ones(1), lambda A, r: r)
    options = {"max_iterations": 40, "radius": 1e-12, "correction": exact}
    assert newton(noise, jnp.zeros(1), (), tolerance=1e-9, **options)[1]
    assert not newton(noise, jnp.zeros(1), (), tolerance=1e-13, **options)[1]


def test_a_guess_that_is_the_solution():
    """As a machine at rest under its own numbers: nothing is left to correct, exactly."""
    options = {"tolerance": 1e-12, "max_iterations": 5}
    x, converged, iterations = newton(lambda x, a: a * x, jnp.zeros(2), jnp.asarray(3.0), **options)
    assert converged and iterations <= 2
    np.testing.assert_array_equal(x, 0.0)
