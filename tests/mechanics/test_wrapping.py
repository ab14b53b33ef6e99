"""Paths of cables round spheres and cylinders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.mechanics.parts.wrapping import involute, wrap

R = 0.3
SIDE = (0.5, 0.1, 0.2)
CASES = [
    (cylinder, side, inside)
    for cylinder in (False, True)
    for side, inside in ((None, False), (SIDE, False), (None, True))
]


def _length(x, radius, cylinder, side, inside, width=0.0):
    side = None if side is None else jnp.asarray(side)
    path = wrap(x[0], x[1], radius, cylinder=cylinder, side=side, inside=inside, width=width)
    return path.length


@pytest.mark.parametrize("cylinder", [False, True])
def test_symmetric_path_has_the_closed_form(cylinder):
    d, phi, dz = 0.7, 2.6, 0.4 if cylinder else 0.0
    x0 = jnp.array([d, 0.0, 0.0])
    x1 = jnp.array([d * np.cos(phi), d * np.sin(phi), dz])
    path = wrap(x0, x1, jnp.asarray(R), cylinder=cylinder)
    angle = phi - 2.0 * np.arccos(R / d)
    flat = 2.0 * np.sqrt(d * d - R * R) + R * angle
    assert abs(float(path.length) - np.hypot(flat, dz)) < 1e-12
    assert abs(float(path.angle) - angle) < 1e-12
    # the pieces between end and tangent points add up, and the tangents are tangents
    ends = np.array([x0, path.first, path.second, x1])
    outer = np.linalg.norm(ends[1] - ends[0]) + np.linalg.norm(ends[3] - ends[2])
    arc = np.hypot(R * angle, ends[2, 2] - ends[1, 2])
    assert abs(outer + arc - float(path.length)) < 1e-12
    assert abs((ends[1] - ends[0])[:2] @ ends[1, :2]) < 1e-12


def test_side_point_chooses_the_longer_way():
    x0, x1 = jnp.array([-0.6, 0.1, 0.0]), jnp.array([0.6, 0.1, 0.0])
    way = lambda y: wrap(x0, x1, jnp.asarray(R), cylinder=True, side=jnp.array([0.0, y, 0.0]))
    tangents = 2.0 * np.arccos(R / np.hypot(0.6, 0.1))
    over = np.pi - 2.0 * np.arctan2(0.1, 0.6) - tangents
    assert abs(float(way(0.5).angle) - over) < 1e-12
    assert abs(float(way(-0.5).angle) - (over + 4.0 * np.arctan2(0.1, 0.6))) < 1e-12


def test_cable_through_a_ring_is_reflected():
    x0, x1 = jnp.array([0.5, 0.6, 0.0]), jnp.array([-0.7, 0.5, 0.0])
    path = wrap(x0, x1, jnp.asarray(R), cylinder=True, inside=True)
    a = np.linspace(0.0, np.pi, 200001)
    rim = R * np.stack([np.cos(a), np.sin(a)])
    ways = sum(np.linalg.norm(rim.T - np.asarray(x)[:2], axis=1) for x in (x0, x1))
    assert abs(float(path.length) - ways.min()) < 1e-9
    assert bool(path.touches)


@pytest.mark.parametrize("cylinder, side, inside", CASES)
def test_derivatives_agree_with_central_differences(cylinder, side, inside):
    x = jnp.asarray(np.random.default_rng(3).normal(size=(200, 2, 3)) * 0.5)
    of_one = lambda x, r: _length(x, r, cylinder, side, inside)
    radius = jnp.asarray(R)
    forward = jax.jit(jax.vmap(jax.jacfwd(of_one), (0, None)))(x, radius)
    g, by_radius = jax.jit(jax.vmap(jax.grad(of_one, (0, 1)), (0, None)))(x, radius)
    assert np.abs(forward - g).max() < 1e-12
    lengths, step = jax.jit(jax.vmap(of_one, (0, None))), 1e-6
    differences = np.stack(
        [
            (lengths(x + step * e, radius) - lengths(x - step * e, radius)) / (2 * step)
            for e in np.eye(6).reshape(6, 2, 3)
        ],
        axis=1,
    ).reshape(g.shape)
    slope = (lengths(x, radius + step) - lengths(x, radius - step)) / (2 * step)
    # end points inside of the surface, or a change of side, within the step: a jump
    apart = np.abs(differences - g).reshape(len(x), -1).max(axis=1)
    assert np.sum(apart > 1e-6) <= 2 and np.median(apart) < 1e-9
    assert np.sum(np.abs(slope - by_radius) > 1e-6) <= 2


@pytest.mark.parametrize("cylinder, side, inside", CASES)
def test_derivatives_are_finite_in_special_poses(cylinder, side, inside):
    """On the surface, at first contact, in line with the centre, at it, and with equal ends."""
    first_contact = [[R, -0.5, 0.0], [R, 0.5, 0.0]]
    poses = [
        first_contact,
        [[R, 0, 0], [0, R, 0]],
        [[0.6, 0, 0], [-0.6, 0, 0]],
        [[0.6, 0, 0], [0.9, 0, 0]],
        [[0.0, 0, 0], [0.9, 0, 0]],
        [[0.5, 0, 0]] * 2,
    ]
    x = jnp.asarray(poses)
    for width in (0.0, 0.1):
        of_one = lambda x, r, w=width: _length(x, r, cylinder, side, inside, jnp.asarray(w))
        for differentiate in (jax.grad, jax.jacfwd):
            g = jax.jit(jax.vmap(differentiate(of_one, (0, 1)), (0, None)))(x, jnp.asarray(R))
            assert all(np.isfinite(part).all() for part in g)


def test_contact_begins_without_a_jump_in_length_or_slope():
    x = lambda s: jnp.array([[R + s, -0.5, 0.0], [R + s, 0.5, 0.1]])
    for width in (0.0, 0.2):
        of_s = lambda s, w=width: _length(x(s), jnp.asarray(R), True, None, False, jnp.asarray(w))
        pair = jax.vmap(jax.value_and_grad(of_s))(jnp.array([-1e-9, 1e-9]))
        assert all(abs(float(a[0] - a[1])) < 1e-7 for a in pair)


def test_involute_derivative_on_the_surface():
    assert float(jax.grad(involute)(R, R)) == 0.0
    assert abs(float(jax.grad(involute, 1)(0.5, R)) + np.arccos(R / 0.5)) < 1e-15
