"""Places of parameters in an experiment, by a dotted path or by a function of the machine."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._base.checks import require, require_shape
from .._base.precision import declared_units
from ..simulation.experiment import Experiment

#: name of an experiment's duration among parameters
DURATION = "duration"


class Place(eqx.Module):
    """Place of a parameter in an experiment, where it is read and written."""

    leaf: Callable[[Experiment], Any] = eqx.field(static=True)
    entry: tuple[int, ...] | None = eqx.field(static=True, default=None)
    tied: tuple["Place", ...] = ()

    @property
    def of_start(self) -> bool:
        return isinstance(self.leaf, Path) and self.leaf.steps[0] == "state0"

    @property
    def of_time(self) -> bool:
        return isinstance(self.leaf, Duration)

    def read(self, experiment: Experiment):
        leaf = self.leaf(experiment)
        return leaf if self.entry is None else leaf[self.entry]

    def write(self, experiment: Experiment, value) -> Experiment:
        for place in self.tied:
            experiment = place.write(experiment, value)
        if self.of_time:  # not an array; set by the code that simulates
            return experiment
        if self.entry is not None:
            value = self.leaf(experiment).at[self.entry].set(value)
        return eqx.tree_at(self.leaf, experiment, value)


def place_of(
    name: str,
    experiment: Experiment,
    where: Callable[[Any], Any] | None = None,
    tied: Sequence[str] = (),
    timed: bool = False,
) -> Place:
    """Find the place of a parameter by its dotted path `name`, or by `where`, a function of the
    machine. `tied`: paths of parameters of the same shape that are written together with it.
    `timed`: "duration" is the experiment's duration [s]."""
    if timed and name == DURATION:
        require(where is None, DURATION, "where", "a Parameter without it")
        place = Place(Duration())
    elif where is None:
        place = _by_path(name, experiment)
    else:
        place = _by_function(name, experiment, where)
    followers = tuple(_by_path(path, experiment) for path in tied)
    for path, follower in zip(tied, followers, strict=True):
        require_shape(path, follower.read(experiment), place.read(experiment).shape)
    return Place(place.leaf, place.entry, followers)


def _by_function(name: str, experiment: Experiment, where) -> Place:
    place = Place(OfMachine(where))
    _require_floats(name, place.read(experiment))
    return place


def _by_path(name: str, experiment: Experiment) -> Place:
    steps = _steps(name)
    # a path on the machine unless its first step is a part of the experiment
    if steps[0] not in ("state0", "control", "sensors"):
        steps = ("system", *steps)
    node, entry = experiment, None
    for i, step in enumerate(steps):
        if isinstance(step, str) and isinstance(node, dict):
            names = ", ".join(node) or "sensors of the experiment, which has none"
            require(step in node, f"parameter {name!r}", repr(step), f"one of {names}")
            node = node[step]
        elif isinstance(step, str):
            if not (isinstance(node, eqx.Module) and hasattr(node, step)):
                require(False, f"parameter {name!r}", repr(step), _choices(node))
            node = getattr(node, step)
        elif isinstance(node, (list, tuple)) and len(step) == 1 and step[0] < len(node):
            node = node[step[0]]
        else:
            shape = getattr(node, "shape", ())
            fits = i == len(steps) - 1 and len(step) == len(shape)
            fits = fits and all(k < n for k, n in zip(step, shape, strict=True))
            require(fits, f"parameter {name!r}", list(step), f"an index into {shape}")
            entry = step
    _require_floats(name, node)
    return Place(Path(steps if entry is None else steps[:-1]), entry)


class Path(eqx.Module):
    """Function that follows attributes and indices in an experiment. Paths with the same steps
    compare equal, so that a second fit is not traced again."""

    steps: tuple = eqx.field(static=True)

    def __call__(self, experiment):
        node = experiment
        for step in self.steps:
            if isinstance(step, str):
                node = node[step] if isinstance(node, dict) else getattr(node, step)
            else:
                node = node[step[0]]
        return node

    def __hash__(self):
        return hash(self.steps)


class Duration(eqx.Module):
    """Function that returns the duration of an experiment [s]."""

    def __call__(self, experiment):
        return jnp.asarray(experiment.duration, float)


class OfMachine(eqx.Module):
    """A function of the experiment's machine. Two of them compare equal if their functions are
    equal, as for `Path`."""

    where: Callable[[Any], Any] = eqx.field(static=True)

    def __call__(self, experiment):
        return self.where(experiment.system)

    def __hash__(self):
        return hash(self.where)


def _steps(path: str) -> tuple[str | tuple[int, ...], ...]:
    """Split a path: `"bodies[1].mass[0,2]"` becomes ("bodies", (1,), "mass", (0, 2))."""
    token = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+(?:,\d+)*)\]")
    steps, used = [], 0
    while used < len(path):
        match = token.match(path, used)
        if match is None:
            break
        name, index = match.groups()
        steps.append(name if name else tuple(int(i) for i in index.split(",")))
        used = match.end()
    require(
        used == len(path) and bool(steps) and isinstance(steps[0], str) and path[0] != ".",
        "parameter",
        repr(path),
        "a dotted path such as 'tendon.stiffness' or 'springs.stiffness[2]'",
    )
    return tuple(steps)


def _choices(node) -> str:
    """List the fields of a module for an error message."""
    if not isinstance(node, eqx.Module):
        return f"a module with parameters; {type(node).__name__} has none"
    names = [
        name
        for name, value in vars(node).items()
        if isinstance(value, eqx.Module) or eqx.is_inexact_array(value)
    ]
    return f"one of {', '.join(names)} of {type(node).__name__}"


def _require_floats(name: str, node) -> None:
    require(
        eqx.is_inexact_array(node),
        f"parameter {name!r}",
        type(node).__name__,
        _choices(node) if isinstance(node, eqx.Module) else "an array of floating-point numbers",
    )


def unit_of_place(place: Place, experiment: Experiment) -> str:
    """Unit of a parameter, declared by the field that holds it; "" if there is none."""
    if place.of_time:
        return "s"
    steps = place.leaf.steps if isinstance(place.leaf, Path) else ()
    if not steps or not isinstance(steps[-1], str) or steps[0] == "state0":
        return ""
    return declared_units(type(Path(steps[:-1])(experiment))).get(steps[-1], "")
