"""Ropes in space at rest and their small motions against closed forms, and in the limit of straight
cables against the cable robot."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import fsolve

from cordax import modes
from cordax.systems import (
    CableRobot,
    ElasticCables,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    SpatialRopeRobot,
    box_inertia,
    ropes_for_cables,
)


def catenary(span, height, length, weight, EA, s):
    """Across and up at material lengths `s` from the lower end, (k, 2): Irvine (1981)."""

    def at(s, H, V):
        T, T0 = np.hypot(H, V + weight * s), np.hypot(H, V)
        x = H * s / EA + H / weight * (np.arcsinh((V + weight * s) / H) - np.arcsinh(V / H))
        z = s / EA * (V + 0.5 * weight * s) + (T - T0) / weight
        return np.stack([x, z], axis=-1)

    miss = lambda p: at(length, *p) - [span, height]
    H, V = fsolve(miss, [0.3 * weight * length, -0.3 * weight * length], xtol=1e-14)
    return at(s, H, V)


@pytest.fixture(scope="module")
def sagging():
    """Two ropes, 1.2 m apart and 0.5 m up, in different vertical planes."""
    azimuth = np.array([0.4, 2.5])
    ends = np.stack([1.2 * np.cos(azimuth), 1.2 * np.sin(azimuth), 0.5 + 0.0 * azimuth], axis=1)
    robot = SpatialRopeRobot(np.zeros((2, 3)), 1.5, EA=200.0, EI=0.0, end_point=ends, count=20)
    return azimuth, robot, robot.rest()


def test_elastic_catenary(sagging):
    """With the error of the planar ropes at 20 segments, which converge with order 2."""
    azimuth, robot, state = sagging
    theory = catenary(1.2, 0.5, 1.5, 0.029 * 9.81, 200.0, np.linspace(0.0, 1.5, 21))
    for angle, nodes in zip(azimuth, np.asarray(robot.nodes(state.q)), strict=True):
        across = nodes @ [np.cos(angle), np.sin(angle), 0.0]
        assert np.abs(nodes @ [-np.sin(angle), np.cos(angle), 0.0]).max() < 1e-9
        error = np.abs(np.stack([across, nodes[:, 2]], axis=1) - theory).max()
        assert error == pytest.approx(4.43e-4, rel=0.02)


def test_hanging_chain():
    """Each frequency twice, once in each plane, with the errors of the planar chain at 20 segments
    against j_{0,n}/2 sqrt(g/L)."""
    s, length, EA = 20, 2.0, 1e7
    robot = SpatialRopeRobot([[0.0, 0.0, 0.0]], length, EA=EA, EI=0.0, count=s)
    rest = length / s
    # a gap carries what is below the middle of its segment
    load = 0.029 * rest * 9.81 * (s - np.arange(s) - 0.5)
    z = -np.cumsum(rest + load * rest / EA)
    q = jnp.asarray(np.stack([0.0 * z, 0.0 * z, z], axis=1).reshape(-1))

    @eqx.filter_jit
    def matrices(robot):
        rest = jnp.zeros_like(q)
        motion = robot.structure().linearise(jnp.zeros(()), q, rest, jnp.zeros(3))
        M, K = (
            jax.vmap(f, out_axes=1)(jnp.eye(robot.n_v)) for f in (motion.inertia, motion.stiffness)
        )
        return M, K, motion.f

    M, K, f = matrices(robot)
    # at rest, but for the round-off of 2 m at 1e8 N/m
    assert np.abs(f).max() < 1e-7
    omega = np.sqrt(np.sort(np.linalg.eigvals(-np.linalg.solve(M, K)).real))
    theory = np.array([2.404826, 5.520078, 8.653728, 11.791534]) / 2.0 * np.sqrt(9.81 / length)
    errors = [7.6e-5, 2.5e-3, 1.03e-2, 2.43e-2]
    for plane in (0, 1):
        np.testing.assert_allclose(omega[plane:8:2] / theory - 1.0, errors, rtol=0.05)
    # axial, of a lumped chain: 2 sqrt(c/m) sin((2 n - 1) pi/(4 s))
    axial = 2.0 * np.sqrt(EA / rest / (0.029 * rest)) * np.sin(np.pi / (4 * s))
    assert np.min(np.abs(omega / axial - 1.0)) < 1e-6


def test_straight_cables():
    """Ropes of nearly no mass hold a box where straight elastic cables do, and it vibrates there
    as on them; what differs is proportional to their mass."""
    EA, corner = 2e4, np.array([[x, y, z] for z in (-1, 1) for x in (-1, 1) for y in (-1, 1)])
    points = corner * [1.5, 1.2, 0.9] * [[1, 1, -1]] + [0.0, 0.0, 0.9]
    attachments = corner * [0.2, 0.15, 0.1]
    position = np.array([0.1, -0.05, 0.9])
    body = NaturalBody(20.0, box_inertia(20.0, (0.4, 0.3, 0.2)))
    long = np.linalg.norm(points - attachments - position, axis=1)
    tension = straight_tensions(points, attachments, position, 20.0 * 9.81)
    assert tension.min() > 50.0
    unstretched = long / (1.0 + tension / EA)
    cables = CableRobot(
        body,
        attachments,
        PointExit(points),
        ProgrammedLengths(unstretched),
        ElasticCables(EA / unstretched),
        position,
    )
    ropes = ropes_for_cables(
        cables, 2, EA=EA, line_density=1e-8, tension=tension, axial_time=0.0, bending_time=0.0
    )
    np.testing.assert_allclose(ropes.length, unstretched, rtol=1e-12)
    state = ropes.rest()
    outputs = eqx.filter_jit(lambda r, s: r.outputs(0.0, s.q, s.v, jnp.zeros(6), jnp.zeros(6)))
    at = outputs(ropes, state)
    np.testing.assert_allclose(at["position"], position, atol=1e-8)
    np.testing.assert_allclose(at["tension"], tension, rtol=1e-6)
    heavy = lambda x: eqx.tree_at(lambda r: r.line_density, ropes, jnp.asarray(x))
    shifts = [
        np.asarray(outputs(r, r.rest())["position"]) - position for r in map(heavy, (1e-5, 2e-5))
    ]
    np.testing.assert_allclose(shifts[1], 2.0 * shifts[0], rtol=1e-3, atol=1e-12)
    straight = np.sort(modes(cables, cables.state_at(position)).frequency)[::2]
    sagging = np.sort(modes(ropes, state).frequency)[::2]
    np.testing.assert_allclose(sagging[:6], straight, rtol=1e-6)


def straight_tensions(points, attachments, position, weight):
    """That hold a body of unit axes: nearest to 150 N."""
    chord = points - attachments - position
    along = chord / np.linalg.norm(chord, axis=1)[:, None]
    W = np.concatenate([along, np.cross(attachments, along)], axis=1).T
    wrench = np.array([0.0, 0.0, weight, 0.0, 0.0, 0.0])
    mean = np.full(len(points), 150.0)
    return mean + np.linalg.pinv(W) @ (wrench - W @ mean)
