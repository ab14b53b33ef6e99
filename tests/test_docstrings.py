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
    "cordax.reduction",
    "cordax.statics",
    "cordax.sweeps",
    "cordax.systems",
    "cordax.systems.mechanism",
    "cordax.viewer",
    "cordax.statics.workspace",
)


def public(package: str) -> dict[str, object]:
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")])
    found = {name: getattr(module, name) for name in names}
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__.startswith("cordax")
    }


def _own(thing) -> str:
    return (thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""


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


def _every_docstring():
    """Of public names and of methods of public classes, once each, by name."""
    found = {}
    for package in PACKAGES:
        for name, thing in public(package).items():
            found.setdefault(id(thing), (name, _own(thing)))
            for method, function in vars(thing).items() if inspect.isclass(thing) else ():
                function = getattr(function, "__func__", function)  # of class methods
                if not method.startswith("_") and inspect.isfunction(function):
                    found.setdefault(id(function), (f"{name}.{method}", function.__doc__ or ""))
    return dict(found.values())


EXAMPLES = {
    name: inspect.cleandoc(text)
    for name, text in sorted(_every_docstring().items())
    if "```python" in text
}
#: what a newcomer calls first
FIRST = (
    "simulate simulate_batch identify optimise sweep equilibrium modes step_limit check_machine "
    "Experiment Recording Parameter Constraint"
).split()


def test_what_is_called_first_has_an_example():
    assert [name for name in FIRST if name not in EXAMPLES] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name):
    for code in re.findall(r"```python\n(.*?)```", EXAMPLES[name], re.DOTALL):
        exec(compile(code, name, "exec"), {"__name__": name})


@pytest.mark.parametrize("package", PACKAGES)
def test_methods_on_arrays_say_shapes_or_units(package):
    """In their docstring, in that of what they override, or as shapes in the annotations."""
    silent = []
    for name, thing in public(package).items():
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            if method.startswith("_") or not inspect.isfunction(function):
                continue
            notes = [str(x) for x in function.__annotations__.values()]
            texts = [getattr(vars(base).get(method), "__doc__", "") or "" for base in thing.__mro__]
            told = " ".join([*notes, *texts])
            if any(_ARRAYS.search(note) for note in notes) and not _TELLING.search(told):
                silent.append(f"{name}.{method}")
    assert silent == []


def _said(thing: type, method: str) -> bool:
    return any(
        getattr(vars(base).get(method), "__doc__", None)
        for base in thing.__mro__
        if base is not object
    )
