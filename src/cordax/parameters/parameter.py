"""Named parameters of an experiment, to be fitted or varied, and their search coordinates."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import is_number, known_values, require, require_known, require_shape
from .._base.precision import as_float_array
from ..simulation.experiment import Experiment
from .tree_path import DURATION, Place, place_of, unit_of_place

Transform = Literal["log", "linear"]


def _plain(start: Any) -> Any:
    """Convert an array to nested tuples, which can be compared."""
    if start is None or is_number(start):
        return start
    nested = lambda x: tuple(map(nested, x)) if isinstance(x, list) else x
    return nested(np.asarray(start, dtype=float).tolist())


class Parameter(eqx.Module):
    """A parameter to be fitted, varied or optimised: a number or an array.

    **Arguments:**

    - `name`: a dotted path on the machine such as `"tendon.stiffness"`, with an index for one entry
      of an array, `"springs.stiffness[2]"`. Paths that begin with `state0.` or `control.` refer to
      the initial state and the controller, `"state0.q[0]"`. Any text if `where` is given.
    - `where`: a function from the machine to the array, instead of a path.
    - `transform`: "log" searches the logarithm, so that the value stays positive and steps are
      relative; "linear" searches the value itself. Default: "log" for positive initial values of
      the machine and its controller, otherwise "linear".
    - `bounds`: (low, high); the search then stays between them. A fit uses logit coordinates.
    - `each`: with several recordings, use one value for each of them, named `name@0`, `name@1`...,
      instead of a common value. Default: True for the initial state (`state0.`), False otherwise.
    - `prior`: (mean, standard deviation) of the value before the fit.
    - `unit`: unit in tables; by default the one that the field of the machine declares.
    - `start`: initial value of the search, one number or an array; by default the value in the
      experiment. Required if a function builds the experiments.
    - `tied`: names of other parameters of the same shape that always have the same value: the
      second spring of a pair, or the end time of a path that ends with the run.

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
    tied: tuple[str, ...] = eqx.field(static=True, default=())
    start: Any = eqx.field(static=True, default=None, converter=_plain)

    def __check_init__(self):
        require(isinstance(self.name, str) and self.name != "", "name", self.name, "a name or path")
        where = self.where is None or callable(self.where)
        require(where, f"{self.name}: where", self.where, "a function from the machine to an array")
        names = isinstance(self.tied, tuple) and all(isinstance(x, str) for x in self.tied)
        require(names, f"{self.name}: tied", self.tied, "a tuple of names")
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
    """Return `given` if it is a tuple of two finite numbers, otherwise None."""
    pair = given if isinstance(given, tuple) else ()
    return pair if len(pair) == 2 and all(is_number(x) and np.isfinite(x) for x in pair) else None


