"""Guides of cables: eyelets and pulleys on bodies, as attachments and via points."""

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
    """Point (3,) [m] of a body through which a cable runs or to which an end is attached."""

    body: str = name_field(default=WORLD)
    at: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))

    def __check_init__(self):
        require_shape("at", self.at, (3,))


class Pulley(Guide):
    """Pulley with a `radius` [m] (at the centre line of the cable), its centre `at` (3,) [m] and
    its `axis` (3,), a unit vector, in the axes of the body that carries it.

    The cable goes round it counterclockwise about the axis, or clockwise with `clockwise`. `turns`
    is the number of whole windings in addition to the arc on which the cable lies. That arc is at
    most three quarters of a turn; for a larger one, give one turn more.

    Where the cable would leave the pulley the arc becomes negative, as if a groove held the cable.
    The run then warns of `cable_off_pulley`, and ends when the arc reaches an eighth of a turn
    below zero.

    At an end of a cable the pulley is a drum. Its arc is zero where the cable, followed from its
    first to its last end, runs in the direction `zero` (3,), perpendicular to the axis, and stays
    within half a turn of that. A run ends before an arc passes these limits, where the length would
    jump by one turn.

    With `winds` these limits do not apply: the arc [rad] is a coordinate of the mechanism
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
    #: an arc [rad] that differs from the actual one by less than half a turn; set during a run
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
    """Pulley with a `radius` [m] that swivels, without inertia, about the `axis` (3,), a unit
    vector, through the point `at` (3,) [m] of its body.

    The cable arrives along that axis, from below. The pulley always faces the next guide, which
    must be an eyelet; as the last guide of a cable it faces the previous one. Its arc counts from
    the axis (as `mechanics.exits.PulleyExit`, but on any body). Between two guides, the cable
    reaches the axis at `at` as through an eyelet. Friction there acts over the sum of the angle by
    which the cable turns at `at` and the arc."""

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
        # coordinates in the plane of the pulley, relative to its centre
        x, D = aside - r, jnp.where(square > 0, square + r * r, 1.0)
        along = (h * x + r * height) / D * safe_unit(beside) + (h * height - r * x) / D * up
        return Swivelled(over_pulley(aside, height, r), h, square, along, up)


class Swivelled(NamedTuple):
    """Path of a cable over a swivelling pulley: arc plus straight part, `whole` [m], the `straight`
    part [m], its squared length `square` [m^2], positive where its end is outside of the rim, and
    unit vectors `along` the straight part and `up` the axis."""

    whole: Float[Array, ""]
    straight: Float[Array, ""]
    square: Float[Array, ""]
    along: Float[Array, " 3"]
    up: Float[Array, " 3"]
