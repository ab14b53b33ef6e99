"""Initial state from the table `[start]` of a machine file."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._base.checks import require
from ..mechanics import State, System
from ..mechanics.consistent_state import consistent
from .builder import Builder
from .table import Table


def read_start(top: Table, machine: System, control: Any) -> Any:
    """Read the initial state: a `State`, or a function that computes it from the machine. None if
    the file has no `start`; the machine then uses its default state. Without a `kind`, keys are
    names of coordinates, or of velocities with the prefix `d_`."""
    if not top.has("start"):
        return None
    choices = _choices(machine, control)
    if top.is_word("start"):
        return choices[top.word("start", choices)]
    table = top.table("start")
    if not table.has("kind"):
        return _named(table, machine)
    word = table.word("kind", choices)
    begin = choices[word]
    if not isinstance(begin, _Method):
        table.finish()
        return begin
    # the arguments are checked with this machine and stored for machines with other parameters
    keep = lambda **values: _Method(begin.name, values)
    keep.__signature__ = begin.signature(machine)  # pyright: ignore[reportFunctionMemberAccess]
    found = Builder().made(table, keep)
    with table.naming():
        found(machine)
    return found


class _Method:
    """Initial state that a method of the machine computes."""

    def __init__(self, name: str, values: dict[str, Any]):
        self.name, self.values = name, values

    def __call__(self, machine: System) -> State:
        return getattr(machine, self.name)(**self.values)

    def signature(self, machine: System) -> inspect.Signature:
        # `eqx.filter_jit` hides the signature; the wrapped function has it
        function = inspect.unwrap(inspect.getattr_static(type(machine), self.name))
        own = inspect.signature(function)
        return own.replace(parameters=list(own.parameters.values())[1:])


def _choices(machine: System, control: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions that compute an initial state, by name: methods of the machine that return a
    `State`, and general functions."""
    found: dict[str, Callable[[Any], Any]] = {
        "equilibrium": _equilibrium,
        "nearest": lambda machine: consistent(machine, machine.default_state()),
    }
    for name in dir(type(machine)):
        method = inspect.unwrap(inspect.getattr_static(type(machine), name))
        if (
            not name.startswith("_")
            and getattr(method, "__annotations__", {}).get("return") is State
        ):
            found["at" if name == "state_at" else name] = _Method(name, {})
    if hasattr(control, "start") and hasattr(control, "machine"):
        found["control"] = partial(_of_control, control)
    return found


def _equilibrium(machine: System) -> Any:
    from ..statics import equilibrium

    return equilibrium(machine)


def _of_control(control: Any, machine: System) -> State:
    """State at the beginning of the desired motion of a controller."""
    return dataclasses.replace(control, machine=machine).start()


def _named(table: Table, machine: System) -> State:
    """Default state of the machine with `q` and `v`, or single coordinates and velocities by name,
    replaced by values of the table."""
    state = machine.default_state()
    q, v = np.array(state.q), np.array(state.v)
    for key, x in (("q", q), ("v", v)):
        if table.has(key):
            x[:] = table.numbers(key, x.shape)
    names = {name: (q, i) for i, name in enumerate(machine.coordinate_names)}
    names |= {f"d_{name}": (v, i) for i, name in enumerate(machine.velocity_names)}
    for name, (x, i) in names.items():
        if table.has(name):
            x[i] = table.numbers(name, ())
    table.finish()
    require(len(q) > 0, table.here, "a machine without coordinates", "one that moves")
    return State(jnp.asarray(q), jnp.asarray(v))
