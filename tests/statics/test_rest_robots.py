"""Cable robots at rest: elastic cables of given lengths, and winches that hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import cordax
from cordax import State
from cordax.systems import (
    CableRobot,
    ElasticCables,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    Winches,
    box_inertia,
)

# Six cables between two triangles, turned against each other: all of them pull.
CORNERS = np.arange(3) * 2 * np.pi / 3
TOP = np.stack([2.0 * np.cos(CORNERS), 2.0 * np.sin(CORNERS), np.full(3, 2.0)], axis=1)
PLATE = np.stack([np.cos(CORNERS + np.pi / 3), np.sin(CORNERS + np.pi / 3), 0 * CORNERS], axis=1)
EXITS, ATTACHMENTS = np.repeat(TOP, 2, axis=0), 0.4 * PLATE[[2, 0, 0, 1, 1, 2]]
MASS, STIFFNESS, WIDTH = 20.0, 2e4, 1e-5
BODY = NaturalBody(MASS, box_inertia(MASS, np.array([0.4, 0.4, 0.2])))
POSITION = np.array([0.1, -0.05, 0.3])
DAMPED = {"position": POSITION, "linear_damping": 200.0, "angular_damping": 20.0}
LENGTHS = np.linalg.norm(POSITION + ATTACHMENTS - EXITS, axis=1)


def robot(drives, **options):
    return CableRobot(BODY, ATTACHMENTS, PointExit(EXITS), drives, **DAMPED, **options)


@pytest.fixture(scope="module")
def elastic():
    cables = ElasticCables(np.full(6, STIFFNESS), np.full(6, 100.0), WIDTH)
    return robot(ProgrammedLengths(LENGTHS), cables=cables)


@pytest.fixture(scope="module")
def hanging(elastic):
    return cordax.equilibrium(elastic, full=True)


def test_elastic_cables_against_a_minimum_over_poses(hanging):
    """The same robot with a rotation vector instead of natural coordinates."""

    def energy(x):
        turned = Rotation.from_rotvec(x[3:]).apply(ATTACHMENTS)
        stretch = np.linalg.norm(x[:3] + turned - EXITS, axis=1) - LENGTHS
        return MASS * 9.81 * x[2] + np.sum(0.5 * STIFFNESS * np.maximum(stretch, 0.0) ** 2)

    start = np.concatenate([POSITION, np.zeros(3)])
    least = minimize(energy, start, method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(hanging.state.q[:3], least[:3], atol=2e-7)
    assert hanging.state.q[2] < POSITION[2] - 1e-3, "it should hang lower than unloaded"
    assert bool(hanging.stable) and int(hanging.neutral) == 0
    assert np.abs(hanging.residual).max() < 1e-8 * MASS * 9.81


def test_a_damped_run_settles_there(elastic, hanging):
    run = cordax.simulate(elastic, dt=5e-3, duration=3.0, save_every=600, integrator="rk4")
    np.testing.assert_allclose(run.q[-1], hanging.state.q, atol=1e-8)
    assert abs(float(run.q[0, 2] - run.q[-1, 2])) > 1e-3


def test_winches_that_hold():
    """Rigid cables under the torques that hold the platform: at rest where it is."""
    winches = robot(Winches(LENGTHS, radius=0.04, rotor_inertia=5e-3))
    tension = np.asarray(winches.static_tensions())
    assert tension.min() > 1.0
    hold = np.concatenate([-0.04 * tension, np.zeros(6)])
    start = winches.default_state()
    rest = cordax.equilibrium(winches, hold, full=True)
    assert bool(rest.found), rest.reason
    np.testing.assert_allclose(rest.state.q, start.q, atol=1e-8)
    forces = jax.jit(lambda q, x: winches.multiplier_forces(jnp.zeros(()), q, x)[:6])
    np.testing.assert_allclose(forces(rest.state.q, rest.multipliers), tension, rtol=1e-8)
    # and it finds its way back there
    higher = np.array(start.q)
    higher[2] += 0.05
    away = cordax.consistent(winches, State(higher, start.v))
    back = cordax.equilibrium(winches, hold, guess=away)
    np.testing.assert_allclose(back.q[:12], start.q[:12], atol=1e-7)
