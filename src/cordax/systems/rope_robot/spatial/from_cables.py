"""Rope models that replace the straight cables of a robot."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._base.checks import require, require_instance, require_rotation, require_shape
from ...._base.precision import as_float_array, declare_units
from ...cable_robot import CableRobot
from .robot import SpatialRopeRobot


@declare_units(EA="N", EI="N m^2", line_density="kg/m", position="m", tension="N")
def ropes_for_cables(
    robot: CableRobot,
    count: int = 10,
    *,
    EA,
    line_density,
    EI=0.0,
    position=None,
    rotation=None,
    tension=None,
    **changes,
) -> SpatialRopeRobot:
    """The platform of a cable robot on ropes of `count` segments, EA [N], `line_density` [kg/m] and
    EI [N m^2], one for all or (n,); `changes`: other fields of `SpatialRopeRobot`.

    Straight massless cables with the same EA and unstretched lengths would hold the platform at a
    `position` (3,) [m] with axes `rotation` (3, 3), by default the initial pose of the robot, with
    a `tension` (n,) [N], by default the smallest tensions that balance it. Differences from that
    pose are therefore effects that straight cables neglect. Ropes begin at the exit points at time
    zero: pulley radii and carriage motions are neglected, and lengths are constant."""
    require_instance("robot", robot, CableRobot)
    require(robot.payload is None, "robot.payload", "a payload", "a robot without")
    body = robot.platform
    position = robot.position if position is None else as_float_array(position, "position")
    rotation = robot.rotation if rotation is None else as_float_array(rotation, "rotation")
    require_shape("position", position, (3,))
    require_rotation("rotation", rotation)
    exits, n = robot.exits.points.position(0.0), robot.n_cables
    arm = (robot.attachments - body.centre) @ rotation.T
    chord = exits - position - robot.attachments @ rotation.T
    straight = jnp.sqrt(jnp.sum(chord**2, axis=1))
    if tension is None:
        tension = balancing(arm, chord / straight[:, None], robot.static_wrench())
    tension, EA = as_float_array(tension, "tension"), as_float_array(EA, "EA")
    require_shape("tension", tension, (n,))
    require_shape("EA", EA, (), (n,))
    fields = {
        "roots": exits,
        "length": straight / (1.0 + tension / EA),
        "line_density": line_density,
        "EA": EA,
        "EI": EI,
        "platform": body,
        "attachments": robot.attachments,
        "position": position,
        "rotation": rotation,
        "linear_damping": robot.linear_damping,
        "angular_damping": robot.angular_damping,
        "gravity": robot.gravity,
    }
    return SpatialRopeRobot(**{**fields, "count": count, **changes})


def balancing(arm, along, wrench) -> Float[Array, " n"]:
    """Smallest tensions [N] along unit vectors (n, 3) at arms (n, 3) [m] whose sum is a wrench
    (6,), in the least-squares sense."""
    W = jnp.concatenate([along, jnp.cross(arm, along)], axis=1).T
    return jnp.linalg.lstsq(W, wrench)[0]
