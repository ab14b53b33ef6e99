"""Registry of everything that a machine file can name.

A kind is the name of a class or function in snake case, `swivel_pulley` for `SwivelPulley`. The
last word may be omitted if the key or the expected class contains it: `exits = { kind = "point" }`
is a `PointExit`."""

import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Union, get_args, get_origin

import equinox as eqx
import jax

from .._base.precision import Number, declared_units
from ..mechanics import System
from ..mechanics.reference_motion import Reference

_ROOT = __name__.split(".")[0]

#: classes, functions and methods that machine files can name, by module; imported when needed
KINDS = {
    "systems.cable_robot.natural": "NaturalBody",
    "systems.cable_robot.payload": "Payload",
    "systems.cable_robot.robot": "CableRobot",
    "systems.measured_points": "BodyPoint RodPoint",
    "systems.mechanism.body": "Body",
    "systems.mechanism.cables": "CableSet RigidCable StrainLaw",
    "systems.mechanism.contact": "Contact",
    "systems.mechanism.elements": "JointFriction JointLimits JointLoads JointMotors JointSpeeds "
    "JointSprings PointSpring",
    "systems.mechanism.form": "Structure as_mechanism expanded_octahedron find_form prism",
    "systems.mechanism.guides": "Eyelet Frame Pulley SwivelPulley",
    "systems.mechanism.iftomm": "andrews_squeezer bricard n_four_bar simple_pendulum",
    "systems.mechanism.located_joints": "Ball FreeJoint Hinge Slider",
    "systems.mechanism.involute": "LengthInvolute RigidInvolute StrainInvolute StretchInvolute",
    "systems.mechanism.joints": "Fixed Floating Prismatic Revolute Spherical Universal",
    "systems.mechanism.loops": "DistanceLoop FrameLoop SphericalLoop RevoluteLoop",
    "systems.mechanism.manipulator": "tensegrity_manipulator",
    "systems.mechanism.mechanism": "Mechanism",
    "systems.mechanism.memory_friction": "PathFriction StickingFriction",
    "systems.mechanism.solids": "Solid box cube cylinder point_mass rod sphere tube",
    "systems.mechanism.strut": "single_strut",
    "systems.mechanism.tendon_drive": "TendonDrive",
    "systems.mechanism.tension_cables": "TensionCables",
    "systems.mechanism.wound": "WoundCables",
    "systems.mechanism.wraps": "Wrap",
    "systems.neck.neck": "Bars Neck Springs",
    "systems.neck.tendons": "ElasticTendon Motors RigidTendon Routing Routing.named",
    "systems.oscillator": "Oscillator Pendulum",
    "systems.rod.discrete_rod": "DiscreteRod Gripper",
    "systems.rod.end_supports": "End End.free End.pinned End.clamped End.sliding",
    "systems.rod.harness": "Harness Joint",
    "systems.rod.plastic_flow": "PlasticFlow",
    "systems.rod.spline_rod": "SplineRod",
    "systems.rod.strand_slip": "StrandSlip",
    "systems.rope_robot.axial": "AxialRopes",
    "systems.rope_robot.laws": "LinearRope ProgressiveRope",
    "systems.rope_robot.platform": "Platform Platform.plate",
    "systems.rope_robot.robot": "RopeRobot",
    "systems.rope_robot.spatial.from_cables": "ropes_for_cables",
    "systems.rope_robot.spatial.robot": "SpatialRopeRobot",
    "systems.rope_robot.two_ropes": "two_rope_robot",
    "systems.rope_robot.winched": "WinchedRopes",
    "control.computed_torque": "ComputedTorque",
    "control.input_function": "InputPath Programme",
    "control.inverse_dynamics": "InverseDynamics",
    "control.multisine": "Multisine",
    "control.pid": "PID",
    "control.predictive": "ModelPredictive",
    "control.pulses": "Pulses",
    "control.recorded": "RecordedInput",
    "control.references": "RaisedCosine Sinusoid",
    "control.task_space": "TaskSpaceControl",
    "control.tension": "BoundedTension MeanTension MinimumTension NullSpaceTension",
    "control.tension_qp": "NearRigidQP",
    "mechanics.parts.cables": "ElasticCables RigidCables",
    "mechanics.parts.contact_law": "ContactLaw ContactLaw.from_penetration",
    "mechanics.parts.line_contact": "LineContact",
    "mechanics.parts.drives": "ProgrammedLengths ServoWinches Winches",
    "mechanics.parts.exits": "CarriageExit PointExit PulleyExit SwivelPulleyExit",
    "mechanics.parts.friction": "FrictionLaw FrictionLaw.dahl FrictionLaw.lugre "
    "FrictionLaw.elastoplastic",
    "mechanics.parts.shapes": "Box Capsule ConvexPoints Cylinder HeightField Plane Sphere",
    "mechanics.parts.surfaces": "CylinderSurface EllipsoidSurface SphereSurface TorusSurface",
    "mechanics.reference_motion": "BSpline Constant Hermite Quintic Shaped",
    "formulations.independent": "IndependentCoordinates",
    "formulations.index1": "Baumgarte UdwadiaKalaba",
    "formulations.index3": "Index3",
    "formulations.minimal": "Minimal",
    "formulations.penalty": "Penalty",
    "formulations.projected": "Projected",
    "integrators.rk4": "RK4",
    "integrators.adaptive": "Adaptive",
    "integrators.convex_contact": "ConvexContact",
    "integrators.diffrax": "Diffrax",
    "integrators.euler_midpoint": "ImplicitEuler ImplicitMidpoint",
    "integrators.explicit_euler": "ExplicitEuler",
    "integrators.generalised_alpha": "GeneralisedAlpha",
    "integrators.linearly_implicit_euler": "LinearlyImplicitEuler",
    "integrators.rosenbrock": "Rosenbrock2",
    "integrators.splitting": "ForestRuth4 StormerVerlet Suzuki4 SymplecticEuler",
    "integrators.unilateral": "Unilateral",
    "integrators.zhai": "Zhai",
}

