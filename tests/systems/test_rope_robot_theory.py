"""Ropes at rest and their small motions against closed forms: catenaries, cantilevers, chains."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import fsolve
from scipy.special import jn_zeros

from cordax.control import Constant
from cordax.mechanics.constraints import Stabilisation
from cordax.systems import RopeRobot
from helpers.rope_robot_reference import fields, robot_of

#: span, height, length, weight per length, EA: an own case, then three of Irvine's, with the pull
#: on the upper end
CATENARIES = np.array(
    [
        [1.2, 0.5, 1.5, 0.029 * 9.81, 200.0],
        [100.0, 50.0, 170.0, 410.29547478, 5e8],
        [3.0, 2.0, 3.61, 0.5, 1e5],
        [10.0, 0.0, 10.5, 10.0, 1e6],
    ]
)
PULLS = np.array(
    [[11472.278894, 45722.226571], [7.0184736285, 5.5992745034], [91.8634473646, 52.5]]
)

#: rho A g L^3/EI, and the tip of the heavy cantilever
LOADS = np.array([0.1, 1, 2, 5, 10, 20, 50, 100])
TIP_X = [
    0.99991073,
    0.99124640,
    0.96689295,
    0.84665718,
    0.65635376,
    0.44523205,
    0.24501476,
    0.15922338,
]
TIP_Y = [
    0.01249844,
    0.12347140,
    0.23850658,
    0.49590504,
    0.70019972,
    0.82988144,
    0.90791712,
    0.93752394,
]


nodes = eqx.filter_jit(lambda robot, q: robot.nodes(q))


@cache
def catenaries(count):
    """Nodes (4, count + 1, 2) and pulls on the ends (4, 2)."""
    span, height, length, weight, EA = CATENARIES.T
    robot = RopeRobot(
        np.zeros((4, 2)),
        length,
        weight / 9.81,
        EA,
        0.0,
        root_stiffness=0.0,
        end_point=Constant(np.stack([span, height], axis=1)),
        count=count,
    )
    state = robot.rest()
    none = Stabilisation(jnp.zeros(()), jnp.zeros(()))
    pull = eqx.filter_jit(
        lambda r, s: r.structure().constrained_acceleration(
            jnp.zeros(()), s.q, s.v, jnp.zeros(0), none
        )
    )(robot, state)
    assert np.abs(pull[0]).max() < 1e-4, "accelerations at rest, stiffest rope included"
    return np.asarray(nodes(robot, state.q)), np.asarray(pull[1]).reshape(4, 2)


def elastic_catenary(span, height, length, weight, EA, s):
    """Points at material lengths `s` from the lower end, (k, 2)."""

    def at(s, H, V):
        T = np.hypot(H, V + weight * s)
        T0 = np.hypot(H, V)
        x = H * s / EA + H / weight * (np.arcsinh((V + weight * s) / H) - np.arcsinh(V / H))
        z = s / EA * (V + 0.5 * weight * s) + (T - T0) / weight
        return np.stack([x, z], axis=-1)

    miss = lambda p: at(length, *p) - [span, height]
    H, V = fsolve(miss, [0.3 * weight * length, -0.3 * weight * length], xtol=1e-14)
    return at(s, H, V)


def test_elastic_catenary():
    worst = {}
    for count in (20, 40):
        span, height, length, weight, EA = CATENARIES[0]
        s = np.linspace(0.0, length, count + 1)
        theory = elastic_catenary(span, height, length, weight, EA, s)
        worst[count] = np.max(np.abs(catenaries(count)[0][0] - theory))
    assert worst[20] == pytest.approx(4.43e-4, rel=0.02)
    assert np.log2(worst[20] / worst[40]) == pytest.approx(2.0, abs=0.05)


def test_pulls_of_catenaries():
    """To the order of the mesh."""
    error = {n: np.abs(catenaries(n)[1][1:] / -PULLS - 1.0) for n in (20, 40)}
    assert error[20].max() < 0.02
    moved = error[40] > 1e-7  # the pull of a level rope is half of its weight on any mesh
    assert moved.sum() == 5
    order = np.log2(error[20][moved] / error[40][moved])
    np.testing.assert_allclose(order, 2.0, atol=0.15)


@cache
def cantilevers(count):
    """Tips of heavy cantilevers (8, 2), and the sag of two loaded at the tip, clamped with root
    stiffness 2 and 1, over that of a beam."""
    density = np.append(LOADS / 9.81, [1e-12, 1e-12])
    robot = RopeRobot(
        np.zeros((10, 2)),
        1.0,
        density,
        1e8,
        1.0,
        root_stiffness=np.append(np.full(9, 2.0), 1.0),
        root_angle=0.5 * np.pi,
        count=count,
    )
    u = np.zeros((10, 2))
    u[8:, 1] = -1e-5
    state = robot.rest(u.reshape(-1))
    tips = np.asarray(nodes(robot, state.q))[:, -1]
    return tips[:8], tips[8:, 1] / (-1e-5 / 3.0)


def test_cantilever():
    """A load at the tip: the error of the trapezoidal rule with a clamp, of order 1 without."""
    assert cantilevers(20)[1][0] - 1.0 == pytest.approx(1.25e-3, rel=0.02)
    assert cantilevers(40)[1][0] - 1.0 == pytest.approx(1.25e-3 / 4.0, rel=0.02)
    assert cantilevers(20)[1][1] - 1.0 == pytest.approx(7.62e-2, rel=0.02)


def test_heavy_cantilever():
    """Over the whole range of its load number, with order 2."""
    theory = np.stack([TIP_X, -np.array(TIP_Y)], axis=1)
    error = {n: np.linalg.norm(cantilevers(n)[0] - theory, axis=1) for n in (20, 40)}
    assert error[20].max() < 4e-3
    limit = (4.0 * cantilevers(40)[0] - cantilevers(20)[0]) / 3.0
    np.testing.assert_allclose(limit, theory, atol=5e-5)
    np.testing.assert_allclose(np.log2(error[20] / error[40])[1:], 2.0, atol=0.1)


def spectrum(robot, state):
    """Angular frequencies by the structured linearisation."""
    t = jnp.zeros(())
    matrices = eqx.filter_jit(
        lambda r, s: r.structure().linearise(t, s.q, s.v, jnp.zeros(r.n_u)).matrices()
    )
    M, K, _ = (np.asarray(x) for x in matrices(robot, state))
    return M, K


def test_hanging_chain_and_axial_modes():
    robot = RopeRobot([[0.0, 0.0]], 2.0, 0.029, 1e7, 0.0, root_stiffness=0.0, count=20)
    M, K = spectrum(robot, robot.rest())
    pick = np.ix_(range(1, 40, 2), range(1, 40, 2))
    omega = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M[pick], -K[pick])).real))
    theory = jn_zeros(0, 4) / 2.0 * np.sqrt(9.81 / 2.0)
    error = np.abs(omega[:4] / theory - 1.0)
    np.testing.assert_allclose(error, [7.6e-5, 2.5e-3, 1.03e-2, 2.43e-2], rtol=0.05)
    # axial: a lumped chain
    pick = np.ix_(range(0, 40, 2), range(0, 40, 2))
    omega = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M[pick], -K[pick])).real))
    l0, n = 0.1, np.arange(1, 21)
    theory = 2.0 * np.sqrt(1e7 / l0 / (0.029 * l0)) * np.sin((2 * n - 1) * np.pi / 80.0)
    np.testing.assert_allclose(omega, theory, rtol=1e-10)


@pytest.fixture(scope="module")
def paper():
    return robot_of("paper2"), fields("paper2")


def test_robot_at_rest(paper):
    robot, s = paper
    state = robot.rest()
    np.testing.assert_allclose(state.q[-3:], [0.46132122, -3.27207796, -0.25236777], atol=1e-8)
    np.testing.assert_allclose(state.q, s.q0, atol=1e-12)
    none = Stabilisation(jnp.zeros(()), jnp.zeros(()))
    at = eqx.filter_jit(
        lambda r, s: r.structure().constrained_acceleration(
            jnp.zeros(()), s.q, s.v, jnp.zeros(3), none
        )
    )
    a, pull = at(robot, state)
    assert np.abs(a).max() < 1e-6
    np.testing.assert_allclose(pull, [-0.13095975, 26.45601617, 0.13095975, 22.59398383], atol=1e-6)
    # from a guess with both ropes slack and the platform turned over by half a radian
    again = robot.rest(guess=robot.hanging([0.3, -1.5, 0.5]))
    np.testing.assert_allclose(again.q, s.q0, atol=1e-12)


def test_derivative_of_the_state_at_rest(paper):
    """Of the platform's pose by EA, EI, rope mass and platform mass."""
    robot, _ = paper
    pick = lambda r: (r.EA, r.EI, r.line_density, r.platform.mass)

    def pose(scale):
        changed = tuple(x * scale[i] for i, x in enumerate(pick(robot)))
        return eqx.tree_at(pick, robot, changed).rest().q[-3:]

    one = jnp.ones(4)
    found = jax.jacrev(pose)(one)
    step = 1e-4
    for i in range(4):
        d = step * jnp.eye(4)[i]
        central = (pose(one + d) - pose(one - d)) / (2.0 * step)
        np.testing.assert_allclose(found[:, i], central, rtol=1e-5, atol=1e-9)
