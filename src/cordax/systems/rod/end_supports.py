"""Supports at the ends of a rod."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape
from ..._base.fields import flag_field
from ..._base.precision import as_float_array, declare_units, float_field
from ...mechanics.reference_motion import Constant, Reference, reference_field, require_position


class End(eqx.Module):
    """Support of one end of a rod.

    - `holds`: which of x, y, z of the end point are held;
    - `slope`: which of x, y, z of the tangent there are held (the second control point);
    - `twist`: whether its angle is held;
    - `stiffness` (3,) [N/m]: springs from the end point to `point`;
    - `point` (3,) [m], `tangent` (3,) [m/m], `angle` [rad]: where it is held, as constants or as a
      `Reference` of time (a gripper); None: as in the straight rod."""

    holds: tuple[bool, bool, bool] = eqx.field(static=True, default=(True, True, True))
    slope: tuple[bool, bool, bool] = eqx.field(static=True, default=(False, False, False))
    twist: bool = flag_field(default=True)
    stiffness: Float[Array, " 3"] = float_field(unit="N/m", default=(0.0, 0.0, 0.0))
    point: Reference | None = reference_field(unit="m", default=None)
    tangent: Reference | None = reference_field(unit="m/m", default=None)
    angle: Reference | None = reference_field(unit="rad", default=None)

    def __check_init__(self):
        for name in ("holds", "slope"):
            given = getattr(self, name)
            flags = isinstance(given, tuple) and all(isinstance(x, bool) for x in given)
            ok = flags and len(given) == 3
            require(ok, name, given, "three booleans, for x, y and z")
        require_positive("stiffness", self.stiffness, zero_allowed=True)
        for name, shape in (("point", (3,)), ("tangent", (3,)), ("angle", ())):
            reference = getattr(self, name)
            if reference is not None:
                require_position(name, reference, shape)

    @property
    def moves(self) -> bool:
        """Whether the support may move."""
        given = (self.point, self.tangent, self.angle)
        return any(x is not None and not isinstance(x, Constant) for x in given)

    def held(self) -> tuple[tuple[bool, bool, bool, bool], tuple[bool, bool, bool, bool]]:
        """Which of x, y, z, theta of the outermost and of the next control point are held."""
        return (*self.holds, self.twist), (*self.slope, False)

    def place(self, t, point, tangent, angle):
        """Position, tangent and angle at which the end is held; by default those of the straight
        rod."""
        get = lambda given, default: default if given is None else given.position(t)
        return get(self.point, point), get(self.tangent, tangent), get(self.angle, angle)

    @staticmethod
    def free() -> "End":
        """A free end, not held at all."""
        return End((False, False, False), twist=False)

    @staticmethod
    def pinned(point=None, *, twist: bool = True) -> "End":
        """A pinned end: the end point is held, the tangent is not."""
        return End(twist=twist, point=point)

    @staticmethod
    def clamped(point=None, tangent=None, angle=None) -> "End":
        """A clamped end: end point, tangent and angle are held, by a wall or a moving gripper."""
        return End(slope=(True, True, True), point=point, tangent=tangent, angle=angle)

    @staticmethod
    @declare_units(stiffness="N/m", anchor="m")
    def sliding(stiffness: float, anchor=None, *, slope: bool = False, twist: bool = True) -> "End":
        """A sliding end: free along x against a spring [N/m], held across; with `slope`, parallel
        to x. The spring is attached to an `anchor` (3,) [m], a constant or a `Reference` of time,
        whose y and z hold the rod; None: where the straight rod ends."""
        along = as_float_array(stiffness, "stiffness")
        require_shape("stiffness", along, ())
        return End(
            (False, True, True),
            (False, slope, slope),
            twist,
            jnp.array([1.0, 0.0, 0.0]) * along,
            anchor,
        )
