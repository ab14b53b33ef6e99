"""Tendons, their motors, and their routing along a chain of joints."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    require,
    require_known,
    require_one_or_each,
    require_positive,
    require_shape,
    require_values,
    require_whole,
)
from ..._base.precision import float_field
from ...math.trigonometry import arctan


class ElasticTendon(eqx.Module):
    """Elastic tendon with tension `stiffness * elongation + damping * d(elongation)/dt`, both in
    tension and in compression.

    `stiffness` [N/m] and `damping` [N s/m]: one number, or one per tendon.
    """

    stiffness: Float[Array, "..."] = float_field(unit="N/m", checked=False)
    damping: Float[Array, "..."] = float_field(unit="N s/m", checked=False)

    def __check_init__(self):
        require_one_or_each("tendon.stiffness", self.stiffness)
        require_one_or_each("tendon.damping", self.damping)
        require_positive("tendon.stiffness", self.stiffness)
        require_positive("tendon.damping", self.damping, zero_allowed=True)


class RigidTendon(eqx.Module):
    """Tendon that does not stretch: the motor angle follows from the joint angles."""


class Motors(eqx.Module):
    """Motors with drums; each quantity is one number, or one per motor.

    `inertia` of rotor and gear [kg m^2], `drum_radius` [m], `gear_ratio` [-]; dry friction torque
    `dry_friction * 2/pi * arctan(friction_slope * rate)` with `dry_friction` [N m] and
    `friction_slope` [s/rad] (the width of the smoothed sign function). A positive angle pays tendon
    out."""

    inertia: Float[Array, "..."] = float_field(unit="kg m^2", checked=False)
    drum_radius: Float[Array, "..."] = float_field(unit="m", checked=False)
    gear_ratio: Float[Array, "..."] = float_field(unit="-", checked=False)
    dry_friction: Float[Array, "..."] = float_field(unit="N m", checked=False, default=0.0)
    friction_slope: Float[Array, "..."] = float_field(unit="s/rad", checked=False, default=1.0)

    def __check_init__(self):
        for name in ("inertia", "drum_radius", "gear_ratio", "dry_friction", "friction_slope"):
            require_one_or_each(f"motors.{name}", getattr(self, name))
        require_positive("motors.inertia", self.inertia)
        require_positive("motors.drum_radius", self.drum_radius)
        require_positive("motors.gear_ratio", self.gear_ratio)
        require_positive("motors.dry_friction", self.dry_friction, zero_allowed=True)
        require_positive("motors.friction_slope", self.friction_slope, zero_allowed=True)

    @property
    def travel(self) -> Float[Array, "..."]:
        """Tendon paid out per motor angle, B = drum radius / gear ratio [m/rad]."""
        return self.drum_radius / self.gear_ratio

    def friction_torque(self, rate):
        """Dry friction [N m] at motor rates [rad/s]; acts against the motion."""
        return self.dry_friction * (2.0 / np.pi) * arctan(self.friction_slope * rate)


class Routing(eqx.Module):
    """Routing of the tendons: `left` and `right`, shape (n_tendons, n_joints), are 1 where a tendon
    runs along that side of a joint and 0 elsewhere."""

    left: Float[Array, "k n"] = float_field(checked=False)
    right: Float[Array, "k n"] = float_field(checked=False)

    def __check_init__(self):
        require(
            self.left.ndim == 2,
            "routing.left",
            f"shape {self.left.shape}",
            "shape (n_tendons, n_joints)",
        )
        require_shape("routing.right", self.right, self.left.shape)
        for field in ("left", "right"):
            entries = getattr(self, field)
            expected = "entries 0 (not along it) or 1 (along it)"
            along = lambda x: (x == 0) | (x == 1)
            require_values(f"routing.{field}", along, entries, expected=expected)

    @classmethod
    def named(cls, name: str, joints: int) -> "Routing":
        """Routing by name. `"single"`: tendon 1 runs left of all joints, tendon j + 1 right of
        joint j. `"cumulative"`: tendon j + 1 runs right of joints 1 to j."""
        require_known("routing", name, ("single", "cumulative"))
        require_whole("joints", joints, 1)
        right = np.eye(joints) if name == "single" else np.tril(np.ones((joints, joints)))
        left = np.zeros((joints + 1, joints))
        left[0] = 1.0
        return cls(left, np.vstack([np.zeros(joints), right]))
