"""The machine of a robot file: bodies, exits, cables and drives."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_positive
from ..control import MeanTension, Quintic, Reference
from ..mechanics import State
from ..mechanics.consistent_state import consistent
from ..mechanics.parts.drives import Drive
from ..mechanics.parts.exits import Exit
from ..systems import (
    CableRobot,
    CarriageExit,
    ElasticCables,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    PulleyExit,
    RigidCables,
    ServoWinches,
    SwivelPulleyExit,
    Winches,
    box_inertia,
)
from .table import Table

#: by model: what makes it, keys it needs, keys it may have
_EXITS = {
    "point": (PointExit, (), ()),
    "pulley": (PulleyExit, ("radius",), ("axis",)),
    "swivel": (SwivelPulleyExit, ("radius", "pulley_inertia"), ("damping", "axis")),
    "carriage": (CarriageExit, ("mass",), ("stiffness", "damping")),
}


def read_parts(top: Table) -> tuple[CableRobot, State, np.ndarray]:
    """The robot, its start and its constant inputs (n_u,)."""
    table = top.table("platform", needed=True)
    attachments = table.numbers("attachments", (None, 3))
    n = len(attachments)
    position = table.numbers("position", (3,))
    rotation = read_rotation(table)
    damping = {
        key: table.numbers(key, (), default=0.0) for key in ("linear_damping", "angular_damping")
    }
    velocity = table.numbers("velocity", (3,), default=None)
    spin = table.numbers("angular_velocity", (3,), default=None)
    how = table.word("start", ("pose", "nearest", "equilibrium"), "pose")
    platform = read_body(table)
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
            gravity=top.numbers("gravity", (), default=9.81),
            cables=_cables(top.table("cables"), n),
        )
    table.finish()
    drives = top.table("drives", needed=True)
    lengths = drives.numbers("lengths", (n,), default=None)
    tension = None  # that of elastic cables at the start, where it is known before their drives are
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


def read_body(table: Table) -> NaturalBody:
    """Mass, a box or an inertia, and perhaps a natural basis."""
    mass = table.numbers("mass", ())
    require(
        table.has("box") != table.has("inertia"),
        table.where("box"),
        "both box and inertia" if table.has("box") else "neither box nor inertia",
        "either the edges of a uniform box [m] or an inertia about the centre of mass [kg m^2]",
    )
    if table.has("box"):
        edges = table.numbers("box", (3,))
        require(bool(np.all(edges > 0)), table.where("box"), edges, "edges > 0 m")
        with table.naming():
            inertia = box_inertia(mass, edges)
    else:
        inertia = table.numbers("inertia", (3, 3))
    centre = table.numbers("centre", (3,), default=np.zeros(3))
    basis = table.table("basis")
    vectors = {x: basis.numbers(x, (3,)) for x in ("r_i", "r_j", "v_i", "v_j") if basis.has(x)}
    basis.finish()
    with table.naming():
        return NaturalBody(mass, inertia, centre, **vectors)


def read_rotation(table: Table) -> np.ndarray:
    """Axes (3, 3) from a matrix `rotation` or from `euler` angles; those of the world without."""
    if table.has("rotation"):
        rotation = table.numbers("rotation", (3, 3))
        right = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
        right = right and np.linalg.det(rotation) > 0
        require(right, table.where("rotation"), rotation, "a rotation matrix")
        return rotation
    roll, pitch, yaw = table.numbers("euler", (3,), default=np.zeros(3))
    turn = lambda a, i, j: np.eye(3) + _plane(a, i, j)
    return turn(yaw, 0, 1) @ turn(pitch, 2, 0) @ turn(roll, 1, 2)


def _plane(angle: float, i: int, j: int) -> np.ndarray:
    """A rotation from axis i towards axis j, less the identity."""
    R = np.zeros((3, 3))
    R[i, i] = R[j, j] = np.cos(angle) - 1.0
    R[i, j], R[j, i] = -np.sin(angle), np.sin(angle)
    return R


def _exits(table: Table, n: int) -> Exit:
    old = table.has("model")  # the name of the key before it was that of all tables
    model = table.word("model" if old else "kind", _EXITS)
    kind, needed, optional = _EXITS[model]
    points = table.numbers("points", (None, 3))
    require(
        len(points) == n,
        f"{table.path}, platform.attachments and exits.points",
        f"{n} and {len(points)} rows",
        "one of each for every cable",
    )
    points = _moved(table, points)
    shapes = lambda key: ((3,), (n, 3)) if key == "axis" else ((), (n,))
    values = {key: table.numbers(key, *shapes(key)) for key in needed}
    values |= {key: table.numbers(key, *shapes(key)) for key in optional if table.has(key)}
    table.finish()
    with table.naming():
        return kind(points, **values)


def _moved(table: Table, start: np.ndarray) -> np.ndarray | Reference:
    """`start`, or a motion from it by the quintics `moves` of the table."""
    moves, times = [], []
    for move in table.tables("moves"):
        moves.append(move.numbers("by", start.shape))
        times.append(read_span(move))
        move.finish()
    return Quintic(start, np.array(moves), np.array(times)) if moves else start


def read_span(table: Table) -> np.ndarray:
    """Begin and end [s], shape (2,)."""
    times = table.numbers("times", (2,))
    require(times[1] > times[0] >= 0, table.where("times"), times, "begin and end [s], 0 <= begin")
    return times


def _cables(table: Table, n: int) -> RigidCables | ElasticCables:
    kind = table.word("kind", ("rigid", "elastic"), "rigid")
    slack = table.word("slack", ("report", "unilateral"), "report")
    values = {}
    if kind == "elastic":
        require(
            slack == "report",
            table.where("slack"),
            slack,
            "'report': elastic cables go slack by themselves",
        )
        values["stiffness"] = table.numbers("stiffness", (), (n,))
        for key, shapes in (("damping", [(), (n,)]), ("width", [()])):
            if table.has(key):
                values[key] = table.numbers(key, *shapes)
    table.finish()
    with table.naming():
        return ElasticCables(**values) if kind == "elastic" else RigidCables()


def _at_rest(robot: CableRobot, lengths: np.ndarray) -> CableRobot:
    """The robot, its pose moved to where it hangs at rest."""
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
    """The robot with its drives, and its constant inputs; `tension` (n,) [N] of cables where they
    are known."""
    n = robot.n_cables
    kind = table.word("kind", ("programmed", "winches", "servo"))
    each = lambda key, **more: table.numbers(key, (), (n,), **more)
    wrench, nothing = np.zeros(6), np.zeros(n * len(robot.exits.inputs))
    if kind == "programmed":
        drives: Drive = ProgrammedLengths(_moved(table, lengths))
        table.finish()
        return _with_drives(robot, drives), np.concatenate([nothing, wrench])
    drum = {
        "zero_length": lengths,
        "radius": each("radius"),
        "rotor_inertia": each("rotor_inertia"),
        "friction": each("friction", default=0.0),
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
    """Given, or "hold": those of the `tension` (n,) [N] at the start, or of one that holds the
    platform there."""
    n = robot.n_cables
    if table.has(key) and not table.is_word(key):
        table.numbers("mean_tension", (), default=None)
        return np.broadcast_to(table.numbers(key, (), (n,)), (n,)).astype(float)
    table.word(key, ("hold",), "hold")
    held = _holding_tension(table, robot) if tension is None else tension
    return -np.asarray(robot.drives.radius * held)  # pyright: ignore


def _holding_tension(table: Table, robot: CableRobot):
    """Tensions (n,) [N] that hold the platform at the start. With more than six cables, those
    nearest to equal ones of `mean_tension` [N]."""
    n = robot.n_cables
    mean = table.numbers("mean_tension", (), default=None)
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
