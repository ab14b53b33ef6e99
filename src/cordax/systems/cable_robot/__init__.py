"""Cable robot: a platform on cables, in natural coordinates."""

from .natural import NaturalBody, box_inertia
from .payload import CROSSED, EQUAL, Payload
from .robot import CableRobot

__all__ = ["CROSSED", "EQUAL", "CableRobot", "NaturalBody", "Payload", "box_inertia"]
