"""Cables round surfaces on which the path is a geodesic, computed numerically."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cordax.mechanics.parts.geodesics import contact, length_past
from cordax.mechanics.parts.surfaces import EllipsoidSurface, SphereSurface, TorusSurface

X0, X1 = np.array([-1.5, 0.3, 0.35]), np.array([1.4, -0.5, 0.1])


@pytest.fixture(scope="module")
def evaluated():
    """Contact, length and derivatives of the length in both modes; one program for all."""

    def everything(axes, x0, x1):
        length = lambda axes, x0, x1: length_past(EllipsoidSurface(axes), x0, x1)
        slopes = jax.grad(length, (0, 1, 2))(axes, x0, x1)
        return length(axes, x0, x1), contact(EllipsoidSurface(axes), x0, x1), slopes

    return jax.jit(everything)


def test_round_ellipsoid_agrees_with_the_sphere(evaluated):
    length, at, slopes = evaluated(0.8 * jnp.ones(3), X0, X1)
    exact = lambda r: SphereSurface(r).path(jnp.asarray(X0), jnp.asarray(X1), None, False, 0.0)
    assert at.touches
    np.testing.assert_allclose(length, exact(0.8).length, rtol=0, atol=1e-11)
    by_radius = jax.grad(lambda r: exact(r).length)(0.8)
    np.testing.assert_allclose(jnp.sum(slopes[0]), by_radius, rtol=0, atol=1e-8)


def test_path_round_an_ellipsoid_agrees_with_an_independent_integration(evaluated):
    """The geodesic in angles by Dormand and Prince's method with Christoffel's symbols from the
    parametrisation; Clairaut's constant on a spheroid; derivatives by central differences."""
    a, c = 0.9, 0.5
    axes = jnp.array([a, a, c])
    length, at, slopes = evaluated(axes, X0, X1)
    assert at.touches and at.arc > 0.3
    clairaut = [p[0] * t[1] - p[1] * t[0] for p, t in ((at.first, at.into), (at.second, at.out))]
    np.testing.assert_allclose(clairaut[0], clairaut[1], rtol=0, atol=1e-9)
    # x = (a sin u cos v, a sin u sin v, c cos u): E u'^2 + G v'^2 is the squared speed
    u, v = np.arccos(at.first[2] / c), np.arctan2(at.first[1], at.first[0])
    by_u = np.array([a * np.cos(u) * np.cos(v), a * np.cos(u) * np.sin(v), -c * np.sin(u)])
    u_rate = float(at.into @ by_u / (by_u @ by_u))
    constant = float(clairaut[0])

    def rate(_, y):
        u, _, w = y
        E = (a * np.cos(u)) ** 2 + (c * np.sin(u)) ** 2
        half_E = (c**2 - a**2) * np.sin(u) * np.cos(u)
        v_rate = constant / (a * np.sin(u)) ** 2
        return [w, v_rate, (a**2 * np.sin(u) * np.cos(u) * v_rate**2 - half_E * w**2) / E]

    run = solve_ivp(
        rate, (0, float(at.arc)), [u, v, u_rate], method="DOP853", rtol=1e-12, atol=1e-13
    )
    u, v, _ = run.y[:, -1]
    end = np.array([a * np.sin(u) * np.cos(v), a * np.sin(u) * np.sin(v), c * np.cos(u)])
    np.testing.assert_allclose(at.second, end, rtol=0, atol=1e-9)
    onward = (X1 - end) / np.linalg.norm(X1 - end)
    np.testing.assert_allclose(at.out, onward, rtol=0, atol=1e-8)
    whole = np.linalg.norm(at.first - X0) + at.arc + np.linalg.norm(X1 - end)
    np.testing.assert_allclose(length, whole, rtol=0, atol=1e-9)
    for i, x in enumerate((np.asarray(axes), X0, X1)):
        for j in range(3):
            values = [np.asarray(axes), X0, X1]
            both = []
            for sign in (1, -1):
                values[i] = x + sign * 1e-5 * np.eye(3)[j]
                both.append(float(evaluated(*values)[0]))
            np.testing.assert_allclose(slopes[i][j], (both[0] - both[1]) / 2e-5, rtol=0, atol=1e-7)


def test_torus_obeys_clairaut():
    surface = TorusSurface(1.0, 0.3)
    at = jax.jit(lambda x0, x1: contact(surface, x0, x1))(
        jnp.array([0.9, 0.4, -1.0]), jnp.array([1.0, 0.1, 1.0])
    )
    assert at.touches and at.arc > 0.05
    clairaut = [p[0] * t[1] - p[1] * t[0] for p, t in ((at.first, at.into), (at.second, at.out))]
    np.testing.assert_allclose(clairaut[0], clairaut[1], rtol=0, atol=1e-9)
    for x in (at.first, at.second):
        np.testing.assert_allclose(surface.level(x), 0.0, atol=1e-10)
