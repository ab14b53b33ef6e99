"""The robot with two ropes of Tempel, Schmidt, Haasdonk and Pott (2017)."""

from .platform import Platform
from .robot import RopeRobot


def two_rope_robot(count: int = 20, **changes) -> RopeRobot:
    """A plate of 1 m by 0.3 m on two ropes of 3 m and `count` segments: section 4 of Tempel,
    Schmidt, Haasdonk and Pott (2017). `changes`: fields of `RopeRobot`.

    The paper does not give the mass of the plate, here 5 kg, nor the ropes, here those of
    `RopeRobot` unless changed: 6 mm of polyester."""
    plate = Platform.plate(5.0, (1.0, 0.3), [[-0.5, 0.15], [0.5, 0.15]])
    fields = {"roots": [[0.0, 0.0], [1.0, -0.25]], "length": 3.0, "platform": plate}
    return RopeRobot(**{**fields, "count": count, **changes})
