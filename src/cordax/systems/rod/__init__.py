"""Rods: spline rods (cables, wires, threads and harnesses) and discrete rods with rest shapes."""

from .discrete_rod import DiscreteRod, Gripper
from .end_supports import End
from .harness import Harness, Joint
from .obstacles import Cylinder, FixedShape, Plane, Sphere
from .plastic_flow import PlasticFlow
from .spline_rod import SplineRod
from .strand_slip import StrandSlip

__all__ = [
    "Cylinder",
    "DiscreteRod",
    "End",
    "FixedShape",
    "Gripper",
    "Harness",
    "Joint",
    "Plane",
    "PlasticFlow",
    "Sphere",
    "SplineRod",
    "StrandSlip",
]
