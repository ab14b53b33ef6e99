"""Guides of cables (attachments and via points): eyelets and pulleys, each on a body."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape, require_unit, require_values
from ..._base.fields import flag_field, name_field
from ..._base.precision import float_field
from ...math.safe import safe_norm, safe_sqrt, safe_unit
from ...mechanics.parts.exits import over_pulley, tangent_square
from .body import WORLD


class Frame(NamedTuple):
    """Pose of a body: axes (3, 3) and origin (3,) [m] in the world."""

    R: Float[Array, "3 3"]
    p: Float[Array, " 3"]

    def point(self, x):
        """World position (3,) of a point of the body."""
        return self.p + self.direction(x)

    def direction(self, x):
        """World components (3,) of a vector of the body."""
        return jnp.sum(self.R * x, axis=1)


class Guide(eqx.Module):
    """Attachment or via point of a cable on a `body`."""

    body: eqx.AbstractVar[str]
    at: eqx.AbstractVar[Float[Array, " 3"]]


class Eyelet(Guide):
    """Point (3,) [m] of a body through which a cable runs, or at which an end is attached."""

    body: str = name_field(default=WORLD)
    at: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))

    def __check_init__(self):
        require_shape("at", self.at, (3,))


class Pulley(Guide):
    """A pulley of a `radius` [m] (at the centre line of the cable) with its centre `at` (3,) [m]
    and its `axis` (3,), a unit vector, in the body that carries it. The cable goes round it
    counterclockwise about the axis, or clockwise with `clockwise`; `turns` counts whole windings
    beyond the arc it lies on, which is at most three quarters of a turn (beyond that give one turn
    more). Where the cable would leave the pulley the arc becomes negative, as if a groove held the
    cable: the run warns of `cable_off_pulley`, and ends at an eighth of a turn. At an end of a
    cable it is a drum: its arc is zero where the cable, followed from its first to its last end,
    runs in the direction `zero` (3,), perpendicular to the axis, and lies within half a turn of it.
    A run ends before an arc passes these limits, where the length would jump by a turn.

    With `winds` there are no such limits: the arc [rad] is a coordinate of the mechanism
    (`winding_1`, ...), which follows the motion over any number of turns. It starts with `turns`
    whole windings. A step may change it by less than half a turn."""

    body: str = name_field()
    at: Float[Array, " 3"] = float_field(unit="m")
    radius: Float[Array, ""] = float_field(unit="m")
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))
    zero: Float[Array, " 3"] = float_field(default=(1.0, 0.0, 0.0))
    clockwise: bool = flag_field(default=False)
    turns: int = eqx.field(static=True, default=0)
    winds: bool = flag_field(default=False)
    #: an arc [rad] less than half a turn away, set during a run
    near: Float[Array, ""] | None = float_field(default=None)

    def __check_init__(self):
        require_shape("at", self.at, (3,))
        require_positive("radius", self.radius)
        whole = isinstance(self.turns, int) and not isinstance(self.turns, bool)
        require(whole and abs(self.turns) < 10**6, "turns", self.turns, "a whole number below 1e6")
        require_unit("axis", self.axis)
        require_unit("zero", self.zero)
        square = lambda zero, axis: abs((zero * axis).sum()) < 1e-5
        expected = "a unit vector perpendicular to the axis"
        require_values("zero", square, self.zero, self.axis, expected=expected)


class SwivelPulley(Guide):
    """A pulley of a `radius` [m] that swivels about the `axis` (3,), a unit vector, through the
    point `at` (3,) [m] of its carrier and has no inertia: the cable comes along that axis, from
    below, and the pulley always faces the next guide, an eyelet; as the last guide of a cable it
    faces the one before. Its arc counts from the axis (`mechanics.exits.PulleyExit` on any body).
    Between two guides the cable is led to the axis at `at` as by an eyelet, where the tension
    changes by friction: by the angle it turns there and the arc."""

    body: str = name_field()
    at: Float[Array, " 3"] = float_field(unit="m")
    radius: Float[Array, ""] = float_field(unit="m")
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_shape("at", self.at, (3,))
        require_positive("radius", self.radius)
        require_unit("axis", self.axis)

    def way(self, frame: Frame, x) -> "Swivelled":
        """Path of the cable over the pulley to a world point (3,)."""
        d, up, r = x - frame.point(self.at), frame.direction(self.axis), self.radius
        height = jnp.sum(d * up)
        beside = d - up * height
        aside = safe_norm(beside)
        square = tangent_square(aside, height, r)
        h = safe_sqrt(square)
        # in the plane of the pulley, from its centre
        x, D = aside - r, jnp.where(square > 0, square + r * r, 1.0)
        along = (h * x + r * height) / D * safe_unit(beside) + (h * height - r * x) / D * up
        return Swivelled(over_pulley(aside, height, r), h, square, along, up)


class Swivelled(NamedTuple):
    """Over a swivelling pulley: arc and straight part, `whole` [m], the `straight` part [m], how
    far its end is from the rim, `square` [m^2], and unit vectors `along` it and `up` the axis."""

    whole: Float[Array, ""]
    straight: Float[Array, ""]
    square: Float[Array, ""]
    along: Float[Array, " 3"]
    up: Float[Array, " 3"]
