"""Robots of the study, built from the shipped examples."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...control import Pulses
from ...formulations import Baumgarte, Penalty
from ...integrators import Unilateral
from ...io import experiment_of
from ...mechanics import State
from ...mechanics.parts.exits import PointExit, PulleyExit, SwivelPulleyExit
from ...simulation.experiment import Experiment
from ...systems import CableRobot, ProgrammedLengths, ServoWinches, Winches

#: time step [s], stabilisation [1/s] and penalty of the paper
STEP = 1e-4
PAPERS = Baumgarte(1e3, 1e3)
PENALTY = Penalty(1e8, 1.0, 1e2)
#: interval between stored states [s]
STORED = 0.01
#: initial position of the plate as printed [m], and at rest between its exit points
PRINTED, AT_REST = (0.0, -0.25, 0.37), (0.0, 0.25, 0.37)
#: inertia of a pulley about its swivel axis [kg m^2]
PULLEY_INERTIA = 5e-3


def suspended(model: int, position=AT_REST) -> Experiment:
    """Plate of section 4.3 with exit points of Model 1, 2 or 3, with time step and stabilisation of
    the paper."""
    example = experiment_of("suspended")
    robot = robot_of(example)
    old = robot.exits
    assert isinstance(old, PulleyExit)
    exits = {
        1: lambda: PointExit(old.points),
        2: lambda: old,
        3: lambda: SwivelPulleyExit(old.points, old.radius, PULLEY_INERTIA),
    }[model]()
    robot = eqx.tree_at(
        lambda r: (r.exits, r.position), example.system, (exits, jnp.array(position))
    )
    robot = with_drives(robot, ProgrammedLengths(robot.lengths()))
    return with_step(
        example,
        STEP,
        system=robot,
        state0=robot.default_state(),
        save_every=round(STORED / STEP),
        formulation=PAPERS,
    )


def picking(centred: bool) -> Experiment:
    """Pick of section 3.3.5, with the payload in the middle as printed (`centred`), or beside it as
    in the example."""
    example = experiment_of("pick_and_place")
    if not centred:
        return example
    robot = robot_of(example)
    load = robot.payload
    assert load is not None
    bare = eqx.tree_at(lambda r: r.payload, robot, None, is_leaf=lambda x: x is load)
    robot = bare.with_payload(load.body, np.zeros(3), load.joint)
    return example.replace(system=robot, state0=robot.default_state())


def overturning(linear_damping: float = 1.0, angular_damping: float = 0.02) -> Experiment:
    """Overturning of section 5.3 with constant lengths and cables that can push; every step is
    stored."""
    example = experiment_of("overturning")
    robot = eqx.tree_at(
        lambda r: (r.linear_damping, r.angular_damping),
        robot_of(example),
        (jnp.asarray(linear_damping), jnp.asarray(angular_damping)),
    )
    assert isinstance(example.integrator, Unilateral)
    return example.replace(system=robot, integrator=example.integrator.inner, save_every=1)


def motorised(base: Experiment, stiffness: float = 7.0, damping: float = 0.1) -> Experiment:
    """Replace the exact lengths of an experiment by motors of the paper, which hold all three
    lengths under PD control [N m/rad, N m s]."""
    robot = robot_of(base)
    n = robot.n_cables
    drum = {"zero_length": robot.lengths(), "radius": 0.03, "rotor_inertia": 8.5e-5}
    torque = -0.03 * with_drives(robot, Winches(**drum)).static_tensions()
    servo = ServoWinches(
        **drum, reference=np.zeros(n), K_p=stiffness, K_d=damping, feedforward=torque
    )
    robot = with_drives(robot, servo)
    inputs = np.concatenate([np.zeros(n), np.asarray(base.control)])
    return base.replace(system=robot, state0=robot.default_state(), control=inputs)


def robot_of(experiment: Experiment) -> CableRobot:
    """Machine of an experiment with a cable robot."""
    assert isinstance(experiment.system, CableRobot)
    return experiment.system


def with_step(experiment: Experiment, dt: float, **changes) -> Experiment:
    """Return the experiment with another time step [s], with which pulses are sampled too."""
    control = experiment.control
    if isinstance(control, Pulses):
        control = dataclasses.replace(control, period=dt)
    return experiment.replace(dt=dt, control=control, **changes)


def with_drives(robot: CableRobot, drives) -> CableRobot:
    return eqx.tree_at(lambda r: r.drives, robot, drives)


def last_state(run) -> State:
    return State(run.q[-1], run.v[-1])
