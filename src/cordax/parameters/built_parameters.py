"""Parameters of a function that builds experiments."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax

from .._base.checks import require
from .._base.precision import as_float_array
from ..simulation.experiment import Experiment, Recipe
from .parameter import Parameter, ParameterSet, kind_of, numbered


class BuiltParameters(ParameterSet):
    """Parameters of a `function` that builds an experiment from values by name and a recording."""

    labels: tuple[str, ...] = eqx.field(static=True, default=())  # one per array
    function: Callable[[dict[str, Any], Any], Experiment] | None = eqx.field(
        static=True, default=None
    )
    recordings: tuple[Recipe, ...] = eqx.field(
        static=True, default=()
    )  # functions that return the recordings

    def named(self, y, recording: int) -> dict[str, jax.Array]:
        """Arrays by name for a recording, at search coordinates `y`, shape (p,)."""
        rows = zip(self.labels, self._arrays(y), self.only, strict=True)
        return {name: x for name, x, only in rows if only in (None, recording)}

    def build(self, y, recording: int = 0, data=None) -> Experiment:
        """Build the experiment of a recording at search coordinates `y`, shape (p,). If `data` is
        given, it replaces the recording, whose parameters are used."""
        assert self.function is not None
        data = self.recordings[recording]() if data is None else data
        built = self.function(self.named(y, recording), data)
        is_experiment = isinstance(built, Experiment)
        require(is_experiment, "build", type(built).__name__, "a function that returns Experiment")
        return built if built.integrator else built.replace(integrator="rosenbrock_2")

    def subset(self, recordings: Sequence[int]) -> "BuiltParameters":
        """Parameters of selected recordings, which are numbered from zero."""
        smaller = super().subset(recordings)
        kept = [only is None or only in recordings for only in self.only]
        labels = tuple(x for x, keep in zip(self.labels, kept, strict=True) if keep)
        held = tuple(self.recordings[i] for i in recordings)
        return dataclasses.replace(smaller, labels=labels, recordings=held)  # pyright: ignore

    def insert(
        self, experiment: Experiment, y, recording: int = 0, *, start: bool = True
    ) -> Experiment:
        """Build the experiment of a recording at `y`, with the time settings of `experiment`."""
        if not start:
            raise ValueError(
                "predict(experiment) is not supported for a fit with a build function; build the "
                "experiment from fit.estimates"
            )
        settings = {name: getattr(experiment, name) for name in ("dt", "duration", "save_every")}
        return self.build(y, recording).replace(t0=experiment.t0, **settings)


def built_parameters(
    build: Callable[[dict[str, Any], Any], Experiment],
    recordings: Sequence[Any],
    parameters: Mapping[str, Any] | Sequence[Parameter],
) -> BuiltParameters:
    """Collect the parameters of a `build` function, given as initial values by name or as
    `Parameter`s with `start=`."""
    if isinstance(parameters, Mapping):
        parameters = [Parameter(name, start=value) for name, value in parameters.items()]
    listed = isinstance(parameters, Sequence) and len(parameters) > 0
    listed = listed and all(isinstance(p, Parameter) and p.start is not None for p in parameters)
    expected = "start values by name, or Parameters with start="
    require(listed, "parameters", parameters, expected)
    names, labels, kinds, bounds, starts, only, priors, units = ([] for _ in range(8))
    for p in parameters:
        start = as_float_array(p.start, f"{p.name}: start")
        for i in range(len(recordings)) if len(recordings) > 1 and p.each else (None,):
            end = "" if i is None else f"@{i}"
            plain = [p.name] if start.ndim == 0 else numbered(p.name, start.shape)
            names += [name + end for name in plain]
            labels.append(p.name)
            kinds.append(kind_of(p, start))
            bounds.append(p.bounds)
            starts.append(start)
            only.append(i)
            priors.append(p.prior)
            units += [p.unit or ""] * start.size
    repeated = sorted({n for n in names if names.count(n) > 1})
    require(not repeated, "parameters", ", ".join(repeated), "each name once")
    held = tuple(Recipe(lambda r=r: r) for r in recordings)
    fields = map(tuple, (names, [], kinds, bounds, starts, only, priors, units, labels))
    return BuiltParameters(*fields, build, held)  # pyright: ignore[reportCallIssue]
