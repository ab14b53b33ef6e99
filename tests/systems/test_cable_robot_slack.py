"""Cables of a robot that go slack and are caught again."""

from functools import cache

import equinox as eqx
import numpy as np

from cordax import Unilateral, simulate
from cordax.control import Pulses
from helpers.cable_robot_reference import errors, fields, robot_of, run

DT, END = 1e-3, 2.95
MANY = Unilateral(capacity=256)


@cache
def slack():
    return run("slack", DT, until=END, integrator=MANY)


def happened(events):
    k = int(np.sum(np.isfinite(events.time)))
    return np.stack([events.time[:k], events.row[:k], events.kind[:k], events.impulse[:k]], axis=1)


def compare_events(found, stored):
    assert found.shape == stored.shape
    np.testing.assert_allclose(found[:, 0], stored[:, 0], atol=1e-4)
    np.testing.assert_array_equal(found[:, 1:3], stored[:, 1:3])
    np.testing.assert_allclose(found[:, 3], stored[:, 3], rtol=1e-2)


def test_a_strong_pulse():
    """Released by the jump of the force, caught 31 ms later."""
    compare_events(happened(slack().events), fields("slack").events)
    found = errors("slack", slack())
    assert found.p < 1e-8 and found.f < 1e-4
    assert slack().warnings["cable_pushes"] == np.inf
    assert float(np.max(slack().drift())) < 1e-8


def test_an_asymmetric_robot_rattles_without_chatter():
    """One cable shortened, exits of unequal heights, a rough pulse: many catches, none without end,
    and nothing but the pulse adds energy."""
    robot = robot_of("slack")
    points = np.asarray(robot.exits.points.value) + np.array(
        [[0.0, 0.2, 0.3], [0.1, 0.0, -0.2], [0.0, 0.0, 0.1], [-0.3, 0.0, 0.0]]
    )
    robot = eqx.tree_at(lambda r: r.exits.points.value, robot, points)
    lengths = np.asarray(robot.lengths(robot.position, robot.rotation))
    robot = eqx.tree_at(lambda r: r.drives.lengths.value, robot, lengths)
    pulse = np.array([[0.0, 0.0, 500.0, 20.0, -10.0, 5.0]])
    trajectory = simulate(
        robot,
        dt=DT,
        duration=END,
        save_every=50,
        integrator=MANY,
        control=Pulses(np.array([[0.1, 0.15]]), pulse, period=DT),
    )
    events = happened(trajectory.events)
    assert 4 <= len(events) < 256
    # catches that follow within a fiftieth of a step are one, which may hold a row back a little
    assert np.all(events[:, 3] > -1e-3) and np.any(events[:, 3] > 1.0)
    energy = np.asarray(trajectory.energy()["total"])
    after = np.asarray(trajectory.t) > 0.151
    # of 76 J; spinning at 30 rad/s, cables that carry 900 N are brought back by stabilisation
    assert np.max(np.diff(energy[after])) < 2e-4
    assert np.min(np.asarray(trajectory["tension"])) > -1e-5
    assert np.all(np.asarray(trajectory["length"]) < lengths + 1e-5)


def test_overturning():
    """Both rear cables let go together and are caught together."""
    trajectory = run("overturn_uni", DT, until=13.9, integrator=Unilateral())
    compare_events(happened(trajectory.events), fields("overturn_uni").events)
    found = errors("overturn_uni", trajectory)
    assert found.p < 1e-7 and found.f < 1e-2
