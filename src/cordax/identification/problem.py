"""Residuals and their Jacobian as functions of the search coordinates."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._base.checks import known_values, require, require_shape
from .._base.precision import as_float_array
from ..parameters.parameter import ParameterSet
from ..recordings.recording import Recording
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .loss import Loss
from .resample import values_at
from .time_grid import Grid

#: residual of a simulation that failed, in units of the recorded values
FAILED = 100.0


class Trial(eqx.Module):
    """A recording, the experiment that predicts it, the positions of recorded instants among its
    steps, the standard deviations of the recorded values by name, and the matrices of filters
    through which the recording went, by name."""

    experiment: Experiment
    recording: Recording
    grid: Grid
    noise: dict[str, Float[Array, "..."]]
    filters: dict[str, Float[Array, "k k"]] = eqx.field(default_factory=dict)

    def run(self, experiment: Experiment, adjoint: str) -> Trajectory:
        """Simulate the recorded time."""
        grid = self.grid
        whole = experiment.replace(
            dt=grid.dt, duration=grid.steps * grid.dt, t0=grid.t0, save_every=grid.save_every
        )
        return simulate(whole, adjoint=adjoint, throw=False)  # pyright: ignore

    def differences(self, experiment: Experiment, trajectory: Trajectory) -> dict[str, Array]:
        """Recorded minus simulated, in the units of each quantity, NaN where nothing was
        recorded."""
        values = self.recording.values
        simulated = values_at(trajectory, experiment, self.grid, values)
        for name, matrix in self.filters.items():
            simulated[name] = jnp.tensordot(matrix, simulated[name], 1)
        for name, recorded in values.items():
            require_shape(f"recording.values[{name!r}]", recorded, simulated[name].shape)
        return {name: recorded - simulated[name] for name, recorded in values.items()}

    def weighed(self, differences: dict[str, Array]) -> Float[Array, " n"]:
        """Differences divided by noise, flat; zero where nothing was recorded."""
        parts = [
            jnp.where(jnp.isnan(x), 0.0, differences[name] / self.noise[name]).ravel()
            for name, x in self.recording.values.items()
        ]
        return jnp.concatenate(parts)

    def by_channel(self, flat: Array) -> Array:
        """Reshape rows in the order of `weighed` to (k, c, ...)."""
        parts, used = [], 0
        for x in self.recording.values.values():
            rows = flat[used : used + x.size]
            parts.append(rows.reshape(x.shape[0], -1, *flat.shape[1:]))
            used += x.size
        return jnp.concatenate(parts, axis=1)

    @property
    def seen(self) -> Array:
        """Whether each value was recorded, shape (k, c)."""
        return self.by_channel(self.seen_rows)

    @property
    def seen_rows(self) -> Bool[Array, " n"]:
        """Whether each row of `weighed` was recorded."""
        return jnp.concatenate([~jnp.isnan(x).ravel() for x in self.recording.values.values()])

    @property
    def size(self) -> int:
        return sum(x.size for x in self.recording.values.values())

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the columns of the residuals."""
        names = []
        for name, x in self.recording.values.items():
            parts = int(np.prod(x.shape[1:]))
            names += [name] if x.ndim == 1 else [f"{name}_{i + 1}" for i in range(parts)]
        return tuple(names)