class ParameterSet(eqx.Module):
    """All parameters of a fit as one vector y of search coordinates, zero at the initial values.

    value = start exp(y) ("log"), start + scale y ("linear"),
    or low + (high - low) sigmoid(y + y_0) ("bounded"). `start` is the initial value. The scale is
    the width of the bounds if there are any, otherwise |start|, or 1 if that is zero.
    """

    names: tuple[str, ...] = eqx.field(static=True)  # one per number
    places: tuple[Place, ...]
    kinds: tuple[str, ...] = eqx.field(static=True)  # one per place
    bounds: tuple[tuple[float, float] | None, ...] = eqx.field(static=True)
    starts: tuple[jax.Array, ...]
    #: the recording whose experiment a place belongs to; None: all
    only: tuple[int | None, ...] = eqx.field(static=True)
    #: (mean, standard deviation) of each place, or None
    priors: tuple[tuple[float, float] | None, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)  # one per number; "" if unknown

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def origin(self) -> jax.Array:
        """Initial values in search coordinates: zeros, shape (p,)."""
        return jnp.zeros(self.size, jnp.result_type(*self.starts))

    @property
    def number_kinds(self) -> tuple[str, ...]:
        """Kind of each number ("log", "linear" or "bounded")."""
        return self._spread(self.kinds)

    @property
    def number_bounds(self) -> tuple[tuple[float, float] | None, ...]:
        """Bounds of each number, or None."""
        return self._spread(self.bounds)

    def _spread(self, things) -> tuple:
        pairs = zip(things, self.starts, strict=True)
        return tuple(thing for thing, start in pairs for _ in range(start.size))

    def rows(self, recordings: Sequence[int]) -> np.ndarray:
        """Whether each number is a parameter of the given recordings, bool, shape (p,)."""
        return np.array(self._spread([only is None or only in recordings for only in self.only]))

    def subset(self, recordings: Sequence[int]) -> "ParameterSet":
        """Parameters of the given recordings, which are numbered from zero in this order."""
        kept = [only is None or only in recordings for only in self.only]
        place = {recording: i for i, recording in enumerate(recordings)}
        rows = self.rows(recordings)
        pick = lambda things, marks: tuple(x for x, m in zip(things, marks, strict=True) if m)
        names = [
            name if only is None else f"{name.rpartition('@')[0]}@{place[only]}"
            for name, only, row in zip(self.names, self._spread(self.only), rows, strict=True)
            if row
        ]
        only = tuple(None if x is None else place[x] for x in pick(self.only, kept))
        arrays = {n: pick(getattr(self, n), kept) for n in ("kinds", "bounds", "starts", "priors")}
        places = pick(self.places, kept) if self.places else ()
        units = pick(self.units, rows)
        return dataclasses.replace(
            self, names=tuple(names), only=only, places=places, units=units, **arrays
        )

    def values(self, y) -> jax.Array:
        """Parameter values at search coordinates `y`, shape (p,) each."""
        return jnp.concatenate([x.ravel() for x in self._arrays(y)])

    def coordinates(self, values) -> np.ndarray:
        """Search coordinates (p,) of values (p,), for parameters that are all "linear"."""
        start = np.concatenate([np.ravel(x) for x in self.starts])
        pairs = zip(self.starts, self.bounds, strict=True)
        scale = np.concatenate([np.ravel(_scale(*pair)) for pair in pairs])
        return (np.asarray(values) - start) / scale

    def duration(self, y) -> Any:
        """Duration [s] at search coordinates `y`; None if it is not a parameter."""
        return self.values(y)[self.names.index(DURATION)] if DURATION in self.names else None

    def insert(
        self, experiment: Experiment, y, recording: int = 0, *, start: bool = True
    ) -> Experiment:
        """Experiment of a recording with the parameters at `y`. `start=False` leaves its initial
        state unchanged."""
        for place, value, only in zip(self.places, self._arrays(y), self.only, strict=True):
            if only in (None, recording) and (start or not place.of_start):
                experiment = place.write(experiment, value)
        return experiment

    def prior_residuals(self, y) -> jax.Array:
        """Differences of the values with priors from their means, in standard deviations, shape
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
                arrays.append(start + _scale(start, bounds) * part)
            else:
                low, high = bounds  # pyright: ignore
                share = (start - low) / (high - low)
                arrays.append(
                    low + (high - low) * jax.nn.sigmoid(part + jnp.log(share / (1.0 - share)))
                )
        return arrays


def _scale(start, bounds: tuple[float, float] | None) -> jax.Array:
    """Change of a value for one unit of a linear search coordinate."""
    if bounds is not None and math.isfinite(bounds[1] - bounds[0]):
        return jnp.full_like(start, bounds[1] - bounds[0])
    return jnp.where(start == 0, 1.0, jnp.abs(start))


def collect(
    parameters: Sequence[str | Parameter],
    experiment: Experiment | Sequence[Experiment],
    *,
    timed: bool = False,
) -> ParameterSet:
    """Collect parameters of an experiment, or of the experiments of several recordings.

    The search starts at their values there. A parameter that all recordings share starts at its
    value in the first experiment. `timed`: the name "duration" is the experiment's duration [s]."""
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
            place = _place(parameter, experiments[i or 0], timed)
            start = as_float_array(place.read(experiments[i or 0]))
            if parameter.start is not None:
                given = as_float_array(parameter.start, f"{parameter.name}: start")
                require_shape(f"{parameter.name}: start", given, (), start.shape)
                start = jnp.broadcast_to(given, start.shape)
            if several and i is None:
                _require_alike(parameter, start, experiments)
            kind = kind_of(parameter, start)
            name, end = parameter.name, "" if i is None else f"@{i}"
            numbers = [name] if start.ndim == 0 else numbered(name, start.shape)
            names += [number + end for number in numbers]
            places.append(place)
            kinds.append(kind)
            bounds.append(parameter.bounds)
            starts.append(start)
            only.append(i)
            priors.append(parameter.prior)
            unit = (
                parameter.unit
                if parameter.unit is not None
                else unit_of_place(place, experiments[0])
            )
            units += [unit] * start.size
    repeated = sorted({n for n in names if names.count(n) > 1})
    require(not repeated, "parameters", ", ".join(repeated), "each name once")
    listed = names, places, kinds, bounds, starts, only, priors, units
    return ParameterSet(*map(tuple, listed))


