"""Ropes modelled by rigid finite elements, alone and in robots."""

from .axial import AxialRopes
from .laws import LinearRope, ProgressiveRope, RopeLaw
from .platform import Platform
from .robot import RopeRobot
from .spatial import SpatialRopeRobot, ropes_for_cables
from .two_ropes import two_rope_robot
from .winched import WinchedRopes

__all__ = [
    "AxialRopes",
    "LinearRope",
    "Platform",
    "ProgressiveRope",
    "RopeLaw",
    "RopeRobot",
    "SpatialRopeRobot",
    "WinchedRopes",
    "ropes_for_cables",
    "two_rope_robot",
]
