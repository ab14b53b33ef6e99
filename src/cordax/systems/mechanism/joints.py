"""Joints: motion of a body relative to its parent.

The predecessor frame is fixed to the parent; the successor frame is the body frame. Motion is
described by spatial vectors `[omega; v]` in successor axes, at the origin of the successor frame
(Featherstone)."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import known_values, require, require_direction
from ..._base.precision import as_float_array
from ...math import rotations
from ...math.safe import safe_norm
from ...math.trigonometry import sincos


class JointMotion(NamedTuple):
    """Relative motion in a joint: rotation `R` (3, 3) from successor to predecessor axes, `p` (3,)
    origin of the successor in the predecessor [m], `S` (k, 6), one row per velocity, and `c` (6,),
    the component-wise rate of `S^T v`."""

    R: Float[Array, "3 3"]
    p: Float[Array, " 3"]
    S: Float[Array, "k 6"]
    c: Float[Array, " 6"]


class Joint(eqx.Module):
    """Joint of a tree. `coordinates` and `velocities` hold the names of its coordinates and
    velocities, which differ only for joints with a quaternion."""

    coordinates: ClassVar[tuple[str, ...]]
    velocities: ClassVar[tuple[str, ...]]
    #: SI units of the coordinates, "" for dimensionless ones
    units: ClassVar[tuple[str, ...]] = ()

    def motion(self, q, v) -> JointMotion:
        """Motion of one joint with coordinates `q` and velocities `v`."""
        raise NotImplementedError

    def zero(self) -> np.ndarray:
        """Coordinates at which predecessor and successor frame coincide."""
        return np.zeros(len(self.coordinates))

    def rate(self, q, v):
        """Rate dq/dt of the coordinates."""
        return v

    def retract(self, q, dq):
        """Coordinates after a motion from `q` at constant velocity `dq` for one second."""
        return q + dq

    def difference(self, q, other):
        """Motion from `q` to `other`, the inverse of `retract`."""
        return other - q

    def normalise(self, q):
        """Nearest admissible coordinates: quaternions are scaled to unit length."""
        return q


class Fixed(Joint):
    """Fixed joint, without motion."""

    coordinates = ()
    velocities = ()

    def motion(self, q, v):
        return JointMotion(jnp.eye(3), jnp.zeros(3), jnp.zeros((0, 6)), jnp.zeros(6))


class Revolute(Joint):
    """Hinge about `axis`: "x", "y", "z" or a vector (3,). Its coordinate is the angle [rad]."""

    axis: Float[Array, " 3"] = eqx.field(converter=lambda a: as_axis(a), default="z")
    coordinates = ("angle",)
    velocities = ("angle",)
    units = ("rad",)

    def __check_init__(self):
        require_direction("axis", self.axis)

    def motion(self, q, v):
        a = unit_axis(self.axis)
        s, c = sincos(q[0])
        R = c * jnp.eye(3) + s * cross_matrix(a) + (1.0 - c) * a[:, None] * a
        zero = jnp.zeros(3)
        return JointMotion(R, zero, jnp.concatenate([a, zero])[None], jnp.zeros(6))


class Prismatic(Joint):
    """Slider along `axis`. Its coordinate is the distance [m]."""

    axis: Float[Array, " 3"] = eqx.field(converter=lambda a: as_axis(a), default="z")
    coordinates = ("distance",)
    velocities = ("distance",)
    units = ("m",)

    def __check_init__(self):
        require_direction("axis", self.axis)

    def motion(self, q, v):
        a = unit_axis(self.axis)
        S = jnp.concatenate([jnp.zeros(3), a])[None]
        return JointMotion(jnp.eye(3), a * q[0], S, jnp.zeros(6))


class Universal(Joint):
    """Universal joint: a hinge about x, then one about the rotated y axis. Its coordinates are the
    angles [rad]."""

    coordinates = ("x", "y")
    velocities = ("x", "y")
    units = ("rad", "rad")

    def motion(self, q, v):
        (s1, s2), (c1, c2) = sincos(q)
        zero, one = jnp.zeros_like(s1), jnp.ones_like(s1)
        R = jnp.stack(
            [
                jnp.stack([c2, zero, s2]),
                jnp.stack([s1 * s2, c1, -s1 * c2]),
                jnp.stack([-c1 * s2, s1, c1 * c2]),
            ]
        )
        S = jnp.stack(
            [
                jnp.stack([c2, zero, s2, zero, zero, zero]),
                jnp.stack([zero, one, zero, zero, zero, zero]),
            ]
        )
        product = v[0] * v[1]
        c = jnp.stack([-s2 * product, zero, c2 * product, zero, zero, zero])
        return JointMotion(R, jnp.zeros(3), S, c)


class Spherical(Joint):
    """Ball joint. Its coordinates are a unit quaternion (w, x, y, z) from successor to predecessor
    axes; its velocity is the angular velocity omega in successor axes [rad/s]."""

    coordinates = ("qw", "qx", "qy", "qz")
    velocities = ("wx", "wy", "wz")

    def motion(self, q, v):
        return JointMotion(quaternion_matrix(q), jnp.zeros(3), jnp.eye(3, 6), jnp.zeros(6))

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


class Floating(Joint):
    """Joint of a free body. Its coordinates are a unit quaternion (w, x, y, z) and the position in
    the predecessor frame [m]; its velocity is the twist [omega; v] in body axes."""

    coordinates = ("qw", "qx", "qy", "qz", "x", "y", "z")
    velocities = ("wx", "wy", "wz", "vx", "vy", "vz")
    units = ("", "", "", "", "m", "m", "m")

    def motion(self, q, v):
        return JointMotion(quaternion_matrix(q[:4]), q[4:], jnp.eye(6), jnp.zeros(6))

    def zero(self):
        return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def rate(self, q, v):
        return jnp.concatenate(
            [rotations.rate(q[:4], v[:3]), turn(quaternion_matrix(q[:4]), v[3:])]
        )

    def retract(self, q, dq):
        moved = turn(quaternion_matrix(q[:4]), rotations.displacement(dq[:3], dq[3:]))
        return jnp.concatenate([rotations.retract(q[:4], dq[:3]), q[4:] + moved])

    def difference(self, q, other):
        moved = turn(quaternion_matrix(q[:4]).T, other[4:] - q[4:])
        phi = rotations.difference(q[:4], other[:4])
        return jnp.concatenate([phi, rotations.inverse_displacement(phi, moved)])

    def normalise(self, q):
        return jnp.concatenate([q[:4] / safe_norm(q[:4]), q[4:]])


def rotation_about(axis, angle) -> Float[Array, "3 3"]:
    """Rotation matrix for an `angle` [rad] about "x", "y", "z" or a vector (3,)."""
    return Revolute(axis).motion(as_float_array(angle)[None], None).R


def rotation_between(a, b) -> Float[Array, "3 3"]:
    """Rotation matrix that turns the direction of `a` (3,) into that of `b` (3,)."""
    a, b = (np.asarray(x, float) / np.linalg.norm(x) for x in (a, b))
    c = float(a @ b)
    if c < -0.5:  # in two steps, because the formula below is ill conditioned near half a turn
        middle = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
        return rotation_between(middle, b) @ rotation_between(a, middle)
    K = np.array(cross_matrix(jnp.asarray(np.cross(a, b))))
    return as_float_array(np.eye(3) + K + K @ K / (1.0 + c))


def turn(R, x):
    return jnp.sum(R * x, axis=1)


def quaternion_matrix(q):
    """Rotation matrix of a quaternion whose length an integrator may have changed slightly."""
    return rotations.matrix(q / safe_norm(q))


def cross_matrix(a):
    zero = jnp.zeros_like(a[0])
    return jnp.stack(
        [
            jnp.stack([zero, -a[2], a[1]]),
            jnp.stack([a[2], zero, -a[0]]),
            jnp.stack([-a[1], a[0], zero]),
        ]
    )


def as_axis(axis) -> Any:
    if isinstance(axis, str):
        require(axis in ("x", "y", "z"), "axis", repr(axis), "'x', 'y', 'z' or a vector (3,)")
        return as_float_array(np.eye(3)["xyz".index(axis)])
    if type(axis) is object:  # placeholder of a JAX transformation
        return axis
    axis = as_float_array(axis, "axis")
    known = known_values(axis)
    if known is not None and known.shape == (3,) and np.linalg.norm(known) > 0:
        return axis / jnp.linalg.norm(axis)
    return axis


def unit_axis(axis) -> Float[Array, " 3"]:
    """Axis normalised to length one. Constructors normalise axes too, but `eqx.tree_at` and sweeps
    do not."""
    return axis / jnp.sqrt(jnp.sum(axis**2))


__all__ = [
    "Fixed",
    "Floating",
    "Joint",
    "JointMotion",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
    "rotation_about",
    "rotation_between",
]
