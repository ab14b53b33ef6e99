"""Unit quaternions."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from cordax.math import rotations

RNG = np.random.default_rng(0)


def as_scipy(q):
    return Rotation.from_quat(np.asarray(q), scalar_first=True)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-4, 3e-4, 1.0, 3.1, 10.0])
def test_exponential_retract_and_rotate(size):
    axis = np.array([0.48, -0.6, 0.64])
    phi = size * axis
    turn = rotations.exponential(jnp.asarray(phi))
    np.testing.assert_allclose(
        as_scipy(turn).as_matrix(), Rotation.from_rotvec(phi).as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(np.linalg.norm(turn), 1.0, rtol=1e-15)
    q = jnp.array([0.1, 0.5, -0.7, 0.5])
    both = rotations.retract(q, jnp.asarray(phi))
    np.testing.assert_allclose(np.linalg.norm(both), 1.0, rtol=1e-15)
    expected = as_scipy(q) * Rotation.from_rotvec(phi)
    np.testing.assert_allclose(as_scipy(both).as_matrix(), expected.as_matrix(), atol=1e-14)
    x = np.array([0.3, -2.0, 0.7])
    np.testing.assert_allclose(rotations.rotate(both, x), expected.apply(x), atol=1e-14)


def test_norm_does_not_drift():
    turns = jnp.asarray(0.05 * RNG.normal(size=(2000, 3)))
    q0 = jnp.array([1.0, 0.0, 0.0, 0.0])
    q, _ = jax.lax.scan(lambda q, phi: (rotations.retract(q, phi), None), q0, turns)
    np.testing.assert_allclose(jnp.linalg.norm(q), 1.0, rtol=1e-15)


def test_exponential_is_smooth_at_zero():
    """exp(phi) = (1 - |phi|^2/8, phi/2) + ...: Jacobian and Hessian in every mode."""
    zero = jnp.zeros(3)
    slope = np.vstack([np.zeros(3), 0.5 * np.eye(3)])
    curvature = np.zeros((4, 3, 3))
    curvature[0] = -0.25 * np.eye(3)
    f = rotations.exponential
    first = [jax.jacfwd(f), jax.jacrev(f)]
    second = [jax.jacfwd(first[0]), jax.jacfwd(first[1]), jax.jacrev(first[0])]
    for got in jax.jit(lambda x: [J(x) for J in first])(zero):
        np.testing.assert_allclose(got, slope, atol=1e-16)
    for got in jax.jit(lambda x: [H(x) for H in second])(zero):
        np.testing.assert_allclose(got, curvature, atol=1e-16)


@pytest.mark.parametrize("scale", [0.999, 1.001])
def test_derivatives_agree_on_both_sides_of_the_series(scale):
    """|phi| = 0.1 is where the series end; against expansions that are exact there."""

    def expansion(phi):
        h = 0.25 * jnp.sum(phi * phi)
        sinc = sum((-h) ** k / math.factorial(2 * k + 1) for k in range(8))
        cosine = sum((-h) ** k / math.factorial(2 * k) for k in range(8))
        return jnp.concatenate([cosine[None], 0.5 * sinc * phi])

    x = jnp.array([0.3, -2.0, 0.7])

    def moved(phi):
        term = total = x
        for k in range(2, 12):
            term = jnp.cross(phi, term) / k
            total = total + term
        return total

    phi = 0.1 * scale * jnp.array([0.48, -0.6, 0.64])
    displaced = lambda phi: rotations.displacement(phi, x)
    functions = rotations.exponential, expansion, displaced, moved
    for mode in (jax.jacfwd, jax.jacrev):
        got = jax.jit(lambda p, d=mode: [f(p) for g in functions for f in (g, d(g))])(phi)
        for ours, exact in ((0, 2), (1, 3), (4, 6), (5, 7)):
            np.testing.assert_allclose(got[ours], got[exact], atol=1e-13)


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.0999, 0.1001, 1.0, 3.1])
def test_displacement_is_that_of_a_screw(size):
    """The exponential of the 4 by 4 matrix of the twist, and the way back."""
    phi, x = size * np.array([0.48, -0.6, 0.64]), np.array([0.3, -2.0, 0.7])
    twist = np.zeros((4, 4))
    twist[:3, :3] = np.cross(phi, np.eye(3)).T
    twist[:3, 3] = x
    np.testing.assert_allclose(twist[:3, :3] @ x, np.cross(phi, x), atol=1e-15)
    there, back = jax.jit(
        lambda phi, x: (rotations.displacement(phi, x), rotations.inverse_displacement(phi, x))
    )(jnp.asarray(phi), jnp.asarray(x))
    np.testing.assert_allclose(there, expm(twist)[:3, 3], atol=1e-14)
    inverse = np.array(rotations.displacement(jnp.asarray(phi), back))
    np.testing.assert_allclose(inverse, x, atol=1e-13)


def test_product_is_associative_and_has_inverse():
    p, q, r = (jnp.asarray(x / np.linalg.norm(x)) for x in RNG.normal(size=(3, 4)))
    m = rotations.multiply
    np.testing.assert_allclose(m(m(p, q), r), m(p, m(q, r)), atol=1e-15)
    inverse = p * jnp.array([1.0, -1.0, -1.0, -1.0])
    np.testing.assert_allclose(m(p, inverse), [1.0, 0.0, 0.0, 0.0], atol=1e-15)
