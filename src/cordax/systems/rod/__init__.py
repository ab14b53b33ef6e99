"""Rods as splines: wires, threads, and harnesses of them."""

from .ends import End
from .harness import Harness, Joint
from .obstacles import Cylinder, Plane, Sphere
from .plastic_flow import PlasticFlow
from .spline_rod import SplineRod

__all__ = ["Cylinder", "End", "Harness", "Joint", "Plane", "PlasticFlow", "Sphere", "SplineRod"]
