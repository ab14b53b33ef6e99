"""Declared units of fields and arguments."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import equinox as eqx
import pytest

import cordax
from cordax._base.precision import Number, declared_units
from cordax._base.quantities import parsed
from cordax.io import read_machine

PACKAGES = ("control", "formulations", "mechanics", "simulation", "systems")

#: fields whose unit depends on the machine, or differs from entry to entry
VARIABLE = {"Penalty.alpha", "Quintic.start", "Actuators.time_constants"}
VARIABLE |= {  # forces on sliders, torques on hinges
    f"FrictionLaw.{name}"
    for name in ("coulomb", "static", "stiffness", "damping", "viscosity", "stribeck")
}


def makers():
    """All module classes, and all functions with declared units, of the packages for machines."""
    for package in PACKAGES:
        root = importlib.import_module(f"cordax.{package}")
        for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            for make in vars(importlib.import_module(info.name)).values():
                if getattr(make, "__module__", "") != info.name:
                    continue
                if inspect.isclass(make) and issubclass(make, eqx.Module):
                    yield make
                elif inspect.isfunction(make) and declared_units(make):
                    yield make


def documented(make) -> dict[str, str]:
    """Units directly behind a name in the docstring: `name` [N], `name` (n,) [N]."""
    pairs = re.findall(r"`(\w+)`(?:\s\([^()]*\))?\s\[([^\]]+)\]", make.__doc__ or "")
    return {name: " ".join(unit.split()) for name, unit in pairs}


def test_docstrings_and_declarations_agree_and_can_be_read():
    compared = 0
    for make in makers():
        units = declared_units(make)
        for name, unit in units.items():
            parsed(name, unit)  # raises if it is no unit
        for name in units.keys() & documented(make).keys():
            assert documented(make)[name] == units[name], (make, name)
            compared += 1
    # more than half of the 220 declarations; others are documented together, `a` and `b` [m]
    assert compared > 120


def test_fields_with_a_documented_unit_declare_it():
    undeclared = set()
    for make in makers():
        fields = dataclasses.fields(make) if inspect.isclass(make) else ()
        numbers = {f.name for f in fields if isinstance(f.metadata.get("converter"), Number)}
        missing = (numbers & documented(make).keys()) - declared_units(make).keys()
        undeclared |= {f"{make.__name__}.{name}" for name in missing}
    assert undeclared <= VARIABLE


def test_a_quantity_of_another_unit_is_rejected(tmp_path):
    text = cordax.io.example_path("neck").read_text()
    assert "stiffness = " in text
    path = tmp_path / "neck.toml"
    path.write_text(text)
    same = read_machine(path, changes=['tendon.stiffness="200 kN/m"']).experiment.system
    assert float(same.tendon.stiffness) == pytest.approx(2e5)  # a product of decimal factors
    with pytest.raises(ValueError, match=r"tendon.stiffness.*a quantity in N/m"):
        read_machine(path, changes=['tendon.stiffness="200 N"'])
