"""The machines. Each file says what one machine is; nothing else in cordax depends on them."""

from ..mechanics.cables import ElasticCables, RigidCables
from ..mechanics.drives import ProgrammedLengths, ServoWinches, Winches
from ..mechanics.exits import CarriageExit, PointExit, PulleyExit, SwivelPulleyExit
from ..mechanics.natural import NaturalBody, box_inertia
from ..mechanics.obstacles import Cylinder, Plane, Sphere
from ..mechanics.rod_ends import End
from .cable_robot import CableRobot
from .harness import Harness, Joint
from .neck import Bars, Neck, Springs
from .oscillator import Oscillator, Pendulum
from .plastic_flow import PlasticFlow
from .spline_rod import SplineRod

__all__ = [
    "Bars",
    "CableRobot",
    "CarriageExit",
    "Cylinder",
    "ElasticCables",
    "End",
    "Harness",
    "Joint",
    "NaturalBody",
    "Neck",
    "Oscillator",
    "Pendulum",
    "Plane",
    "PlasticFlow",
    "PointExit",
    "ProgrammedLengths",
    "PulleyExit",
    "RigidCables",
    "ServoWinches",
    "Sphere",
    "SplineRod",
    "Springs",
    "SwivelPulleyExit",
    "Winches",
    "box_inertia",
]
