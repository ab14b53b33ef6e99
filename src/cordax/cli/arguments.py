"""Argument types that several commands share, and parsers for their values."""

import math
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, UseAppendAction

from .. import __version__
from .._base.checks import require
from ..simulation.experiment import Experiment


def option(metavar: str, default: str):
    """Help of an option: the placeholder for its value and a text for its default."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


_FILE = "from the machine file"

#: name of an example machine, machine file or saved trajectory
Machine = Annotated[str, Positional, tyro.conf.arg(metavar="MACHINE")]
#: changes of keys of the machine file, `tendon.stiffness=2e5`
Changes = Annotated[tuple[str, ...], UseAppendAction, tyro.conf.arg(metavar="KEY=VALUE")]
Seconds = Annotated[float | None, option("SECONDS", _FILE)]
IntegratorName = Annotated[str | None, option("NAME", _FILE)]
Stride = Annotated[int | None, option("N", _FILE)]
OutputFolder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]


def override(experiment: Experiment, **settings) -> Experiment:
    """The experiment with those `settings` (fields of `Experiment` by name) that are not None."""
    return experiment.replace(**{name: x for name, x in settings.items() if x is not None})


def split_commas(text: str) -> list[str]:
    """The words of a comma-separated list. Commas in an index such as `name[0,1]` do not count."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words if word.strip()]


def parse_number(field: str, text: str) -> float:
    """A finite number; `field` is named in the error."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), field, repr(text), "a finite number")
    return value


def parse_values(field: str, text: str) -> dict[str, float]:
    """Numbers by name from `name=value,name=value`."""
    values = {}
    for word in split_commas(text):
        name, equals, value = word.partition("=")
        require(equals == "=", field, repr(word), "name=value")
        values[name.strip()] = parse_number(f"{field} of {name}", value)
    return values


def parse_range(field: str, text: str) -> tuple[str, tuple[float, float] | None]:
    """Name and bounds from `NAME=LOW:HIGH`; an omitted bound is infinite. None for `NAME` alone."""
    name, equals, bounds = text.partition("=")
    if not equals:
        return name.strip(), None
    low, colon, high = bounds.partition(":")
    require(colon == ":", field, repr(text), "NAME=LOW:HIGH")
    bound = lambda word, default: parse_number(name, word) if word.strip() else default
    return name.strip(), (bound(low, -math.inf), bound(high, math.inf))


def recording_header(kind: str, integrator: str, dt: float) -> dict[str, str]:
    """Header of a CSV file that cordax simulated: machine kind, integrator and time step `dt` [s].
    `cordax fit` simulates with the same settings."""
    return {
        "simulated by": f"cordax {__version__}",
        "machine": kind,
        "integrator": integrator,
        "dt": repr(dt),
    }
