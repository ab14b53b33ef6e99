"""Cable robots from TOML files; docs/cable-robot.md lists the keys.

Names of keys are those of the fields of `CableRobot` and its parts. Everything is in SI units."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from .. import formulations
from .._base.checks import require
from ..integrators import BY_NAME
from ..mechanics import State
from ..systems import CableRobot
from .control import read_control
from .robot_file import RobotFile
from .robot_units import ROBOT_UNITS
from .table import TIMES, Table, read_toml
from .toml_machine import read_body, read_parts, read_rotation, read_span

_FORMULATIONS = {
    "baumgarte": (formulations.Baumgarte, ("alpha", "beta")),
    "udwadia_kalaba": (formulations.UdwadiaKalaba, ("alpha", "beta", "tolerance")),
    "penalty": (formulations.Penalty, ("alpha", "xi", "omega")),
    "projected": (formulations.Projected, ()),
    "index_3": (formulations.Index3, ()),
}


def read_robot(path: str | Path) -> RobotFile:
    """Read a robot and its run. Raises `ValueError` naming file, key, value and expectation."""
    return robot_of(read_toml(path))


def robot_of(top: Table) -> RobotFile:
    """The robot and its run that a file describes."""
    top.units = TIMES | ROBOT_UNITS
    name = top.text("name", top.path.stem)
    top.has("kind")
    robot, start, inputs = read_parts(top)
    switches = ()
    if top.has("payload"):
        robot, switches = _payload(top.table("payload"), robot)
        start = _with_payload(robot, start)
    times, pulses = _pulses(top.tables("pulses"), robot)
    run = _run(top.table("run", needed=True), robot)
    law = read_control(top, robot, run["dt"]) if top.has("control") else None
    top.finish()
    return RobotFile(
        name=name,
        robot=robot,
        start=start,
        inputs=inputs,
        pulse_times=times,
        pulses=pulses,
        switches=switches,
        law=law,
        slack=top.table("cables").word("slack", ("report", "unilateral"), "report"),
        **run,
    )


def _payload(table: Table, robot: CableRobot):
    """The robot with its payload, and what happens to that when."""
    body = read_body(table)
    position = table.numbers("position", (3,))
    rotation = read_rotation(table)
    joint = table.numbers("joint", (3,), default=np.zeros(3))
    times = {what: table.numbers(what, ()) for what in ("pick", "place", "drop") if table.has(what)}
    both = {"place", "drop"} <= set(times)
    require(not both, table.where("drop"), "place and drop", "one of them")
    switches = tuple(sorted((t, what) for what, t in times.items()))
    in_order = bool(switches) and switches[0][0] > 0 and switches[0][1] == "pick"
    given = ", ".join(f"{what} = {t:g}" for t, what in switches) or "no times"
    require(in_order, table.where("pick"), given, "times > 0 s, pick first, then place or drop")
    table.finish()
    with table.naming():
        return robot.with_payload(body, position, joint, rotation), switches


def _with_payload(robot: CableRobot, start: State) -> State:
    """The start of the robot alone, and the payload where it lies."""
    whole = robot.default_state()
    insert = lambda own, all_: jnp.concatenate([own[:12], all_[12:24], own[12:]])
    return State(insert(start.q, whole.q), insert(start.v, whole.v))


def _pulses(tables: list[Table], robot: CableRobot) -> tuple[np.ndarray, np.ndarray]:
    times, inputs = np.zeros((len(tables), 2)), np.zeros((len(tables), robot.n_u))
    for i, table in enumerate(tables):
        times[i] = read_span(table)
        inputs[i, -6:-3] = table.numbers("force", (3,), default=np.zeros(3))
        inputs[i, -3:] = table.numbers("torque", (3,), default=np.zeros(3))
        table.finish()
    return times, inputs


def _run(table: Table, robot: CableRobot) -> dict:
    dt = table.numbers("dt", (), default=robot.default_dt)
    duration = table.numbers("duration", ())
    stored = table.numbers("save_every", (), default=1.0)
    whole = stored >= 1 and stored == int(stored)
    require(whole, table.where("save_every"), stored, "a whole number >= 1")
    for key, value in (("dt", dt), ("duration", duration)):
        require(value > 0, table.where(key), value, "a time > 0 s")
    integrator = table.word("integrator", BY_NAME, robot.default_integrator)
    formulation = None
    if table.has("formulation"):
        below = table.table("formulation")
        kind, keys = _FORMULATIONS[below.word("kind", _FORMULATIONS)]
        values = {key: below.numbers(key, ()) for key in keys if below.has(key)}
        below.finish()
        with below.naming():
            formulation = kind(**values)
    table.finish()
    return {
        "dt": dt,
        "duration": duration,
        "save_every": int(stored),
        "integrator": integrator,
        "formulation": formulation,
    }
