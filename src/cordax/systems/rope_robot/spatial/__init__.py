"""Ropes in space."""

from .from_cables import ropes_for_cables
from .robot import SpatialRopeRobot

__all__ = ["SpatialRopeRobot", "ropes_for_cables"]
