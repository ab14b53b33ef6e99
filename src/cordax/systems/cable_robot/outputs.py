"""Outputs of a cable robot, by name."""

from typing import TYPE_CHECKING

from ...math import rotations
from ...mechanics.parts.exits import PulleyExit, SwivelPulleyExit
from . import block_solve as structured
from .natural import place

if TYPE_CHECKING:
    from .robot import CableRobot


def observed(robot: "CableRobot", t, q, v, multipliers) -> dict:
    """Outputs at a state: motion of the platform, lengths [m] and tensions [N] of the cables, and,
    if the robot has these parts, angles of swivels and drums [rad] and payload position."""
    c = robot._constants()
    parts, rates = robot.split(q), robot.split(v)
    cable = structured.cable_terms(robot, c, t, parts, rates)
    if robot.cables.rigid:
        tension = 2.0 * cable.length * multipliers[: robot.n_cables]
    else:
        tension = robot.cables.tension(cable.length - cable.wound, cable.stretch_rate)
    R = robot.platform.rotation(parts.platform)
    out = {
        "position": place(c.platform.centre, parts.platform),
        "quaternion": rotations.from_matrix(R),
        "euler": rotations.euler_zyx(R),
        "velocity": place(c.platform.centre, rates.platform),
        "angular_velocity": robot.platform.angular_velocity(parts.platform, rates.platform),
        "tension": tension,
        "length": cable.length,
    }
    if isinstance(robot.exits, PulleyExit):
        out["swivel"] = robot.exits.swivel(t, place(c.attachments, parts.platform))
    elif isinstance(robot.exits, SwivelPulleyExit):
        out["swivel"] = parts.exits[:, 0]
    if "theta" in robot.drives.coordinates:
        out["theta"] = parts.drives[:, 0]
    if robot.payload is not None:
        out["payload_position"] = place(c.payload.centre, parts.payload)
    return out
