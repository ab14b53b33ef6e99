"""The robots of the study, from the shipped examples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...formulations import Baumgarte, Penalty
from ...io import RobotFile, example_path, read_robot
from ...mechanics import State
from ...mechanics.parts.exits import PointExit, PulleyExit, SwivelPulleyExit
from ...systems import CableRobot, ProgrammedLengths, ServoWinches, Winches

#: the paper's step [s], stabilisation [1/s] and penalty
STEP = 1e-4
PAPERS = Baumgarte(1e3, 1e3)
PENALTY = Penalty(1e8, 1.0, 1e2)
#: stored instants are this far apart [s]
STORED = 0.01
#: start of the plate as printed [m], and as it hangs at rest between its exits
PRINTED, AT_REST = (0.0, -0.25, 0.37), (0.0, 0.25, 0.37)
#: inertia of a pulley about its swivel axis [kg m^2]
PULLEY_INERTIA = 5e-3


def suspended(model: int, position=AT_REST) -> RobotFile:
    """The plate of section 4.3 on exits of Model 1, 2 or 3, at the paper's step and
    stabilisation."""
    file = read_robot(example_path("suspended"))
    old = file.robot.exits
    assert isinstance(old, PulleyExit)
    exits = {
        1: lambda: PointExit(old.points),
        2: lambda: old,
        3: lambda: SwivelPulleyExit(old.points, old.radius, PULLEY_INERTIA),
    }[model]()
    robot = eqx.tree_at(lambda r: (r.exits, r.position), file.robot, (exits, jnp.array(position)))
    robot = with_drives(robot, ProgrammedLengths(robot.lengths()))
    return file._replace(
        robot=robot,
        start=robot.default_state(),
        dt=STEP,
        save_every=round(STORED / STEP),
        formulation=PAPERS,
    )


def picking(centred: bool) -> RobotFile:
    """Section 3.3.5, the payload in the middle as printed, or beside it as in the example."""
    file = read_robot(example_path("pick_and_place"))
    if not centred:
        return file
    load = file.robot.payload
    assert load is not None
    bare = eqx.tree_at(lambda r: r.payload, file.robot, None, is_leaf=lambda x: x is load)
    robot = bare.with_payload(load.body, np.zeros(3), load.joint)
    return file._replace(robot=robot, start=robot.default_state())


def overturning(linear_damping: float = 1.0, angular_damping: float = 0.02) -> RobotFile:
    """Section 5.3 with constant lengths and cables that may push, every step stored."""
    file = read_robot(example_path("overturning"))
    robot = eqx.tree_at(
        lambda r: (r.linear_damping, r.angular_damping),
        file.robot,
        (jnp.asarray(linear_damping), jnp.asarray(angular_damping)),
    )
    return file._replace(robot=robot, slack="report", save_every=1)


def motorised(file: RobotFile, stiffness: float = 7.0, damping: float = 0.1) -> RobotFile:
    """The same with all three lengths held by the paper's motors under PD control [N m/rad, N m s]
    instead of being exact."""
    robot, n = file.robot, file.robot.n_cables
    drum = {"zero_length": robot.lengths(), "radius": 0.03, "rotor_inertia": 8.5e-5}
    torque = -0.03 * with_drives(robot, Winches(**drum)).static_tensions()
    servo = ServoWinches(
        **drum, reference=np.zeros(n), K_p=stiffness, K_d=damping, feedforward=torque
    )
    robot = with_drives(robot, servo)
    inputs = np.concatenate([np.zeros(n), file.inputs])
    return file._replace(robot=robot, start=robot.default_state(), inputs=inputs)


def with_drives(robot: CableRobot, drives) -> CableRobot:
    return eqx.tree_at(lambda r: r.drives, robot, drives)


def last_state(run) -> State:
    return State(run.q[-1], run.v[-1])
