"""Kinematics, statics and inverse dynamics of a cable robot."""

from typing import Any

import jax
import jax.numpy as jnp

from ..._base.checks import require, require_shape
from ..._base.precision import as_float_array
from ..._jax.program_cache import kept_filter_jit
from ...math import rotations
from ...math.linalg import matmul, matvec
from ...mechanics import State
from ...mechanics.reference_motion import Reference
from .natural import place


class LengthReference(Reference):
    """Unstretched cable lengths (n,) [m] that hold the platform's origin on a path over time
    (inverse kinematics). The coordinates of the exits follow the platform."""

    robot: Any
    path: Reference
    rotation: jax.Array
    turn: Reference
    stretch: jax.Array

    def position(self, t):
        turned = matmul(self.rotation, rotations.exponential_matrix(self.turn.position(t)))
        return lengths(self.robot, self.path.position(t), turned, t) - self.stretch


class WinchReference(LengthReference):
    """Drum angles (n,) [rad] for the lengths of a `LengthReference`."""

    def position(self, t):
        drums = self.robot.drives
        return (super().position(t) - drums.zero_length) / drums.radius


@kept_filter_jit
def lengths(robot, position, rotation, t):
    """Cable lengths (n,) [m] with the platform's origin at a position (3,) and axes (3, 3)."""
    q, _ = robot.platform.coordinates(position, rotation)
    b = place(robot.platform.weights(robot.attachments), q)
    y, _ = robot.exits.start(jnp.asarray(t, q.dtype), b, jnp.zeros_like(b))
    return robot.exits.length(jnp.asarray(t, q.dtype), b, y)


def pose(robot, wanted, guess: State | None = None, t=0.0, tolerance: float = 1e-10):
    """Platform position (3,) and axes (3, 3) at which the cables have the `wanted` lengths (n,)
    [m], in the least-squares sense. At least six cables, which determine the pose, are required."""
    wanted = as_float_array(wanted)
    require_shape("lengths", wanted, (robot.n_cables,))
    require(
        robot.n_cables >= 6,
        "lengths",
        f"{robot.n_cables} cables",
        "six or more; the pose of a robot with fewer follows from cordax.equilibrium",
    )
    q0 = (robot.default_state() if guess is None else guess).q[:12]
    origin = place(robot.platform.weights(jnp.zeros(3)), q0)
    axes = robot.platform.rotation(q0)

    def residual(x, args):
        robot, wanted = args
        turned = axes @ rotations.exponential_matrix(x[3:])
        return lengths(robot, origin + x[:3], turned, t) - wanted

    import optimistix as optx  # imported here because it takes longer than the rest of the robot

    solver = optx.LevenbergMarquardt(rtol=tolerance, atol=tolerance)
    found = optx.least_squares(
        residual, solver, jnp.zeros(6, q0.dtype), (robot, wanted), max_steps=100
    )
    x = found.value
    return origin + x[:3], axes @ rotations.exponential_matrix(x[3:])


@kept_filter_jit
def structure_matrix(robot, q, t):
    """Structure matrix W (6, n): `W f` is the force [N] and the moment about the centre of mass
    [N m] that tensions f (n,) exert on the platform, in world axes."""
    parts = robot.split(q)
    weights = robot.platform.weights(robot.attachments)
    b = place(weights, parts.platform)
    total = lambda b: jnp.sum(robot.exits.length(t, b, parts.exits))
    pull = -jax.grad(total)(b)
    centre = place(robot.platform.weights(robot.platform.centre), parts.platform)
    return jnp.concatenate([pull, jnp.cross(b - centre, pull)], axis=1).T


@kept_filter_jit
def static_tensions(robot, q, t):
    """Smallest tensions (n,) [N] that hold the platform at rest, in the least-squares sense."""
    return jnp.linalg.lstsq(structure_matrix(robot, q, t), robot.static_wrench(q))[0]


def platform_motion(robot, q, v):
    """Centre of mass (3,) [m], axes (3, 3), velocity (3,) [m/s] and angular velocity (3,) [rad/s]
    of the platform, in world axes."""
    c, own, rates = robot._constants(), robot.split(q).platform, robot.split(v).platform
    spin = robot.platform.angular_velocity(own, rates)
    centre = c.platform.centre
    return place(centre, own), robot.platform.rotation(own), place(centre, rates), spin


def inverse_dynamics(robot, t, q, v, acceleration, angular_acceleration):
    """Inverse dynamics of the platform.

    Returns the structure matrix W (6, n), the wrench (6,) that the cables must exert for the given
    acceleration of the centre of mass (3,) [m/s^2] and angular acceleration (3,) [rad/s^2], and the
    rates (n,) [m/s] and accelerations (n,) [m/s^2] of the cable lengths in that motion. Assumes
    exits without coordinates."""
    body, parts = robot.platform, robot.split(q)
    centre, R, velocity, spin = platform_motion(robot, q, v)
    up = jnp.array([0.0, 0.0, 1.0], q.dtype)
    force = body.mass * (acceleration + robot.gravity * up) + robot.linear_damping * velocity
    J = matmul(matmul(R, body.inertia), R.T)
    moment = matvec(J, angular_acceleration) + jnp.cross(spin, matvec(J, spin))
    moment = moment + robot.angular_damping * spin
    b = place(robot._constants().attachments, parts.platform)
    arms = b - centre
    b_rate = velocity + jnp.cross(spin, arms)
    b_bend = acceleration + jnp.cross(angular_acceleration, arms)
    b_bend = b_bend + jnp.cross(spin, jnp.cross(spin, arms))
    along = lambda s: robot.exits.length(t + s, b + s * (b_rate + 0.5 * s * b_bend), parts.exits)
    zero, one = jnp.zeros((), q.dtype), jnp.ones((), q.dtype)
    (_, rate), (_, bend) = jax.jvp(lambda s: jax.jvp(along, (s,), (one,)), (zero,), (one,))
    W = structure_matrix(robot, q, t)
    return W, jnp.concatenate([force, moment]), rate, bend
