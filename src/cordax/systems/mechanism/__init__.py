"""Any mechanism from parts: bodies, joints, loops and what exerts forces."""

from .assembly import Mobility
from .body import WORLD, Body
from .elements import (
    Effort,
    Element,
    Instant,
    JointFriction,
    JointLimits,
    JointLoads,
    JointMotors,
    JointSprings,
    PointSpring,
)
from .involute import LengthInvolute, RigidInvolute, StrainInvolute, StretchInvolute
from .joints import (
    Fixed,
    Floating,
    Joint,
    JointMotion,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
    rotation_about,
)
from .loops import DistanceLoop, FrameLoop, Loop, RevoluteLoop, SphericalLoop
from .manipulator import TensegrityManipulator, tensegrity_manipulator
from .mechanism import Mechanism
from .solids import Solid, box, cube, cylinder, point_mass, rod, sphere, tube
from .strut import SingleStrut, single_strut
from .wound import WoundCables

__all__ = [
    "WORLD",
    "Body",
    "DistanceLoop",
    "Effort",
    "Element",
    "Fixed",
    "Floating",
    "FrameLoop",
    "Instant",
    "Joint",
    "JointFriction",
    "JointLimits",
    "JointLoads",
    "JointMotion",
    "JointMotors",
    "JointSprings",
    "LengthInvolute",
    "Loop",
    "Mechanism",
    "Mobility",
    "PointSpring",
    "Prismatic",
    "Revolute",
    "RevoluteLoop",
    "RigidInvolute",
    "SingleStrut",
    "Solid",
    "Spherical",
    "SphericalLoop",
    "StrainInvolute",
    "StretchInvolute",
    "TensegrityManipulator",
    "Universal",
    "WoundCables",
    "box",
    "cube",
    "cylinder",
    "point_mass",
    "rod",
    "rotation_about",
    "single_strut",
    "sphere",
    "tensegrity_manipulator",
    "tube",
]
