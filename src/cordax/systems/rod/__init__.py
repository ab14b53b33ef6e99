"""Rods: spline rods (cables, wires, threads and harnesses) and discrete rods with rest shapes."""

from ...mechanics.parts.contact_law import ContactLaw
from ...mechanics.parts.line_contact import LineContact
from ...mechanics.parts.shapes import Box, Capsule, Cylinder, HeightField, Plane, Sphere
from .discrete_rod import DiscreteRod, Gripper
from .end_supports import End
from .harness import Harness, Joint
from .plastic_flow import PlasticFlow
from .spline_rod import SplineRod
from .strand_slip import StrandSlip

__all__ = [
    "Box",
    "Capsule",
    "ContactLaw",
    "Cylinder",
    "DiscreteRod",
    "End",
    "Gripper",
    "Harness",
    "HeightField",
    "Joint",
    "LineContact",
    "Plane",
    "PlasticFlow",
    "Sphere",
    "SplineRod",
    "StrandSlip",
]