def collect_box(parameters: Sequence[str | Parameter], experiment: Experiment) -> ParameterSet:
    """Collect the parameters of a search within a box: all are "linear", and `bounds` limit their
    values. The duration of the experiment [s] may be one of them."""
    for p in (p for p in parameters if isinstance(p, Parameter)):
        require(p.prior is None, f"{p.name}: prior", p.prior, "none: it belongs to `identify`")
        require(not p.each, f"{p.name}: each", p.each, "none: it belongs to `identify`")
    collected = collect(parameters, experiment, timed=True)
    bounds = list(collected.bounds)
    if DURATION in collected.names:
        i = [place.of_time for place in collected.places].index(True)
        low, high = bounds[i] or (0.0, math.inf)
        value = float(collected.starts[i])
        inside = max(low, 0.0) < value < high
        require(inside, DURATION, value, f"a start between {low:g} and {high:g}")
        bounds[i] = (max(low, 1e-3 * value), high)
    kinds = ("linear",) * len(bounds)
    return dataclasses.replace(collected, kinds=kinds, bounds=tuple(bounds))


def _place(parameter: Parameter, experiment: Experiment, timed: bool = False) -> Place:
    return place_of(parameter.name, experiment, parameter.where, parameter.tied, timed)


def _require_alike(parameter: Parameter, start, experiments: list[Experiment]) -> None:
    """Check that a shared parameter has the same shape in all experiments."""
    for i, other in enumerate(experiments[1:], 1):
        shape = jnp.shape(_place(parameter, other).read(other))
        given = f"shape {shape} in the experiment of recording {i}"
        require(shape == start.shape, f"parameter {parameter.name!r}", given, f"{start.shape}")


def numbered(name: str, shape) -> list[str]:
    """Names of the entries of an array."""
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]


def kind_of(parameter: Parameter, start) -> str:
    """Kind of search coordinate for this initial value: "log", "linear" or "bounded"."""
    values = known_values(start)
    if parameter.bounds is not None:
        low, high = parameter.bounds
        inside = values is None or bool(np.all((low < values) & (values < high)))
        require(inside, parameter.name, start, f"a start between its bounds {low:g} and {high:g}")
        return "bounded"
    positive = values is None or bool(np.all(values > 0))
    if parameter.transform == "log":
        require(positive, parameter.name, start, "a positive start for the log transform")
    # coordinates may change their sign during the search
    start_number = parameter.name.startswith("state0")
    return parameter.transform or ("log" if positive and not start_number else "linear")


def varied(base: Experiment, row: Mapping[str, Any]) -> Experiment:
    """Copy of `base` with the parameter values of `row`, by name as in `Parameter`. A single number
    sets all entries of an array."""
    for name, value in row.items():
        place = collect([name], base).places[0]
        old = place.read(base)
        new = jnp.asarray(value, old.dtype)
        if new.ndim:
            require_shape(name, new, old.shape)
        base = place.write(base, jnp.broadcast_to(new, old.shape))
    return base


def unit_of_parameter(base: Experiment, name: str) -> str:
    """Unit of a parameter by its name, "" if it is unknown."""
    return (*collect([name], base).units, "")[0]


class Vary(eqx.Module):
    """Function from parameter values by name to the experiment with these values."""

    base: Experiment

    def __call__(self, row: Mapping[str, Any]) -> Experiment:
        return varied(self.base, row)
