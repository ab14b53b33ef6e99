"""Named numbers of an experiment, to be fitted or varied, and the coordinates of a search."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._checks import is_number, known_values, require, require_known, require_shape
from ._precision import as_float_array
from .experiment import Experiment

Transform = Literal["log", "linear"]


class Parameter(eqx.Module):
    """A number, or an array of numbers, to be fitted.

    **Arguments:**

    - `name`: a dotted path on the machine such as `"tendon.stiffness"`, with an index for one entry
      of an array, `"springs.stiffness[2]"`. Paths that begin with `state0.` or `control.` lead to
      the start and the controller, `"state0.q[0]"`. Any text if `where` is given.
    - `where`: a function from the machine to the array, instead of a path.
    - `transform`: "log" searches the logarithm, so that the value stays positive and steps are
      relative; "linear" the number itself. Default: "log" for positive start values of the machine
      and its controller.
    - `bounds`: (low, high); the search then stays between them, in logit coordinates.
    - `each`: with several recordings, one value for each of them, named `name@0`, `name@1`...,
      instead of one for all. Default: each for the start (`state0.`), one for all else.
    - `prior`: (mean, standard deviation), what is known of the value before the fit.
    - `unit`: for tables; found in the docstring of the machine's part if not given.
    - `also`: other numbers, by name and of the same shape, that are always given the same value:
      both springs of a pair, a path that ends when the run does.

    **Example:**

    ```python
    import cordax

    stiffness = cordax.Parameter("tendon.stiffness", bounds=(1e4, 1e6), unit="N/m")
    ```
    """

    name: str = eqx.field(static=True)
    where: Callable[[Any], Any] | None = eqx.field(static=True, default=None)
    transform: Transform | None = eqx.field(static=True, default=None)
    bounds: tuple[float, float] | None = eqx.field(static=True, default=None)
    each: bool | None = eqx.field(static=True, default=None)
    prior: tuple[float, float] | None = eqx.field(static=True, default=None)
    unit: str | None = eqx.field(static=True, default=None)
    also: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        require(isinstance(self.name, str) and self.name != "", "name", self.name, "a name or path")
        where = self.where is None or callable(self.where)
        require(where, f"{self.name}: where", self.where, "a function from the machine to an array")
        names = isinstance(self.also, tuple) and all(isinstance(x, str) for x in self.also)
        require(names, f"{self.name}: also", self.also, "a tuple of names")
        if self.transform is not None:
            require_known(f"{self.name}: transform", self.transform, ("log", "linear"))
        require(self.each in (None, True, False), f"{self.name}: each", self.each, "True or False")
        if self.prior is not None:
            pair = _pair(self.prior)
            require(
                pair is not None and pair[1] > 0,
                f"{self.name}: prior",
                self.prior,
                "(mean, standard deviation), finite, with a deviation > 0",
            )
        if self.bounds is not None:
            pair = _pair(self.bounds)
            require(
                pair is not None and pair[0] < pair[1],
                f"{self.name}: bounds",
                self.bounds,
                "(low, high), finite, with low < high",
            )
            require(
                self.transform is None,
                f"{self.name}: transform",
                self.transform,
                "none with bounds",
            )


def _pair(given: Any) -> tuple[float, float] | None:
    """Two finite numbers, or None."""
    pair = given if isinstance(given, tuple) else ()
    return pair if len(pair) == 2 and all(is_number(x) and np.isfinite(x) for x in pair) else None


class _Place(eqx.Module):
    """How to read one parameter from an experiment and write it back."""

    leaf: Callable[[Experiment], Any] = eqx.field(static=True)
    entry: tuple[int, ...] | None = eqx.field(static=True, default=None)
    also: tuple["_Place", ...] = ()

    @property
    def of_start(self) -> bool:
        return isinstance(self.leaf, _Path) and self.leaf.steps[0] == "state0"

    def read(self, experiment: Experiment):
        leaf = self.leaf(experiment)
        return leaf if self.entry is None else leaf[self.entry]

    def write(self, experiment: Experiment, value) -> Experiment:
        for place in self.also:
            experiment = place.write(experiment, value)
        if self.entry is not None:
            value = self.leaf(experiment).at[self.entry].set(value)
        return eqx.tree_at(self.leaf, experiment, value)


class ParameterSet(eqx.Module):
    """All parameters of a fit as one vector y of search coordinates, zero at the start.

    value = start exp(y) ("log"), start + |start| y ("linear"; start + y if it is zero),
    or low + (high - low) sigmoid(y + y_0) within bounds.
    """

    names: tuple[str, ...] = eqx.field(static=True)  # one per number
    places: tuple[_Place, ...]
    kinds: tuple[str, ...] = eqx.field(static=True)  # one per place
    bounds: tuple[tuple[float, float] | None, ...] = eqx.field(static=True)
    starts: tuple[jax.Array, ...]
    #: the recording whose experiment a place belongs to; None: all
    only: tuple[int | None, ...] = eqx.field(static=True)
    #: (mean, standard deviation) of each place, or None
    priors: tuple[tuple[float, float] | None, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)  # one per number; "" if nobody knows

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def origin(self) -> jax.Array:
        """The start in search coordinates: zeros, shape (p,)."""
        return jnp.zeros(self.size, jnp.result_type(*self.starts))

    @property
    def number_kinds(self) -> tuple[str, ...]:
        """The kind of each number."""
        return self._spread(self.kinds)

    @property
    def number_bounds(self) -> tuple[tuple[float, float] | None, ...]:
        """The bounds of each number, or None."""
        return self._spread(self.bounds)

    def _spread(self, things) -> tuple:
        pairs = zip(things, self.starts, strict=True)
        return tuple(thing for thing, start in pairs for _ in range(start.size))

    def values(self, y) -> jax.Array:
        """The numbers at search coordinates `y`, shape (p,) each."""
        return jnp.concatenate([x.ravel() for x in self._arrays(y)])

    def insert(
        self, experiment: Experiment, y, recording: int = 0, *, start: bool = True
    ) -> Experiment:
        """The experiment of a recording with the numbers at `y`, those of the start only if it is
        to be that of the recording."""
        for place, value, only in zip(self.places, self._arrays(y), self.only, strict=True):
            if only in (None, recording) and (start or not place.of_start):
                experiment = place.write(experiment, value)
        return experiment

    def surprise(self, y) -> jax.Array:
        """How many standard deviations the numbers that have priors are off their means, shape
        (n_priors,)."""
        rows = [
            ((x - prior[0]) / prior[1]).ravel()
            for x, prior in zip(self._arrays(y), self.priors, strict=True)
            if prior is not None
        ]
        return jnp.concatenate(rows) if rows else jnp.zeros(0, y.dtype)

    def _arrays(self, y) -> list[jax.Array]:
        arrays, used = [], 0
        for start, kind, bounds in zip(self.starts, self.kinds, self.bounds, strict=True):
            part = y[used : used + start.size].reshape(start.shape)
            used += start.size
            if kind == "log":
                arrays.append(start * jnp.exp(part))
            elif kind == "linear":
                arrays.append(start + jnp.where(start == 0, 1.0, jnp.abs(start)) * part)
            else:
                low, high = bounds  # pyright: ignore
                share = (start - low) / (high - low)
                arrays.append(
                    low + (high - low) * jax.nn.sigmoid(part + jnp.log(share / (1.0 - share)))
                )
        return arrays


def collect(
    parameters: Sequence[str | Parameter], experiment: Experiment | Sequence[Experiment]
) -> ParameterSet:
    """Find the parameters in the experiment, or in those of several recordings; their values there,
    for what is shared those in the first, are the start of the search."""
    require(
        isinstance(parameters, (list, tuple))
        and len(parameters) > 0
        and all(isinstance(p, (str, Parameter)) for p in parameters),
        "parameters",
        parameters,
        'a list of names or Parameters, such as ["tendon.stiffness"]',
    )
    experiments = [experiment] if isinstance(experiment, Experiment) else list(experiment)
    several = len(experiments) > 1
    names, places, kinds, bounds, starts, only, priors, units = ([] for _ in range(8))
    for parameter in (p if isinstance(p, Parameter) else Parameter(p) for p in parameters):
        each = parameter.name.startswith("state0") if parameter.each is None else parameter.each
        for i in range(len(experiments)) if several and each else (None,):
            place = _find(parameter, experiments[i or 0])
            start = as_float_array(place.read(experiments[i or 0]))
            if several and i is None:
                _require_alike(parameter, start, experiments)
            kind = _kind(parameter, start)
            name, end = parameter.name, "" if i is None else f"@{i}"
            numbers = [name] if start.ndim == 0 else _numbered(name, start.shape)
            names += [number + end for number in numbers]
            places.append(place)
            kinds.append(kind)
            bounds.append(parameter.bounds)
            starts.append(start)
            only.append(i)
            priors.append(parameter.prior)
            unit = parameter.unit if parameter.unit is not None else _unit(place, experiments[0])
            units += [unit] * start.size
    repeated = sorted({n for n in names if names.count(n) > 1})
    require(not repeated, "parameters", ", ".join(repeated), "each name once")
    listed = names, places, kinds, bounds, starts, only, priors, units
    return ParameterSet(*map(tuple, listed))


def _require_alike(parameter: Parameter, start, experiments: list[Experiment]) -> None:
    """What is shared has one shape."""
    for i, other in enumerate(experiments[1:], 1):
        shape = jnp.shape(_find(parameter, other).read(other))
        given = f"shape {shape} in the experiment of recording {i}"
        require(shape == start.shape, f"parameter {parameter.name!r}", given, f"{start.shape}")


def _unit(place: _Place, experiment: Experiment) -> str:
    """The unit that the docstring of the part which holds a number gives it: `` `name` [N] ``."""
    steps = place.leaf.steps if isinstance(place.leaf, _Path) else ()
    if not steps or not isinstance(steps[-1], str):
        return ""
    if steps[0] == "state0":
        return ""
    owner = _Path(steps[:-1])(experiment)
    for kind in type(owner).__mro__:
        if kind.__module__.split(".")[0] in ("equinox", "builtins"):
            continue
        found = re.search(rf"`{steps[-1]}`[^`\[]*\[([^\]\n]+)\]", kind.__doc__ or "")
        if found:
            return found[1]
    return ""


def _numbered(name: str, shape) -> list[str]:
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]


def _kind(parameter: Parameter, start) -> str:
    values = known_values(start)
    if parameter.bounds is not None:
        low, high = parameter.bounds
        inside = values is None or bool(np.all((low < values) & (values < high)))
        require(inside, parameter.name, start, f"a start between its bounds {low:g} and {high:g}")
        return "bounded"
    positive = values is None or bool(np.all(values > 0))
    if parameter.transform == "log":
        require(positive, parameter.name, start, "a positive start for the log transform")
    # coordinates may change their sign on the way
    start_number = parameter.name.startswith("state0")
    return parameter.transform or ("log" if positive and not start_number else "linear")


def _find(parameter: Parameter, experiment: Experiment) -> _Place:
    place = _find_one(parameter, experiment)
    others = tuple(_find_one(Parameter(name), experiment) for name in parameter.also)
    for name, other in zip(parameter.also, others, strict=True):
        require_shape(name, other.read(experiment), place.read(experiment).shape)
    return _Place(place.leaf, place.entry, others)


def _find_one(parameter: Parameter, experiment: Experiment) -> _Place:
    where = parameter.where
    if where is not None:
        place = _Place(_OfMachine(where))
        _require_floats(parameter.name, place.read(experiment))
        return place
    steps = _steps(parameter.name)
    # a path on the machine unless its first step is a part of the experiment
    if steps[0] not in ("state0", "control"):
        steps = ("system", *steps)
    node, entry = experiment, None
    for i, step in enumerate(steps):
        if isinstance(step, str):
            if not (isinstance(node, eqx.Module) and hasattr(node, step)):
                require(False, f"parameter {parameter.name!r}", repr(step), _choices(node))
            node = getattr(node, step)
        elif isinstance(node, (list, tuple)) and len(step) == 1 and step[0] < len(node):
            node = node[step[0]]
        else:
            shape = getattr(node, "shape", ())
            fits = i == len(steps) - 1 and len(step) == len(shape)
            fits = fits and all(k < n for k, n in zip(step, shape, strict=True))
            require(fits, f"parameter {parameter.name!r}", list(step), f"an index into {shape}")
            entry = step
    _require_floats(parameter.name, node)
    return _Place(_Path(steps if entry is None else steps[:-1]), entry)


class _Path(eqx.Module):
    """Follow attributes and indices. Equal paths are equal, so that a second fit is not
    retraced."""

    steps: tuple = eqx.field(static=True)

    def __call__(self, experiment):
        node = experiment
        for step in self.steps:
            node = getattr(node, step) if isinstance(step, str) else node[step[0]]
        return node

    def __hash__(self):
        return hash(self.steps)


class _OfMachine(eqx.Module):
    """A function from the machine, asked of an experiment. Equal for equal functions, likewise."""

    where: Callable[[Any], Any] = eqx.field(static=True)

    def __call__(self, experiment):
        return self.where(experiment.system)

    def __hash__(self):
        return hash(self.where)


def _steps(path: str) -> tuple[str | tuple[int, ...], ...]:
    """`"bodies[1].mass[0,2]"` as ("bodies", (1,), "mass", (0, 2))."""
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
    """The fields of a module, for an error message."""
    if node is None or not isinstance(node, eqx.Module):
        return f"nothing: {type(node).__name__} has no named numbers"
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


def varied(base: Experiment, row: Mapping[str, Any]) -> Experiment:
    """`base` with the numbers of `row`, by the names of `Parameter`; a single number fills an
    array."""
    for name, value in row.items():
        place = collect([name], base).places[0]
        old = place.read(base)
        new = jnp.asarray(value, old.dtype)
        if new.ndim:
            require_shape(name, new, old.shape)
        base = place.write(base, jnp.broadcast_to(new, old.shape))
    return base


def unit_of_parameter(base: Experiment, name: str) -> str:
    """The unit of a number by its name, "" if nobody knows it."""
    return (*collect([name], base).units, "")[0]


class Vary(eqx.Module):
    """From a row of numbers, by name, to the experiment that has them."""

    base: Experiment

    def __call__(self, row: Mapping[str, Any]) -> Experiment:
        return varied(self.base, row)
