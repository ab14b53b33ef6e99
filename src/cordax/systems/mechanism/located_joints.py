"""Joints with the coordinates of MuJoCo, whose axis or centre may lie anywhere in the body.

`point` (3,) [m] is a point on the axis, or the centre of the ball joint, in body axes. Predecessor
and successor frame coincide where the coordinate of a hinge or slider equals `zero_position`."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_direction
from ..._base.precision import float_field
from ...math import rotations
from ...math.safe import safe_norm
from ...math.trigonometry import sincos
from .joints import (
    Joint,
    JointMotion,
    as_axis,
    cross_matrix,
    quaternion_matrix,
    turn,
    unit_axis,
)


class Hinge(Joint):
    """Hinge about `axis` ("x", "y", "z" or a vector (3,)) through a `point`. Its coordinate is the
    angle [rad]."""

    axis: Float[Array, " 3"] = eqx.field(converter=lambda a: as_axis(a), default="z")
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    zero_position: Float[Array, ""] = float_field(default=0.0)
    coordinates = ("angle",)
    velocities = ("angle",)
    units = ("rad",)

    def __check_init__(self):
        require_direction("axis", self.axis)

    def motion(self, q, v):
        a, x = unit_axis(self.axis), self.point
        s, c = sincos(q[0] - self.zero_position)
        R = c * jnp.eye(3) + s * cross_matrix(a) + (1.0 - c) * a[:, None] * a
        S = jnp.concatenate([a, turn(cross_matrix(x), a)])[None]
        return JointMotion(R, x - turn(R, x), S, jnp.zeros(6))

    def zero(self):
        return np.asarray(self.zero_position)[None]


class Slider(Joint):
    """Slider along `axis`. Its coordinate is the position [m]."""

    axis: Float[Array, " 3"] = eqx.field(converter=lambda a: as_axis(a), default="z")
    zero_position: Float[Array, ""] = float_field(default=0.0)
    coordinates = ("position",)
    velocities = ("position",)
    units = ("m",)

    def __check_init__(self):
        require_direction("axis", self.axis)

    def motion(self, q, v):
        a = unit_axis(self.axis)
        S = jnp.concatenate([jnp.zeros(3), a])[None]
        return JointMotion(jnp.eye(3), a * (q[0] - self.zero_position), S, jnp.zeros(6))

    def zero(self):
        return np.asarray(self.zero_position)[None]


class Ball(Joint):
    """Ball joint about a `point`.

    Its coordinates are a unit quaternion (w, x, y, z) that rotates from successor to predecessor
    axes. Its velocity is the angular velocity omega in body axes [rad/s]."""

    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    coordinates = ("qw", "qx", "qy", "qz")
    velocities = ("wx", "wy", "wz")

    def motion(self, q, v):
        R, x = quaternion_matrix(q), self.point
        S = jnp.concatenate([jnp.eye(3), -cross_matrix(x)], axis=1)
        # row k is (e_k, x cross e_k), and the matrix of the cross product is antisymmetric
        return JointMotion(R, x - turn(R, x), S, jnp.zeros(6))

    def zero(self):
        return np.array([1.0, 0.0, 0.0, 0.0])

    def rate(self, q, v):
        return rotations.rate(q, v)

    def retract(self, q, dq):
        return rotations.retract(q, dq)

    def difference(self, q, other):
        return rotations.difference(q, other)

    def normalise(self, q):
        return q / safe_norm(q)


class FreeJoint(Joint):
    """Joint of a free body.

    Its coordinates are the position [m] in the predecessor frame, then a unit quaternion
    (w, x, y, z). Its velocities are the velocity of the body's origin in predecessor axes [m/s],
    then the angular velocity omega in body axes [rad/s]. In contrast, `Floating` has both
    velocities in body axes."""

    coordinates = ("x", "y", "z", "qw", "qx", "qy", "qz")
    velocities = ("vx", "vy", "vz", "wx", "wy", "wz")
    units = ("m", "m", "m", "", "", "", "")

    def motion(self, q, v):
        R, omega = quaternion_matrix(q[3:]), v[3:]
        zero = jnp.zeros((3, 3), R.dtype)
        # a velocity along axis k of the predecessor is R^T e_k in body axes: row k of R
        S = jnp.concatenate(
            [
                jnp.concatenate([zero, R], axis=1),
                jnp.concatenate([jnp.eye(3, dtype=R.dtype), zero], axis=1),
            ]
        )
        rate = -turn(cross_matrix(omega), turn(R.T, v[:3]))
        return JointMotion(R, q[:3], S, jnp.concatenate([jnp.zeros(3), rate]))

    def zero(self):
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def rate(self, q, v):
        return jnp.concatenate([v[:3], rotations.rate(q[3:], v[3:])])

    def retract(self, q, dq):
        return jnp.concatenate([q[:3] + dq[:3], rotations.retract(q[3:], dq[3:])])

    def difference(self, q, other):
        turned = rotations.difference(q[3:], other[3:])
        return jnp.concatenate([other[:3] - q[:3], turned])

    def normalise(self, q):
        return jnp.concatenate([q[:3], q[3:] / safe_norm(q[3:])])


__all__ = ["Ball", "FreeJoint", "Hinge", "Slider"]
