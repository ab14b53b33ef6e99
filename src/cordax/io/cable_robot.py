"""Cable robots from machine files: platform, exits, cables, drives, payload and pulses.

docs/cable-robot.md lists the keys."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_positive
from ..control import MeanTension, Pulses, Quintic, Reference
from ..mechanics import State
from ..mechanics.consistent_state import consistent
from ..mechanics.parts.drives import Drive
from ..mechanics.parts.exits import Exit
from ..systems import (
    CableRobot,
    ElasticCables,
    NaturalBody,
    ProgrammedLengths,
    RigidCables,
    ServoWinches,
    Winches,
    box_inertia,
)
from .builder import Builder
from .table import Table


class RobotParts(NamedTuple):
    """A robot, its initial state and its constant inputs (n_u,). `pulses` (k, n_u) are added to the
    inputs during `pulse_times` (k, 2) [s]. `switches`: times and names of the events of the payload
    ("pick", "place", "drop"). `slack`: "unilateral" if rigid cables can go slack."""

    robot: CableRobot
    start: State
    inputs: np.ndarray
    pulse_times: np.ndarray
    pulses: np.ndarray
    switches: tuple[tuple[float, str], ...]
    slack: str

    def control(self, dt: float) -> Any:
        """Constant inputs, plus the pulses, sampled every `dt` [s]."""
        if len(self.pulses) == 0:
            return self.inputs
        return Pulses(self.pulse_times, self.pulses, period=dt, base=self.inputs)


def read_cable_robot(top: Table) -> RobotParts:
    """Read all tables of a cable robot except `[run]` and `[control]`."""
    slack = top.table("cables").word("slack", ("report", "unilateral"), "report")
    robot, start, inputs = _robot(top)
    switches = ()
    if top.has("payload"):
        robot, switches = _payload(top.table("payload"), robot)
        start = _with_payload(robot, start)
    times, pulses = _pulses(top.tables("pulses"), robot)
    return RobotParts(robot, start, inputs, times, pulses, switches, slack)


def _payload(table: Table, robot: CableRobot):
    """Add the payload to the robot; return the robot and the switches of the payload."""
    body = _body(table)
    position = table.numbers("position", (3,), unit="m")
    rotation = _rotation(table)
    joint = table.numbers("joint", (3,), default=np.zeros(3), unit="m")
    events = [what for what in ("pick", "place", "drop") if table.has(what)]
    times = {what: table.numbers(what, (), unit="s") for what in events}
    both = {"place", "drop"} <= set(times)
    require(not both, table.where("drop"), "place and drop", "one of them")
    switches = tuple(sorted((t, what) for what, t in times.items()))
    in_order = bool(switches) and switches[0][0] > 0 and switches[0][1] == "pick"
    listed = ", ".join(f"{what} = {t:g}" for t, what in switches) or "no times"
    require(in_order, table.where("pick"), listed, "times > 0 s, pick first, then place or drop")
    table.finish()
    with table.naming():
        return robot.with_payload(body, position, joint, rotation), switches


def _with_payload(robot: CableRobot, start: State) -> State:
    """Initial state of the robot, extended by the payload at rest."""
    default = robot.default_state()
    insert = lambda x, y: jnp.concatenate([x[:12], y[12:24], x[12:]])
    return State(insert(start.q, default.q), insert(start.v, default.v))


def _pulses(tables: list[Table], robot: CableRobot) -> tuple[np.ndarray, np.ndarray]:
    times, inputs = np.zeros((len(tables), 2)), np.zeros((len(tables), robot.n_u))
    for i, table in enumerate(tables):
        times[i] = _span(table)
        inputs[i, -6:-3] = table.numbers("force", (3,), default=np.zeros(3), unit="N")
        inputs[i, -3:] = table.numbers("torque", (3,), default=np.zeros(3), unit="N m")
        table.finish()
    return times, inputs


def _robot(top: Table) -> tuple[CableRobot, State, np.ndarray]:
    """Read the robot, its initial state and its constant inputs (n_u,)."""
    table = top.table("platform", needed=True)
    attachments = table.numbers("attachments", (None, 3), unit="m")
    n = len(attachments)
    position = table.numbers("position", (3,), unit="m")
    rotation = _rotation(table)
    damping = {
        key: table.numbers(key, (), default=0.0, unit=unit)
        for key, unit in (("linear_damping", "N s/m"), ("angular_damping", "N m s"))
    }
    velocity = table.numbers("velocity", (3,), default=None, unit="m/s")
    spin = table.numbers("angular_velocity", (3,), default=None, unit="rad/s")
    how = table.word("start", ("pose", "nearest", "equilibrium"), "pose")
    platform = _body(table)
    exits = _exits(top.table("exits", needed=True), n)
    with table.naming():
        bare = CableRobot(
            platform,
            attachments,
            exits,
            ProgrammedLengths(np.ones(n)),
            position=position,
            rotation=rotation,
            **damping,
            gravity=top.numbers("gravity", (), default=9.81, unit="m/s^2"),
            cables=_cables(top.table("cables")),
        )
    table.finish()
    drives = top.table("drives", needed=True)
    lengths = drives.numbers("lengths", (n,), default=None, unit="m")
    tension = None  # initial tension of elastic cables, if it is known before the drives are read
    if lengths is None:
        lengths = np.asarray(bare.lengths())
        if not bare.cables.rigid and (n <= 6 or drives.has("mean_tension")):
            tension = _holding_tension(drives, bare)
            lengths = lengths - np.asarray(bare.cables.stretch(tension))
    with drives.naming("lengths"):
        require_positive("lengths", jnp.asarray(lengths))
    if how == "equilibrium":
        with table.naming("start"):
            bare = _at_rest(bare, lengths)
        if not bare.cables.rigid:
            tension = bare.cables.tension(bare.lengths() - lengths, 0.0)
    robot, inputs = _drives(drives, bare, lengths, tension)
    start = robot.state_at(velocity=velocity, angular_velocity=spin, tension=tension)
    if how == "nearest":
        with table.naming("start"):
            start = consistent(robot, start)
    return robot, start, inputs


def _body(table: Table) -> NaturalBody:
    """Read the platform: its mass, a box or an inertia, and optionally a natural basis."""
    mass = table.numbers("mass", (), unit="kg")
    require(
        table.has("box") != table.has("inertia"),
        table.where("box"),
        "both box and inertia" if table.has("box") else "neither box nor inertia",
        "either the edges of a uniform box [m] or an inertia about the centre of mass [kg m^2]",
    )
    if table.has("box"):
        edges = table.numbers("box", (3,), unit="m")
        require(bool(np.all(edges > 0)), table.where("box"), edges, "edges > 0 m")
        with table.naming():
            inertia = box_inertia(mass, edges)
    else:
        inertia = table.numbers("inertia", (3, 3), unit="kg m^2")
    centre = table.numbers("centre", (3,), default=np.zeros(3), unit="m")
    basis = table.table("basis")
    vectors = {x: basis.numbers(x, (3,)) for x in ("r_i", "r_j", "v_i", "v_j") if basis.has(x)}
    basis.finish()
    with table.naming():
        return NaturalBody(mass, inertia, centre, **vectors)


def _rotation(table: Table) -> np.ndarray:
    """Read the body axes (3, 3) from a matrix `rotation` or `euler` angles [rad]; world axes by
    default."""
    if table.has("rotation"):
        rotation = table.numbers("rotation", (3, 3))
        right = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
        right = right and np.linalg.det(rotation) > 0
        require(right, table.where("rotation"), rotation, "a rotation matrix")
        return rotation
    roll, pitch, yaw = table.numbers("euler", (3,), default=np.zeros(3), unit="rad")
    turn = lambda a, i, j: np.eye(3) + _plane(a, i, j)
    return turn(yaw, 0, 1) @ turn(pitch, 2, 0) @ turn(roll, 1, 2)


def _plane(angle: float, i: int, j: int) -> np.ndarray:
    """Rotation from axis i towards axis j, minus the identity."""
    R = np.zeros((3, 3))
    R[i, i] = R[j, j] = np.cos(angle) - 1.0
    R[i, j], R[j, i] = -np.sin(angle), np.sin(angle)
    return R


def _exits(table: Table, n: int) -> Exit:
    build = Builder()
    make = build.maker(table, (Exit,), "exits")
    points = table.numbers("points", (None, 3), unit="m")
    require(
        len(points) == n,
        f"{table.path}, platform.attachments and exits.points",
        f"{n} and {len(points)} rows",
        "one of each for every cable",
    )
    return build.made(table, make, points=_moved(table, points))


def _moved(table: Table, start: np.ndarray) -> np.ndarray | Reference:
    """Return `start`, or a motion from it along the quintic polynomials `moves` of the table."""
    moves, times = [], []
    for move in table.tables("moves"):
        moves.append(move.numbers("by", start.shape, unit="m"))
        times.append(_span(move))
        move.finish()
    return Quintic(start, np.array(moves), np.array(times)) if moves else start


def _span(table: Table) -> np.ndarray:
    """Read the begin and end [s] of an interval, shape (2,)."""
    times = table.numbers("times", (2,), unit="s")
    require(times[1] > times[0] >= 0, table.where("times"), times, "begin and end [s], 0 <= begin")
    return times


def _cables(table: Table) -> RigidCables | ElasticCables:
    slack = table.word("slack", ("report", "unilateral"), "report")
    if not table.has("kind"):
        table.finish()
        return RigidCables()
    build = Builder()
    make = build.maker(table, (RigidCables, ElasticCables), "cables")
    able = slack == "report" or make is RigidCables
    require(able, table.where("slack"), slack, "'report': elastic cables go slack by themselves")
    return build.made(table, make)


def _at_rest(robot: CableRobot, lengths: np.ndarray) -> CableRobot:
    """Return the robot with its pose moved to static equilibrium for the given cable `lengths`."""
    from ..statics import equilibrium

    held = _with_drives(robot, ProgrammedLengths(lengths))
    try:
        q = equilibrium(held).q[:12]  # pyright: ignore[reportAttributeAccessIssue]
    except RuntimeError as error:
        raise ValueError(
            "no state at rest found near the given pose; check lengths, or start nearer"
        ) from error
    origin = robot.platform.weights(jnp.zeros(3)) @ q.reshape(4, 3)
    pose = (origin, robot.platform.rotation(q))
    return eqx.tree_at(lambda r: (r.position, r.rotation), robot, pose)


def _with_drives(robot: CableRobot, drives: Drive) -> CableRobot:
    return eqx.tree_at(lambda r: r.drives, robot, drives)


def _drives(table: Table, robot: CableRobot, lengths, tension) -> tuple[CableRobot, np.ndarray]:
    """Add the drives to the robot; return the robot and its constant inputs. `tension` (n,) [N]:
    initial tensions of the cables if they are known, else None."""
    n = robot.n_cables
    kind = table.word("kind", ("programmed", "winches", "servo"))
    each = lambda key, unit="", **more: table.numbers(key, (), (n,), unit=unit, **more)
    wrench, nothing = np.zeros(6), np.zeros(n * len(robot.exits.inputs))
    if kind == "programmed":
        drives: Drive = ProgrammedLengths(_moved(table, lengths))
        table.finish()
        return _with_drives(robot, drives), np.concatenate([nothing, wrench])
    drum = {
        "zero_length": lengths,
        "radius": each("radius", "m"),
        "rotor_inertia": each("rotor_inertia", "kg m^2"),
        "friction": each("friction", "N m s", default=0.0),
    }
    with table.naming():
        winches = _with_drives(robot, Winches(**drum))
    if kind == "winches":
        torque = _torques(table, "torque", winches, tension)
        table.finish()
        return winches, np.concatenate([torque, nothing, wrench])
    gains = {key: each(key, default=0.0) for key in ("K_i", "K_d")}
    drum |= {"K_p": each("K_p"), **gains}
    drum["feedforward"] = _torques(table, "feedforward", winches, tension)
    path = _moved(table, np.asarray(robot.position))
    moves = isinstance(path, Reference)
    follow = lambda: winches.winch_reference(path, tension=tension)
    drum["reference"] = follow() if moves else np.zeros(n)
    table.finish()
    with table.naming():
        servo = _with_drives(robot, ServoWinches(**drum))
    return servo, np.concatenate([np.zeros(n), nothing, wrench])


def _torques(table: Table, key: str, robot: CableRobot, tension) -> np.ndarray:
    """Read motor torques. "hold" stands for the torques of the initial `tension` (n,) [N], or, if
    that is None, of tensions that hold the platform in its initial pose."""
    n = robot.n_cables
    if table.has(key) and not table.is_word(key):
        table.has("mean_tension")
        return np.broadcast_to(table.numbers(key, (), (n,), unit="N m"), (n,)).astype(float)
    table.word(key, ("hold",), "hold")
    held = _holding_tension(table, robot) if tension is None else tension
    return -np.asarray(robot.drives.radius * held)  # pyright: ignore


def _holding_tension(table: Table, robot: CableRobot):
    """Tensions (n,) [N] that hold the platform in its initial pose. With more than six cables, the
    solution nearest to equal tensions of `mean_tension` [N]."""
    n = robot.n_cables
    mean = table.numbers("mean_tension", (), default=None, unit="N")
    require(
        (mean is None) == (n <= 6),
        table.where("mean_tension"),
        "nothing" if mean is None else mean,
        "a tension [N] to hold with"
        if n > 6
        else "no value: not allowed with six or fewer cables (tensions are determined)",
    )
    if mean is None:
        return robot.static_tensions()
    W, weight = robot.structure_matrix(), robot.static_wrench()
    held = eqx.filter_jit(MeanTension(mean))(W, weight)
    missing = np.abs(np.asarray(W @ held - weight)).max()
    weak, weight = float(np.min(held)), float(robot.platform.mass * robot.gravity)
    pushing = f"tensions down to {weak:.3g} N" if weak < 0 else "tensions that miss the weight"
    require(
        weak >= 0 and missing <= 1e-6 * weight,
        table.where("mean_tension"),
        f"{mean:g} N, nearest to which the platform is held at the start by {pushing}",
        "cables that hold it by pulling: another mean_tension, start or geometry "
        "(cordax.statics.workspace shows where they do)",
    )
    return held
