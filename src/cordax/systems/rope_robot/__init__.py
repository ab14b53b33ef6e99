"""Ropes of rigid finite elements, alone and in robots."""

from .laws import LinearRope, ProgressiveRope, RopeLaw
from .platform import Platform
from .robot import RopeRobot

__all__ = ["LinearRope", "Platform", "ProgressiveRope", "RopeLaw", "RopeRobot"]