class Problem(eqx.Module):
    """Least-squares problem: recorded values and simulations with unknown parameters.

    Residuals are (recorded - simulated)/noise, flat, recording after recording, followed by those
    of priors, shape (n,). They are zero where a value is missing, and after the fraction `horizon`
    of the recorded time. A robust `loss` transforms those of the recordings.
    """

    trials: tuple[Trial, ...]
    parameters: ParameterSet
    noise_given: bool = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)
    horizon: Float[Array, ""] | None = None
    loss: Loss | None = None

    def experiments(self, y) -> tuple[Experiment, ...]:
        """Experiments with the parameters at search coordinates `y`, shape (p,)."""
        insert = self.parameters.insert
        return tuple(insert(trial.experiment, y, i) for i, trial in enumerate(self.trials))

    def run(self, y) -> tuple[Trajectory, ...]:
        """The simulations at search coordinates `y`."""
        experiments = self.experiments(y)
        found: list[Any] = [None] * len(experiments)
        for group in _alike(self.trials):
            trial = self.trials[group[0]]
            if len(group) == 1:
                found[group[0]] = trial.run(experiments[group[0]], self.adjoint)
                continue
            arrays, rest = zip(
                *(eqx.partition(experiments[i], eqx.is_array) for i in group), strict=True
            )
            stacked = jax.tree.map(lambda *x: jnp.stack(x), *arrays)
            one = lambda arrays, rest=rest[0], trial=trial: trial.run(
                eqx.combine(arrays, rest), self.adjoint
            )
            runs = jax.vmap(one)(stacked)
            for place, i in enumerate(group):
                found[i] = jax.tree.map(lambda x, place=place: x[place], runs)
        return tuple(found)

    def differences(self, y, trajectories) -> tuple[dict[str, Array], ...]:
        """Recorded minus simulated values of each recording, by name."""
        pairs = zip(self.trials, self.experiments(y), trajectories, strict=True)
        return tuple(trial.differences(e, run) for trial, e, run in pairs)

    def weighed(self, y, differences) -> Float[Array, " n"]:
        """Differences divided by noise and those of priors divided by their deviations, flat."""
        pairs = zip(self.trials, differences, strict=True)
        rows = [self._near(t) * t.weighed(d) for t, d in pairs]
        return jnp.concatenate([*rows, self.parameters.prior_residuals(y)])

    def _near(self, trial: Trial):
        """Whether each row of a recording lies within the horizon."""
        if self.horizon is None:
            return 1.0
        near = jnp.asarray(trial.recording.t) <= self._end(trial)
        values = trial.recording.values.values()
        return jnp.concatenate([jnp.repeat(near, x.size // x.shape[0]) for x in values])

    def _end(self, trial: Trial):
        """The horizon as a time [s]."""
        t0, last = trial.grid.t0, trial.recording.t[-1]
        return t0 + self.horizon * (last - t0) * (1.0 + 1e-9)

    def failed(self, trajectories) -> Bool[Array, " n_recordings"]:
        """Whether the simulation of each recording ended before the horizon, shape (n,)."""
        if self.horizon is None:
            return ~jnp.stack([run.succeeded for run in trajectories])
        pairs = zip(self.trials, trajectories, strict=True)
        late = [run.succeeded | (run.failure_time > self._end(trial)) for trial, run in pairs]
        return ~jnp.stack(late)

    def _rows_failed(self, trajectories) -> Bool[Array, " n"]:
        """Whether each residual belongs to a simulation that failed."""
        sizes = [
            *(trial.size for trial in self.trials),
            len(self.parameters.prior_residuals(self.origin)),
        ]
        failed = jnp.append(self.failed(trajectories), False)
        return failed[np.repeat(np.arange(len(sizes)), sizes)]

    def _when_failed(self) -> Float[Array, " n"]:
        """Residuals of simulations that failed: so large that no method prefers such a point to one
        that can be simulated."""
        rows = []
        for trial in self.trials:
            size = jnp.sqrt(jnp.mean(trial.weighed(trial.recording.values) ** 2))
            rows.append(self._near(trial) * trial.seen_rows * FAILED * (1.0 + size))
        return jnp.concatenate([*rows, self.parameters.prior_residuals(self.origin)])

    @property
    def origin(self) -> Array:
        return self.parameters.origin

    def plain_residuals(self, y) -> tuple[Float[Array, " n"], tuple[Trajectory, ...]]:
        """Residuals without the loss, and the trajectories they come from."""
        trajectories = self.run(y)
        return self.weighed(y, self.differences(y, trajectories)), trajectories

    def residuals(self, y) -> tuple[Float[Array, " n"], tuple[Trajectory, ...]]:
        """Residuals and the trajectories they come from. Those of a simulation that failed are
        large and constant."""
        r, trajectories = self.plain_residuals(y)
        if self.loss is not None:
            priors = len(self.parameters.prior_residuals(self.origin))
            data, prior = r[: len(r) - priors], r[len(r) - priors :]
            r = jnp.concatenate([self.loss.transformed(data), self.loss.gain * prior])
        return jnp.where(self._rows_failed(trajectories), self._when_failed(), r), trajectories

    def jacobian(self, y) -> tuple[Float[Array, "n p"], tuple[Float[Array, " n"], tuple]]:
        """d(residuals)/dy by forward mode: all parameters are differentiated in one run, which is
        not repeated for the residuals."""

        def f(y):
            r, trajectories = self.residuals(y)
            return r, (r, trajectories)

        J, (r, trajectories) = jax.jacfwd(f, has_aux=True)(y)
        return jnp.where(self._rows_failed(trajectories)[:, None], 0.0, J), (r, trajectories)

    def changed(self, how: Callable[[Trial], tuple[Experiment, Grid]]) -> "Problem":
        """Copy of the problem with another experiment and grid for each recording."""
        trials = [
            dataclasses.replace(t, **dict(zip(("experiment", "grid"), how(t), strict=True)))
            for t in self.trials
        ]
        return dataclasses.replace(self, trials=tuple(trials))

    def split(self, flat: Array) -> list[Array]:
        """Split rows of residuals by recording, followed by those of priors."""
        ends = np.cumsum([trial.size for trial in self.trials])
        return jnp.split(flat, ends)

    def check(self) -> None:
        """Raise an error if recordings have fewer values than there are parameters, or bad
        values."""
        known = [
            [known_values(x) for x in trial.recording.values.values()] for trial in self.trials
        ]
        if any(x is None for xs in known for x in xs):
            return
        numbers = sum(int(np.sum(~np.isnan(x))) for xs in known for x in xs)  # pyright: ignore
        for trial, xs in zip(self.trials, known, strict=True):
            for name, x in zip(trial.recording.values, xs, strict=True):
                bad = bool(np.any(np.isinf(x)))  # pyright: ignore
                require(not bad, f"recording.values[{name!r}]", "inf", "finite values")
        said = f"{numbers} numbers that are not NaN"
        size = self.parameters.size
        known_before = self.parameters.prior_residuals(self.parameters.origin).size
        wanted = f"more than the {size} fitted ones"
        require(numbers + known_before > size, "recording", said, wanted)

    def count(self) -> Array:
        """Number of recorded values and priors."""
        known_before = self.parameters.prior_residuals(self.parameters.origin).size
        values = [x for trial in self.trials for x in trial.recording.values.values()]
        return known_before + sum(jnp.sum(~jnp.isnan(x)) for x in values)  # pyright: ignore


def _alike(trials: tuple[Trial, ...]) -> list[list[int]]:
    """Groups of recordings that differ in numerical values only and share one compiled program."""
    groups: list[tuple[Any, list[int]]] = []
    for i, trial in enumerate(trials):
        arrays, rest = eqx.partition(trial.experiment, eqx.is_array)
        shapes = [(x.shape, x.dtype) for x in jax.tree.leaves(arrays)]
        g = trial.grid
        key = jax.tree.structure(arrays), shapes, rest, (g.t0, g.dt, g.steps, g.save_every)
        for other, members in groups:
            if all(_equal(a, b) for a, b in zip(key, other, strict=True)):
                members.append(i)
                break
        else:
            groups.append((key, [i]))
    return [members for _, members in groups]


def _equal(a, b) -> bool:
    same = a == b
    return isinstance(same, bool | np.bool_) and bool(same)


def noise_levels(noise: Any, recording: Recording) -> dict[str, Array]:
    """Standard deviation of each recorded quantity from one number, numbers by name (one, one for
    each component, or one for each sample), or None."""
    if noise is None:
        noise = 1.0
    if not isinstance(noise, dict):
        noise = {name: noise for name in recording.names}
    missing = sorted(set(recording.names) - set(noise))
    require(not missing, "noise", ", ".join(noise), f"numbers for {', '.join(missing)} too")
    levels = {}
    for name in recording.names:
        x = as_float_array(noise[name], f"noise[{name!r}]")
        shape = recording.values[name].shape
        require_shape(f"noise[{name!r}]", x, (), shape[1:], shape)
        if (known := known_values(x)) is not None:
            ok = bool(np.all(np.isfinite(known) & (known > 0)))
            require(ok, f"noise[{name!r}]", x, "a finite standard deviation > 0")
        levels[name] = x
    return levels
