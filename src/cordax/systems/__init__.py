"""The machines. Each file says what one machine is; nothing else in cordax depends on them."""

from typing import TYPE_CHECKING

from .._base.lazy_imports import later
from ..mechanics.parts.cables import ElasticCables, RigidCables
from ..mechanics.parts.drives import ProgrammedLengths, ServoWinches, Winches
from ..mechanics.parts.exits import CarriageExit, PointExit, PulleyExit, SwivelPulleyExit

if TYPE_CHECKING:
    from .cable_robot import CableRobot, NaturalBody, Payload, box_inertia
    from .measured_points import BodyPoint, RodPoint
    from .mechanism import Mechanism, single_strut, tensegrity_manipulator
    from .neck import Bars, ElasticTendon, Motors, Neck, RigidTendon, Routing, Springs
    from .oscillator import Oscillator, Pendulum
    from .rod import (
        Box,
        Capsule,
        ContactLaw,
        Cylinder,
        DiscreteRod,
        End,
        Gripper,
        Harness,
        HeightField,
        Joint,
        LineContact,
        Plane,
        PlasticFlow,
        Sphere,
        SplineRod,
        StrandSlip,
    )
    from .rope_robot import (
        AxialRopes,
        LinearRope,
        Platform,
        ProgressiveRope,
        RopeLaw,
        RopeRobot,
        SpatialRopeRobot,
        WinchedRopes,
        ropes_for_cables,
        two_rope_robot,
    )

#: names by their package, which is imported when one is asked for: all of them take as long as JAX
PACKAGES = {
    "cable_robot": "CableRobot NaturalBody Payload box_inertia",
    "measured_points": "BodyPoint RodPoint",
    "mechanism": "Mechanism single_strut tensegrity_manipulator",
    "neck": "Bars ElasticTendon Motors Neck RigidTendon Routing Springs",
    "oscillator": "Oscillator Pendulum",
    "rod": "Box Capsule ContactLaw Cylinder DiscreteRod End Gripper Harness HeightField Joint "
    "LineContact Plane PlasticFlow Sphere SplineRod StrandSlip",
    "rope_robot": "AxialRopes LinearRope Platform ProgressiveRope RopeLaw RopeRobot "
    "SpatialRopeRobot WinchedRopes ropes_for_cables two_rope_robot",
}
__getattr__, __dir__ = later(__name__, PACKAGES)

__all__ = [
    "AxialRopes",
    "Bars",
    "BodyPoint",
    "Box",
    "CableRobot",
    "Capsule",
    "CarriageExit",
    "ContactLaw",
    "Cylinder",
    "DiscreteRod",
    "ElasticCables",
    "ElasticTendon",
    "End",
    "Gripper",
    "Harness",
    "HeightField",
    "Joint",
    "LineContact",
    "LinearRope",
    "Mechanism",
    "Motors",
    "NaturalBody",
    "Neck",
    "Oscillator",
    "Payload",
    "Pendulum",
    "Plane",
    "PlasticFlow",
    "Platform",
    "PointExit",
    "ProgrammedLengths",
    "ProgressiveRope",
    "PulleyExit",
    "RigidCables",
    "RigidTendon",
    "RodPoint",
    "RopeLaw",
    "RopeRobot",
    "Routing",
    "ServoWinches",
    "SpatialRopeRobot",
    "Sphere",
    "SplineRod",
    "Springs",
    "StrandSlip",
    "SwivelPulleyExit",
    "WinchedRopes",
    "Winches",
    "box_inertia",
    "ropes_for_cables",
    "single_strut",
    "tensegrity_manipulator",
    "two_rope_robot",
]
