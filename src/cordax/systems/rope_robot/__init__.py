"""Ropes of rigid finite elements, alone and in robots."""

from .axial import AxialRopes
from .laws import LinearRope, ProgressiveRope, RopeLaw
from .platform import Platform
from .robot import RopeRobot
from .two_ropes import two_rope_robot
from .winched import WinchedRopes

__all__ = [
    "AxialRopes",
    "LinearRope",
    "Platform",
    "ProgressiveRope",
    "RopeLaw",
    "RopeRobot",
    "WinchedRopes",
    "two_rope_robot",
]
