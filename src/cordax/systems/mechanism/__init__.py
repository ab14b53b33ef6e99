"""Mechanisms assembled from parts: bodies, joints, loops and force elements."""

from ...mechanics.parts.contact_law import ContactLaw
from ...mechanics.parts.friction import FrictionLaw
from ...mechanics.parts.shapes import (
    Box,
    Capsule,
    ConvexPoints,
    Cylinder,
    HeightField,
    Plane,
    Shape,
    Sphere,
)
from ...mechanics.parts.surfaces import (
    CylinderSurface,
    EllipsoidSurface,
    GeodesicSurface,
    SphereSurface,
    Surface,
    TorusSurface,
)
from .assembly import Mobility
from .body import WORLD, Body
from .cables import CableSet, RigidCable, StrainLaw
from .contact import Contact
from .elements import (
    Effort,
    Element,
    Instant,
    JointFriction,
    JointLimits,
    JointLoads,
    JointMotors,
    JointSpeeds,
    JointSprings,
    PointSpring,
)
from .form import (
    SelfStress,
    Structure,
    as_mechanism,
    equilibrium_matrix,
    expanded_octahedron,
    find_form,
    prism,
    self_stress,
)
from .guides import Eyelet, Frame, Guide, Pulley, SwivelPulley
from .iftomm import andrews_squeezer, bricard, n_four_bar, simple_pendulum
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
from .located_joints import Ball, FreeJoint, Hinge, Slider
from .loops import DistanceLoop, FrameLoop, Loop, RevoluteLoop, SphericalLoop
from .manipulator import TensegrityManipulator, tensegrity_manipulator
from .mechanism import Mechanism
from .memory_friction import PathFriction, StickingFriction
from .routes import Route
from .solids import Solid, box, cube, cylinder, point_mass, rod, sphere, tube
from .strut import SingleStrut, single_strut
from .tendon_drive import TendonDrive
from .tension_cables import TensionCables
from .wound import WoundCables
from .wraps import Wrap

__all__ = [
    "WORLD",
    "Ball",
    "Body",
    "Box",
    "CableSet",
    "Capsule",
    "Contact",
    "ContactLaw",
    "ConvexPoints",
    "Cylinder",
    "CylinderSurface",
    "DistanceLoop",
    "Effort",
    "Element",
    "EllipsoidSurface",
    "Eyelet",
    "Fixed",
    "Floating",
    "Frame",
    "FrameLoop",
    "FreeJoint",
    "FrictionLaw",
    "GeodesicSurface",
    "Guide",
    "HeightField",
    "Hinge",
    "Instant",
    "Joint",
    "JointFriction",
    "JointLimits",
    "JointLoads",
    "JointMotion",
    "JointMotors",
    "JointSpeeds",
    "JointSprings",
    "LengthInvolute",
    "Loop",
    "Mechanism",
    "Mobility",
    "PathFriction",
    "Plane",
    "PointSpring",
    "Prismatic",
    "Pulley",
    "Revolute",
    "RevoluteLoop",
    "RigidCable",
    "RigidInvolute",
    "Route",
    "SelfStress",
    "Shape",
    "SingleStrut",
    "Slider",
    "Solid",
    "Sphere",
    "SphereSurface",
    "Spherical",
    "SphericalLoop",
    "StickingFriction",
    "StrainInvolute",
    "StrainLaw",
    "StretchInvolute",
    "Structure",
    "Surface",
    "SwivelPulley",
    "TendonDrive",
    "TensegrityManipulator",
    "TensionCables",
    "TorusSurface",
    "Universal",
    "WoundCables",
    "Wrap",
    "andrews_squeezer",
    "as_mechanism",
    "box",
    "bricard",
    "cube",
    "cylinder",
    "equilibrium_matrix",
    "expanded_octahedron",
    "find_form",
    "n_four_bar",
    "point_mass",
    "prism",
    "rod",
    "rotation_about",
    "self_stress",
    "simple_pendulum",
    "single_strut",
    "sphere",
    "tensegrity_manipulator",
    "tube",
]
