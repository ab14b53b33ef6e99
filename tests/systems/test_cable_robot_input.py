"""Robots and runs that are refused, and why."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import RK4, Baumgarte, GeneralisedAlpha, Index3, State, simulate
from cordax.mechanics.parts.drives import ProgrammedLengths, Winches
from cordax.mechanics.parts.exits import PointExit, PulleyExit, SwivelPulleyExit
from cordax.mechanics.reference_motion import Quintic
from cordax.systems.cable_robot import CableRobot
from cordax.systems.cable_robot.natural import NaturalBody, box_inertia
from helpers.cable_robot_reference import exits_of, platform_of, robot_of

OPTIONS = {"dt": 1e-3, "duration": 2e-3}
FOUR = np.zeros((4, 3))


def test_a_body_without_thickness():
    flat = box_inertia(2.0, (0.3, 0.2, 0.0))
    with pytest.raises(ValueError, match=r"inertia.*extent in all three directions.*singular"):
        NaturalBody(2.0, flat)


def test_the_inertia_of_a_box_within_jit():
    """Known numbers stay known there, and mass and edges may be traced."""
    size, expected = np.array([0.3, 0.2, 0.1]), 2.0 / 12.0 * np.diag([0.05, 0.10, 0.13])
    fixed = jax.jit(lambda x: x * box_inertia(2.0, size))
    traced = jax.jit(box_inertia)
    for found in (box_inertia(2.0, size), fixed(1.0), traced(2.0, size)):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: NaturalBody(-1.0, np.eye(3)), "mass: got -1.0, expected finite values > 0"),
        (lambda: NaturalBody(1.0, np.ones(3)), r"inertia: got shape \(3,\)"),
        (lambda: NaturalBody(1.0, np.eye(3) + np.eye(3, k=1)), "inertia.*a symmetric matrix"),
        (lambda: NaturalBody(1.0, np.diag([1.0, 1.0, 3.0])), "inertia.*less than the sum"),
        (lambda: NaturalBody(1.0, np.eye(3), v_i=[1.0, 0.0, 0.0]), "do not lie in one plane"),
        (lambda: ProgrammedLengths([1.0, 0.0]), r"lengths: got \[1.0, 0.0\], expected finite val"),
        (lambda: ProgrammedLengths(np.ones((2, 2))), r"lengths: got shape \(2, 2\), expected \(n,"),
        (lambda: Winches([1.0], 0.0, 0.1), "radius: got 0.0"),
        (lambda: Winches([1.0, 1.0], [0.1, 0.1, 0.1], 0.1), r"radius: got shape \(3,\)"),
        (lambda: PointExit(np.zeros(3)), r"points: got shape \(3,\), expected \(n, 3\)"),
        (lambda: PulleyExit(FOUR, -0.1), "radius: got -0.1"),
        (lambda: SwivelPulleyExit(FOUR, 0.1, 0.0), "pulley_inertia: got 0.0"),
        (lambda: Quintic([0.0], [[1.0]], [[2.0, 1.0]]), "times.*end after it begins"),
    ],
)
def test_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_parts_that_do_not_fit():
    body, exits = platform_of("imp_m1"), exits_of("imp_m1")
    with pytest.raises(ValueError, match=r"attachments: got shape \(3, 3\), expected shape \(4, 3"):
        CableRobot(body, np.zeros((3, 3)), exits, ProgrammedLengths(np.ones(4)))
    with pytest.raises(ValueError, match="drives: got 3 cables, expected 4, as exits"):
        CableRobot(body, FOUR, exits, ProgrammedLengths(np.ones(3)))


def test_an_inconsistent_start():
    robot = robot_of("imp_m1")
    low = robot.state_at(np.array([0.0, 0.25, 0.36]))
    with pytest.raises(ValueError, match=r"state0.*\|Phi\| = .*cordax.consistent.*moves coordin"):
        simulate(robot, low, **OPTIONS)


@pytest.fixture(scope="module")
def out_of_reach():
    """Attachments inside the rims of their pulleys: no tangent, no cable."""
    robot = robot_of("imp_m2")
    inside = np.asarray(robot.exits.points.value) + np.array([0.05, 0.0, 0.0])
    arms = jnp.asarray(inside - np.asarray(robot.position))
    return eqx.tree_at(lambda r: r.attachments, robot, arms)


def test_a_platform_out_of_reach_of_its_pulleys_is_not_valid(out_of_reach):
    state = out_of_reach.state_at()
    assert not bool(out_of_reach.valid(jnp.zeros(()), state.q, state.v))
    with pytest.raises(ValueError, match="state0"):
        simulate(out_of_reach, state, **OPTIONS)


def test_a_platform_out_of_reach_of_its_pulleys_is_named(out_of_reach):
    with pytest.raises(ValueError, match="reach"):
        simulate(out_of_reach, **OPTIONS)


def test_wrong_shapes():
    robot = robot_of("imp_m1")
    with pytest.raises(ValueError, match=r"state0.q: got shape \(11,\), expected shape \(12,\)"):
        simulate(robot, State(np.zeros(11), np.zeros(12)), **OPTIONS)
    with pytest.raises(ValueError, match=r"control: got shape \(5,\), expected shape \(6,\)"):
        simulate(robot, **OPTIONS, control=np.zeros(5))


@pytest.mark.parametrize(
    "integrator, formulation, message",
    [
        (GeneralisedAlpha(), Baumgarte(), "GeneralisedAlpha solves the constraints itself"),
        (RK4(), Index3(), "RK4 integrates accelerations, but Index3 leaves the constraints"),
    ],
)
def test_methods_and_formulations_that_do_not_fit(integrator, formulation, message):
    with pytest.raises(ValueError, match=message):
        simulate(robot_of("imp_m1"), **OPTIONS, integrator=integrator, formulation=formulation)


@pytest.mark.parametrize(
    "phases, message",
    [
        (lambda r: [(r, 0.001), (lambda state: None, 0.002)], "a phase function to return a Sys"),
        (lambda r: [(r, 0.001), (3.0, 0.002)], "a System or a list of"),
        (lambda r: [(r.pick, 0.001), (r, 0.002)], "a System as first phase"),
        (lambda r: [(r, 0.002), (r, 0.001)], "phase times that increase"),
    ],
)
def test_phases(phases, message):
    with pytest.raises(ValueError, match=message):
        simulate(phases(robot_of("imp_m1")), dt=1e-3)