#: alternative names
_ALIASES = {
    "rod": "spline_rod",
    "strut": "single_strut",
    "tensegrity": "as_mechanism",
    "swivel": "swivel_pulley_exit",
    "programmed": "programmed_lengths",
    "servo": "servo_winches",
}


class Argument(NamedTuple):
    """An argument of a constructor.

    - `name`: its name;
    - `bases`: the classes of objects that it accepts, empty if it accepts none;
    - `depth`: the number of nested lists around these objects;
    - `number`: whether it accepts a number or an array of numbers;
    - `required`, `default`: whether it must be given, and its value otherwise;
    - `unit`: the unit of the number if the docstring of the constructor declares one."""

    name: str
    bases: tuple[type, ...]
    depth: int
    number: bool
    required: bool
    default: Any
    unit: str = ""


def words(name: str) -> str:
    """Convert a name to snake case: `NearRigidQP` becomes near_rigid_qp."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


class _Entry(NamedTuple):
    """A class or function of the registry: its kind, its module and its path in the module."""

    kind: str
    module: str
    path: str

    def load(self) -> tuple[Callable, type]:
        """Import the class or function; return it and the class of its results."""
        owner, make = None, import_module(f"{_ROOT}.{self.module}")
        for name in self.path.split("."):
            owner, make = make, getattr(make, name)
        if isinstance(make, type):
            return make, make
        made = make.__annotations__["return"]
        return make, owner if isinstance(made, str) else made  # pyright: ignore

    def short(self, endings: set[str]) -> str:
        """Return the kind, without its last word if that is one of the `endings`."""
        head, _, last = self.kind.rpartition("_")
        return head if head and last in endings else self.kind


_ENTRIES = tuple(
    _Entry(words(path.rpartition(".")[2]), module, path)
    for module, paths in KINDS.items()
    for path in paths.split()
)


def _endings(bases: tuple[type, ...], place: str) -> set[str]:
    return {words(base.__name__).split("_")[-1] for base in bases} | {place}


def find_kind(name: str, bases: tuple[type, ...], place: str = "") -> tuple[str, Callable] | None:
    """Find the short kind and the constructor of one of the `bases` by name; None if there is
    none. Only modules with a matching name are imported."""
    endings = _endings(bases, place)
    joined = lambda x: x.lower().replace("-", "").replace("_", "")
    for word in (name, _ALIASES.get(name.lower().replace("-", "_"), name)):
        same = [e for e in _ENTRIES if joined(word) in map(joined, (e.kind, e.short(endings)))]
        if choices := _choose(same, bases, endings):
            return next(iter(choices.items()))
    return None


def _choose(entries, bases: tuple[type, ...], endings: set[str]) -> dict[str, Callable]:
    """Select the entries that construct one of the `bases`, by short kind. Functions take
    precedence over classes."""
    chosen: dict[str, Callable] = {}
    for entry in entries:
        make, made = entry.load()
        short = entry.short(endings)
        if issubclass(made, bases) and (short not in chosen or inspect.isfunction(make)):
            chosen[short] = make
    return chosen


@cache
def kinds(bases: tuple[type, ...], place: str = "") -> dict[str, Callable]:
    """Constructors of all subclasses of the `bases`, by kind. Kinds are shortened as the key
    `place` allows."""
    return _choose(_ENTRIES, bases, _endings(bases, place))


def own_kinds(bases: tuple[type, ...]) -> list[Callable]:
    """The `bases` that are themselves in the registry."""
    return [x for x in bases if x.__qualname__ in KINDS.get(_module(x), "").split()]


def _module(x: type) -> str:
    return x.__module__.partition(".")[2]


@cache
def arguments(make: Callable) -> dict[str, Argument]:
    """Arguments of a class or function, by name."""
    units = declared_units(make)
    return {name: x._replace(unit=units.get(name, "")) for name, x in _arguments(make).items()}


def _arguments(make: Callable) -> dict[str, Argument]:
    parameters = inspect.signature(make).parameters
    if isinstance(make, type) and dataclasses.is_dataclass(make):
        fields = [f for f in dataclasses.fields(make) if f.init]
        if {f.name for f in fields} == set(parameters):  # the constructor is the generated one
            return {f.name: _of_field(f) for f in fields if _asked(f)}
    found = {}
    for name, p in parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        needed = p.default is p.empty
        number = p.annotation is p.empty  # a number, or a motion with such values
        bases, depth = ((Reference,), 0) if number else _parts(p.annotation)
        default = None if needed else p.default
        found[name] = Argument(name, bases, depth, number, needed, default)
    return found


def _asked(field: dataclasses.Field) -> bool:
    """Whether a field is an argument for users, not one that the machine computes itself."""
    return field.name not in ("constants", "geometry_numbers")


def _of_field(field: dataclasses.Field) -> Argument:
    bases, depth = _parts(field.type)
    converter = field.metadata.get("converter")
    number = isinstance(converter, Number) or Reference in bases or _is_array(field.type)
    missing = dataclasses.MISSING
    required = field.default is missing and field.default_factory is missing
    default = field.default
    if default is missing:
        default = None if required else field.default_factory()  # pyright: ignore
    return Argument(field.name, bases, depth, number, required, default)


def _is_part(x: Any) -> bool:
    if not isinstance(x, type) or not x.__module__.startswith(f"{_ROOT}."):
        return False
    return issubclass(x, eqx.Module) or (issubclass(x, tuple) and hasattr(x, "_fields"))


def _is_array(annotation: Any) -> bool:
    """Whether an annotation is `Float[Array, ...]`, possibly with other types such as None."""
    return any(hasattr(x, "dim_str") for x in (annotation, *get_args(annotation)))


def _parts(annotation: Any, depth: int = 0) -> tuple[tuple[type, ...], int]:
    """Classes of objects that an annotation accepts, and the number of nested lists around
    them."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        found = [_parts(x, depth) for x in get_args(annotation)]
        bases = tuple(base for parts, _ in found for base in parts)
        return bases, max(n for _, n in found)
    if origin in (tuple, list, Sequence):
        return _parts(next(iter(get_args(annotation)), None), depth + 1)
    if _is_part(annotation) and not issubclass(annotation, jax.Array):
        return (annotation,), depth
    return (), 0


def machine_kinds() -> dict[str, Callable]:
    """Constructors of all machines that a file can describe, by kind."""
    return kinds((System,))
