"""The numbers of an experiment that a search changes, its duration among them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_known
from ..parameters.parameter import Parameter, collect
from ..simulation.experiment import Experiment

#: how an experiment's duration is called among parameters
DURATION = "duration"


class Unknowns(eqx.Module):
    """Numbers `x` (p,) by name, where they are in an experiment, their `bounds` and the `units`
    that a search measures them by, with `symbols` for people ("N/m", "" if nobody knows). The last
    one is the duration [s] if it is `timed`, which `followers` take too."""

    names: tuple[str, ...] = eqx.field(static=True)
    places: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    start: jax.Array
    units: jax.Array
    bounds: tuple[tuple[float, float], ...] = eqx.field(static=True)
    timed: bool = eqx.field(static=True)
    followers: tuple[Any, ...] = ()
    symbols: tuple[str, ...] = eqx.field(static=True, default=())

    @staticmethod
    def of(parameters: Sequence[str | Parameter], experiment: Experiment) -> "Unknowns":
        listed = isinstance(parameters, (list, tuple))
        name_of = lambda p: p.name if isinstance(p, Parameter) else p
        clocks = [p for p in parameters if name_of(p) == DURATION] if listed else []
        rest = [p for p in parameters if name_of(p) != DURATION] if listed else parameters
        require(len(clocks) < 2, "parameters", DURATION, "each name once")
        for p in (p for p in parameters if isinstance(p, Parameter)) if listed else ():
            require(p.prior is None, f"{p.name}: prior", p.prior, "none: it belongs to `identify`")
            require(not p.each, f"{p.name}: each", p.each, "none: it belongs to `identify`")
        found = collect(rest, experiment) if rest or not clocks else None
        names, places, starts, bounds, symbols = [], (), [], [], ()
        if found is not None:
            symbols = found.units
            names, places, starts = list(found.names), found.places, list(found.starts)
            bounds = [b or (-math.inf, math.inf) for b in found.number_bounds]
        shapes = tuple(x.shape for x in starts)
        followers = ()
        if clocks:
            clock = clocks[0] if isinstance(clocks[0], Parameter) else Parameter(DURATION)
            followers = _followers(clock, experiment)
            names.append(DURATION)
            starts.append(jnp.asarray(experiment.duration, float))
            low, high = clock.bounds or (0.0, math.inf)
            inside = max(low, 0.0) < float(starts[-1]) < high
            require(inside, DURATION, experiment.duration, f"a start between {low:g} and {high:g}")
            bounds.append((max(low, 1e-3 * float(starts[-1])), high))
        start = jnp.concatenate([jnp.ravel(x) for x in starts])
        units = jnp.asarray(_units(np.asarray(start), bounds), start.dtype)
        numbers = start, units, tuple(bounds)
        symbols = (*symbols, *("s" for _ in clocks))
        return Unknowns(tuple(names), places, shapes, *numbers, bool(clocks), followers, symbols)

    @property
    def size(self) -> int:
        return len(self.names)

    def apply(self, experiment: Experiment, x) -> Experiment:
        """The experiment with the numbers `x`; its duration stays what it is."""
        used = 0
        for place, shape in zip(self.places, self.shapes, strict=True):
            size = math.prod(shape)
            experiment = place.write(experiment, x[used : used + size].reshape(shape))
            used += size
        for place in self.followers:
            experiment = place.write(experiment, x[-1])
        return experiment

    def known(self, experiment: Experiment, x) -> Experiment:
        """The experiment with the numbers `x`, and its duration, which takes as many steps."""
        found = self.apply(experiment, x)
        if not self.timed:
            return found
        duration = float(x[-1])
        return found.replace(duration=duration, dt=duration / experiment.steps)

    def read(self, values: Mapping[str, float]) -> jax.Array:
        """The start with other `values` by name."""
        x = np.array(self.start)
        for name, value in values.items():
            require_known("start", name, self.names)
            x[self.names.index(name)] = value
        for name, value, (low, high) in zip(self.names, x, self.bounds, strict=True):
            require(low <= value <= high, f"start {name}", value, f"{low:g} to {high:g}")
        return jnp.asarray(x)


def _followers(clock: Parameter, experiment: Experiment) -> tuple[Any, ...]:
    require(clock.where is None, DURATION, "where", "a Parameter without it")
    found = [collect([name], experiment).places[0] for name in clock.tied]
    for name, place in zip(clock.tied, found, strict=True):
        shape = place.read(experiment).shape
        require(shape == (), f"{DURATION}: tied {name}", f"shape {shape}", "one number [s]")
    return tuple(found)


def _units(start: np.ndarray, bounds) -> np.ndarray:
    """The width of the bounds, else the number itself, one where that is zero."""
    width = np.array([high - low for low, high in bounds])
    size = np.abs(start)
    return np.where(np.isfinite(width), width, np.where(size > 0, size, 1.0))
