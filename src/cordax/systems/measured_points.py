"""Points of a machine at which a sensor measures, for `Sensor(quantity=...)`."""

import equinox as eqx
from jaxtyping import Array, Float

from .._base.checks import is_number, require
from .._base.fields import name_field
from .._base.precision import float_field


class BodyPoint(eqx.Module):
    """Position (3,) [m] of a `point` (3,) [m] of a `body` (in its axes): a body of a `Mechanism`,
    or the "platform" of a `CableRobot`."""

    body: str = name_field()
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))

    def __call__(self, machine, t, q, v) -> Float[Array, " 3"]:
        given = type(machine).__name__
        require(hasattr(machine, "body_point"), "BodyPoint", given, "a Mechanism or a CableRobot")
        return machine.body_point(t, q, self.body, self.point)


class RodPoint(eqx.Module):
    """Position (3,) [m] of the centre line of a `SplineRod` or `DiscreteRod` at a material
    `station`, a fraction of its length from the left end."""

    station: float = eqx.field(static=True)

    def __check_init__(self):
        inside = is_number(self.station) and 0.0 <= self.station <= 1.0
        require(inside, "station", self.station, "a fraction of the length")

    def __call__(self, machine, t, q, v) -> Float[Array, " 3"]:
        given = type(machine).__name__
        require(hasattr(machine, "rod_point"), "RodPoint", given, "a SplineRod or a DiscreteRod")
        return machine.rod_point(t, q, self.station)
