"""The machines. Each file says what one machine is; nothing else in cordax depends on them."""

from ..mechanics.cables import ElasticCables, RigidCables
from ..mechanics.drives import ProgrammedLengths, ServoWinches, Winches
from ..mechanics.exits import CarriageExit, PointExit, PulleyExit, SwivelPulleyExit
from ..mechanics.natural import NaturalBody, box_inertia
from .cable_robot import CableRobot
from .neck import Bars, Neck, Springs
from .oscillator import Oscillator, Pendulum

__all__ = [
    "Bars",
    "CableRobot",
    "CarriageExit",
    "ElasticCables",
    "NaturalBody",
    "Neck",
    "Oscillator",
    "Pendulum",
    "PointExit",
    "ProgrammedLengths",
    "PulleyExit",
    "RigidCables",
    "ServoWinches",
    "Springs",
    "SwivelPulleyExit",
    "Winches",
    "box_inertia",
]
