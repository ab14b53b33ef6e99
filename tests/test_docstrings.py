"""Every public name says what it is; functions that take or return arrays say shapes or units."""

import importlib
import inspect
import re

import pytest

PACKAGES = (
    "cordax",
    "cordax.control",
    "cordax.formulations",
    "cordax.identification",
    "cordax.integrators",
    "cordax.io",
    "cordax.mechanics",
    "cordax.optimisation",
    "cordax.plot",
    "cordax.reduce",
    "cordax.statics",
    "cordax.sweeps",
    "cordax.systems",
    "cordax.systems.mechanism",
    "cordax.viewer",
    "cordax.workspace",
)


def public(package: str) -> dict[str, object]:
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")])
    found = {name: getattr(module, name) for name in names}
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__.startswith("cordax")
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package):
    """Its own: what a class inherits speaks of another class, and a NamedTuple's or dataclass'
    automatic one of nothing."""
    silent = [
        name
        for name, thing in public(package).items()
        if not _own(thing) or _own(thing).startswith(f"{name}(")
    ]
    assert silent == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_method_has_a_docstring(package):
    """Of the class itself or of what it overrides. A field whose default is a function is none."""
    silent = [
        f"{name}.{method}"
        for name, thing in public(package).items()
        if inspect.isclass(thing)
        for method, function in vars(thing).items()
        if not method.startswith("_")
        and inspect.isfunction(function)
        and method not in getattr(thing, "__dataclass_fields__", {})
        and not _said(thing, method)
    ]
    assert silent == []


#: words that say what a number is: a shape, a unit, or that it has none
_TELLING = re.compile(
    r"\[[^\]]+\]|\([^()]*,\)|\([a-z0-9_]+(, [a-z0-9_]+)+\)|shape|unit|seconds|degrees|radians|SI"
)
_ARRAYS = re.compile(r"Float\[|Int\[|Bool\[|Array")


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_on_arrays_say_shapes_or_units(package):
    """In the docstring, or as shapes in the annotations."""
    silent = []
    for name, thing in public(package).items():
        if not inspect.isfunction(thing):
            continue
        notes = [str(x) for x in thing.__annotations__.values()]
        takes_arrays = any(_ARRAYS.search(note) for note in notes)
        if takes_arrays and not _TELLING.search((_own(thing) or "") + " ".join(notes)):
            silent.append(name)
    assert silent == []


def _own(thing) -> str:
    return (thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""


def _said(thing: type, method: str) -> bool:
    return any(
        getattr(vars(base).get(method), "__doc__", None)
        for base in thing.__mro__
        if base is not object
    )
