"""Columns of a log by the names of a machine."""

import re

import jax
import numpy as np

from .._base.checks import require
from ..mechanics import System
from ..mechanics.units import unit_of
from ..recordings.recording import Recording


def quantity_names(system: System, state) -> list[str]:
    """Names of coordinates, velocities, inputs, outputs and components of outputs."""
    u = np.zeros(system.n_u)
    multipliers = np.zeros(system.n_constraints)
    outputs = jax.eval_shape(system.outputs, 0.0, state.q, state.v, u, multipliers)
    names = [*system.coordinate_names, *(f"d_{n}" for n in system.velocity_names)]
    names += system.input_names
    for name, x in outputs.items():
        parts = int(np.prod(x.shape))
        names += [name] if x.ndim == 0 else [name, *(f"{name}_{i + 1}" for i in range(parts))]
    return list(dict.fromkeys(names))


def with_machine_names(
    path, log: Recording, system: System, state, columns: dict[str, str]
) -> tuple[Recording, list[str]]:
    """The channels of a log that the machine knows, by its names, and lines about them. `columns`:
    names in the log by names of the machine; otherwise names may differ in upper and lower case and
    in separators. Raises where a unit of the log does not fit the machine."""
    known, lines = quantity_names(system, state), []
    plain = lambda name: re.sub(r"[\s.\-]+", "_", name.strip().lower())
    by_plain = {plain(name): name for name in known}
    names = {}
    for machine, column in columns.items():
        require(column in log.values, f"{path}: columns", column, f"some of {', '.join(log.names)}")
        require(machine in known, "columns", machine, f"some of {', '.join(known)}")
        names[column] = machine
    for column in log.names:
        machine = column if column in known else by_plain.get(plain(column))
        if column not in names and machine is not None and machine not in names.values():
            names[column] = machine
    require(len(names) > 0, str(path), ", ".join(log.names), f"columns among {', '.join(known)}")
    renamed = [f"{a} is {b}" for a, b in names.items() if a != b]
    unused = [name for name in log.names if name not in names]
    lines += [f"{path}: {', '.join(renamed)}"] if renamed else []
    lines += [f"{path}: columns not used: {', '.join(unused)}"] if unused else []
    units = dict(word.rsplit(" ", 1) for word in _units(log) if " " in word)
    for column, machine in names.items():
        stated, expected = units.get(column), unit_of(system, machine)
        angle = {stated, expected} == {"1", "rad"}
        if stated not in (None, "SI") and expected is not None and not angle:
            same = stated.replace(" ", "") == expected.replace(" ", "")
            require(same, f"{path}: column {column}", f"unit {stated}", f"{expected}")
    return log.select(list(names)).rename(names), lines


def _units(log: Recording) -> list[str]:
    """Entries such as `N m` of a channel: split at the name, not in the unit."""
    words = [w.strip() for w in log.about.get("units", "").split(",") if w.strip()]
    joined = []
    for word in words:
        name = next((n for n in log.names if word.startswith(f"{n} ")), None)
        if name is not None:
            joined.append(f"{name} {word[len(name) + 1 :].replace(' ', '')}")
    return joined
