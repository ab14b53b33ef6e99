"""Controllers and inputs from the table `[control]` of a machine file."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .._base.checks import require
from ..control import PID, Programme, RecordedInput
from ..mechanics import Controller, System
from ..mechanics.reference_motion import Reference, as_reference
from .builder import Builder
from .csv import read_csv
from .registry import Argument
from .table import Table


def read_control(
    top: Table, machine: System, dt: float, code: bool = False, seen: list | None = None
) -> Any:
    """Read a controller, or constant inputs (n_u,). Without a `kind`, keys are names of inputs, and
    their values are numbers or motions."""
    if isinstance(top.raw("control"), list):
        return top.numbers("control", (machine.n_u,))
    table = top.table("control")
    build = Builder({"machine": machine, "rod": machine, "period": dt}, code, seen)
    if not table.has("kind"):
        return _inputs(table, machine, build)
    make = build.maker(table, (Controller,))
    if make is RecordedInput and table.has("file"):
        return _recorded(table, machine)
    more = {}
    if make is PID:
        more = {
            key: _indices(table, key, names)
            for key, names in (
                ("coordinates", machine.coordinate_names),
                ("velocities", machine.velocity_names),
            )
            if table.has(key)
        }
    return build.made(table, make, **more)


def _inputs(table: Table, machine: System, build: Builder) -> Any:
    """Read inputs by name; inputs that the table omits are zero."""
    motion = Argument("", (Reference,), 0, True, False, 0.0)
    values = []
    for name in machine.input_names:
        value = build.value(table, name, motion) if table.has(name) else 0.0
        with table.naming(name):
            values.append(as_reference(value, name))
    table.finish()
    require(bool(values), table.where("control"), "inputs", "none: this machine has no inputs")
    with table.naming():
        programme = Programme(values)
    rests = [getattr(x, "value", None) for x in values]
    return programme if any(x is None for x in rests) else jnp.stack(rests)  # pyright: ignore


def _recorded(table: Table, machine: System) -> RecordedInput:
    """Read recorded inputs from a text table whose columns have the names of the inputs."""
    path = table.path.parent / table.text("file")
    how = table.word("interpolation", ("cubic", "linear", "hold"), "cubic")
    table.finish()
    data = read_csv(path)
    missing = [name for name in machine.input_names if name not in data.values]
    require(not missing, table.where("file"), path, f"columns {', '.join(missing)}")
    values = np.stack([np.asarray(data.values[n]) for n in machine.input_names], axis=1)
    with table.naming("file"):
        return RecordedInput(data.t, values, how)


def _indices(table: Table, key: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """Indices of coordinates or velocities, which the file gives by name or index."""
    given = table.raw(key)
    given = given if isinstance(given, list) else [given]
    known = "names among " + ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")
    for x in given:
        ok = x in names if isinstance(x, str) else isinstance(x, int) and 0 <= x < len(names)
        require(ok, table.where(key), repr(x), known)
    return tuple(names.index(x) if isinstance(x, str) else x for x in given)
