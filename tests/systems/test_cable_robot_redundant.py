"""Eight cables of fixed lengths on a platform with six degrees of freedom: redundant rows."""

import equinox as eqx
import numpy as np
import pytest

from cordax import (
    RK4,
    Baumgarte,
    GeneralisedAlpha,
    Index3,
    Penalty,
    Projected,
    Result,
    UdwadiaKalaba,
    simulate,
)
from cordax.mechanics.parts.drives import ProgrammedLengths
from cordax.systems.cable_robot import CableRobot
from helpers.cable_robot_reference import parameters, robot_of


def held() -> CableRobot:
    robot, p = robot_of("red8"), parameters("red8")
    lengths = np.linalg.norm(p.p0 + p.bl @ p.R0.T - p.d, axis=1)
    return CableRobot(
        robot.platform, p.bl, robot.exits, ProgrammedLengths(lengths), position=p.p0, rotation=p.R0
    )


def run(formulation, integrator):
    push = np.array([30.0, -20.0, 10.0, 1.0, 2.0, -1.0])
    options = {"dt": 2e-3, "duration": 0.1, "save_every": 50, "throw": False, "control": push}
    return simulate(held(), formulation=formulation, integrator=integrator, **options)


@pytest.mark.parametrize(
    "formulation, integrator",
    [(Baumgarte(), RK4()), (Projected(), RK4()), (Index3(), GeneralisedAlpha())],
)
def test_a_run_ends_by_name(formulation, integrator):
    found = run(formulation, integrator)
    assert found.result == Result.SINGULAR_CONSTRAINTS
    assert "cordax.Penalty or cordax.UdwadiaKalaba" in found.summary()
    assert np.all(np.isfinite(found.q)) and np.all(np.isfinite(found.v))


@pytest.mark.parametrize("formulation", [UdwadiaKalaba(), Penalty()])
def test_a_platform_that_cannot_move_does_not(formulation):
    found = run(formulation, RK4())
    assert bool(found.succeeded)
    p = parameters("red8")
    np.testing.assert_allclose(found["position"][-1], p.p0, atol=1e-6)
    # tensions are not unique, but balance weight, push and torque
    b = p.p0 + p.bl - p.d
    pull = -np.asarray(found["tension"][-1])[:, None] * b / np.linalg.norm(b, axis=1)[:, None]
    load = np.array([30.0, -20.0, 10.0 - p.m * 9.81])
    np.testing.assert_allclose(pull.sum(axis=0), -load, atol=1e-2)
    np.testing.assert_allclose(np.cross(p.bl, pull).sum(axis=0), [-1.0, -2.0, 1.0], atol=1e-2)


def test_an_equal_robot_with_one_cable_less_is_regular():
    """Six independent cables leave nothing to choose."""
    robot = held()
    six = np.array([0, 1, 2, 4, 5, 7])
    few = CableRobot(
        robot.platform,
        robot.attachments[six],
        eqx.tree_at(lambda e: e.points.value, robot.exits, robot.exits.points.value[six]),
        ProgrammedLengths(np.asarray(robot.drives.lengths.value)[six]),
        position=robot.position,
        rotation=robot.rotation,
    )
    found = simulate(few, dt=2e-3, duration=0.1, save_every=50, formulation=Baumgarte())
    np.testing.assert_allclose(found["position"][-1], parameters("red8").p0, atol=1e-9)
