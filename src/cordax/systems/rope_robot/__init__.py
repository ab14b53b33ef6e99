"""Ropes of rigid finite elements, alone and in robots."""

from .laws import LinearRope, ProgressiveRope, RopeLaw
from .platform import Platform
from .robot import RopeRobot
from .two_ropes import two_rope_robot

__all__ = ["LinearRope", "Platform", "ProgressiveRope", "RopeLaw", "RopeRobot", "two_rope_robot"]
