"""What can be made by name: the public modules of cordax, and functions that make them.

A kind is the name of a class in small letters, `swivel_pulley` for `SwivelPulley`, or that of a
function or class method that returns one, `cylinder` for a `Solid`. Where the place says it already
the last word may be left out: `exits = { kind = "point" }` is a `PointExit`."""

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
from ..systems import PACKAGES

_ROOT = __name__.split(".")[0]
#: imported when something is looked for there
_EVERYWHERE = ("systems", "systems.neck", "systems.rod", "systems.rope_robot", "systems.mechanism")
_EVERYWHERE += ("control", "formulations", "integrators")
#: by which something is known besides
_ALSO = {
    "rod": "spline_rod",
    "strut": "single_strut",
    "tensegrity": "as_mechanism",
    "swivel": "swivel_pulley_exit",
    "programmed": "programmed_lengths",
    "servo": "servo_winches",
}


class Argument(NamedTuple):
    """What a maker takes by a `name`: parts of the `bases`, in `depth` lists in one another, or
    something else; `number`: whether it is a number or an array of numbers, in a `unit` where the
    docstring says it."""

    name: str
    bases: tuple[type, ...]
    depth: int
    number: bool
    required: bool
    default: Any
    unit: str = ""


def words(name: str) -> str:
    """`NearRigidQP` as near_rigid_qp."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


@cache
def _public(places: tuple[str, ...]) -> dict[str, tuple[Callable, type]]:
    """Makers in modules and what they make, by kind; functions before classes of the same name."""
    found: dict[str, tuple[Callable, type]] = {}
    modules = [import_module(f"{_ROOT}.{place}") for place in places]
    named = [(name, getattr(module, name)) for module in modules for name in _names(module)]
    classes = [(name, x) for name, x in named if _is_part(x)]
    for name, kind in classes:
        if _concrete(kind, [x for _, x in classes]):
            found[f"{kind.__module__}:{words(name)}"] = kind, kind
        for own, method in vars(kind).items():
            if isinstance(method, staticmethod | classmethod) and not issubclass(kind, System):
                if method.__func__.__annotations__.get("return") == kind.__name__:
                    found[f"{kind.__module__}:{own}"] = getattr(kind, own), kind
    for name, make in named:
        made = getattr(make, "__annotations__", {}).get("return")
        if inspect.isfunction(make) and _is_part(made):
            found[f"{make.__module__}:{words(name)}"] = make, made
    return found


def _names(module: types.ModuleType) -> list[str]:
    """What a package exports, or is written in a module."""
    own = [n for n, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [n for n in own if not n.startswith("_")])


def _is_part(x: Any) -> bool:
    if not isinstance(x, type) or not x.__module__.startswith("cordax."):
        return False
    return issubclass(x, eqx.Module) or (issubclass(x, tuple) and hasattr(x, "_fields"))


def _concrete(kind: type, all_: list[type]) -> bool:
    """Not only what others are kinds of."""
    if issubclass(kind, tuple) or dataclasses.fields(kind):  # pyright: ignore[reportArgumentType]
        return not inspect.isabstract(kind)
    return not any(issubclass(other, kind) and other is not kind for other in all_)


def find_kind(name: str, bases: tuple[type, ...], place: str = "") -> tuple[str, Callable] | None:
    """The kind that is meant by a name, as `kinds` has it, and what makes it. Looked for where one
    expects it before everything is imported."""
    for where in (_near(name, bases), _EVERYWHERE):
        choices = kinds(bases, place, where)
        found = kind_of(name, choices)
        if found is not None:
            return found, choices[found]
    return None


def own_kinds(bases: tuple[type, ...], place: str = "") -> list[Callable]:
    """Which of the `bases` can be made themselves."""
    return [make for make in kinds(bases, place, _near("", bases)).values() if make in bases]


def _near(name: str, bases: tuple[type, ...]) -> tuple[str, ...]:
    """Modules where what makes one of the `bases` is written, as a rule."""
    if System in bases:
        word = _ALSO.get(name, name)
        own = [k for k, names in PACKAGES.items() if word in map(words, names.split())]
        return (f"systems.{own[0] if own else 'mechanism'}",)
    found = []
    for base in bases:
        _, layer, *rest = base.__module__.split(".")
        inner = {"mechanics": rest, "systems": rest[:1]}.get(layer, [])
        found.append(".".join([layer, *inner]))
    return (*dict.fromkeys(found), "control")


@cache
def kinds(
    bases: tuple[type, ...], place: str = "", where: tuple[str, ...] = _EVERYWHERE
) -> dict[str, Callable]:
    """All that makes one of the `bases`, by names that are short at a `place`."""
    found: dict[str, Callable] = {}
    endings = {words(base.__name__).split("_")[-1] for base in bases} | {place}
    for path, (make, made) in _public(where).items():
        if issubclass(made, bases):
            name = path.partition(":")[2]
            head, _, last = name.rpartition("_")
            short = head if head and last in endings else name
            # functions of the same name do with fewer words what classes do
            if short not in found or inspect.isfunction(make):
                found[short] = make
    return found


def kind_of(name: str, choices: dict[str, Callable], place: str = "") -> str | None:
    """The choice that is meant by a name, or None."""
    name = name.lower().replace("-", "_")
    for word in (name, _ALSO.get(name, name)):
        if word in choices:
            return word
        head, _, _ = word.rpartition("_")
        if head in choices and words(choices[head].__name__) == word:
            return head
        joined = word.replace("_", "")
        for choice in choices:
            if choice.replace("_", "") == joined:
                return choice
    return None


@cache
def arguments(make: Callable) -> dict[str, Argument]:
    """What a class or function takes, by name."""
    units = declared_units(make)
    return {name: x._replace(unit=units.get(name, "")) for name, x in _arguments(make).items()}


def _arguments(make: Callable) -> dict[str, Argument]:
    parameters = inspect.signature(make).parameters
    if isinstance(make, type) and dataclasses.is_dataclass(make):
        fields = [f for f in dataclasses.fields(make) if f.init]
        if {f.name for f in fields} == set(parameters):  # no constructor of its own
            return {f.name: _of_field(f) for f in fields if _asked(f)}
    found = {}
    for name, p in parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        needed = p.default is p.empty
        number = p.annotation is p.empty  # or a motion, whose values they are
        bases, depth = ((Reference,), 0) if number else _parts(p.annotation)
        default = None if needed else p.default
        found[name] = Argument(name, bases, depth, number, needed, default)
    return found


def _asked(field: dataclasses.Field) -> bool:
    """Not what a machine computes for itself."""
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


def _is_array(annotation: Any) -> bool:
    """Whether it says `Float[Array, ...]`, or that or None."""
    return any(hasattr(x, "dim_str") for x in (annotation, *get_args(annotation)))


def _parts(annotation: Any, depth: int = 0) -> tuple[tuple[type, ...], int]:
    """Modules that an annotation allows, and in how many lists they stand."""
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
    """All machines that a file can describe."""
    return kinds((System,))
