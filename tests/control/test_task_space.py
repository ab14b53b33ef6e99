"""A platform on eight cables follows a path by its winches."""

import numpy as np
import pytest

from cordax import Result, simulate
from cordax.control import BoundedTension, Quintic, TaskSpaceControl
from cordax.mechanics.parts.drives import ProgrammedLengths, Winches
from cordax.mechanics.parts.exits import PointExit
from cordax.systems.cable_robot import CableRobot, NaturalBody, box_inertia

SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
PATH = Quintic(np.zeros(3), [[0.1, -0.05, 0.15]], [[0.0, 0.5]])
BODY = NaturalBody(20.0, box_inertia(20.0, (0.4, 0.3, 0.2)))


def robot(drives):
    # upper corners of the room to lower ones of the box, and the other way round
    arms, exits = SIGNS * [0.2, 0.15, -0.1], SIGNS * [1.5, 1.2, 0.9] + [0.1, 0.05, 0.0]
    return CableRobot(BODY, arms, PointExit(exits), drives, linear_damping=3.0, angular_damping=0.2)


@pytest.fixture(scope="module")
def machine():
    return robot(Winches(np.full(8, 1.8), 0.05, 0.02, 0.01))


OPTIONS = {"dt": 5e-3, "duration": 0.5, "save_every": 10, "throw": False}


@pytest.fixture(scope="module")
def followed(machine):
    bounds = BoundedTension(20.0, 300.0, mean=60.0)
    control = TaskSpaceControl(machine, PATH, distribution=bounds)
    return control, simulate(machine, control=control, **OPTIONS)


def test_the_path_is_followed(followed):
    """Exactly, up to the integrator: the controller knows the machine."""
    control, run = followed
    assert bool(run.succeeded)
    assert np.max(np.abs(control.tracking_error(run))) < 1e-7
    assert np.max(np.abs(np.asarray(run["angular_velocity"]))) < 1e-5


def test_cables_carry_what_was_asked_for(followed):
    """Winches make the tensions of eight rigid cables unique: they stay within the bounds, of which
    one acts."""
    tension = np.asarray(followed[1]["tension"])
    assert tension.min() > 20.0 - 1e-3 and tension.max() < 300.0
    assert tension.min() < 20.0 + 1e-3


def test_a_path_that_no_tensions_follow_ends_by_name(machine, followed):
    """Held at the start, but too weak for the acceleration upwards."""
    most = float(followed[1]["tension"][0].max()) + 2.0
    bounds = BoundedTension(20.0, most, mean=60.0)
    run = simulate(machine, control=TaskSpaceControl(machine, PATH, distribution=bounds), **OPTIONS)
    assert run.result == Result.QP_INFEASIBLE
    assert 0.0 < float(run.failure_time) < 0.25
    assert "Relax the tension bounds" in run.summary()
    reason = TaskSpaceControl(machine, PATH, distribution=bounds).failure_reason(
        float(run.failure_time), run.end
    )
    # the largest tension at rest is the one that cannot grow
    assert "Platform at (" in reason and "force_z = " in reason and "at the maximum" in reason


def test_a_machine_without_motors_is_refused():
    with pytest.raises(ValueError, match="machine: got a machine with ProgrammedLengths, expected"):
        TaskSpaceControl(robot(ProgrammedLengths(np.ones(8))), PATH)
