"""Result of a fit: estimates, their uncertainty and diagnostics."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._base.checks import require, require_known, require_whole
from .._jax.identity import filter_jit
from ..mechanics import System
from ..parameters.parameter import ParameterSet
from ..recordings.recording import Recording, observe
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from . import fit_file
from .intervals import bootstrap, profile_ends, student_quantile
from .measurement_advice import what_would_tell
from .messages import outliers, sentences, step_matters, towards_zero
from .problem import Problem, Trial
from .termination import CONVERGED, SENTENCES, START_FAILED
from .uncertainty import Uncertainty
from .validation import CrossValidation, Validation, cross_validate, validate


class Fit(eqx.Module):
    """Result of `identify`. In a batch, every array has a leading axis.

    `values` and `start`, shape (p,), in the order of `names`; `covariance` (p, p) in natural units;
    `differences` recorded minus simulated by name, NaN in gaps, `trajectories` and `experiments` at
    the optimum, one for each recording (of a single one: `residuals`, `trajectory`, `experiment`);
    `trials` recordings, noise and instants as given; `cost` the sum of squared residuals over
    noise; `noise_scale` the estimated standard deviation of the residuals in units of the given
    noise (about 1 if that was right; the noise itself if none was given); `freedom` number of
    recorded values less number of parameters; `iterations`, `code` (see `reason`). `step_shift`,
    shape (p,): shift of the estimates, to first order, with half the time step; NaN if not
    computed. `numerics`: change of the simulation with other numerical settings, by their
    description, as a fraction of the residuals; only if these are not noise. `y`, `problem` and
    `about`: the search coordinates, the least-squares problem and the `Uncertainty`.

    Covariance and intervals are those of the model linearised about the optimum, (J^T J)^-1 times
    the residual variance. If residuals of neighbouring samples are correlated, they are those of
    autoregressive errors (`about.errors`). They do not include model errors that look like a change
    of the parameters: see `reach_of_errors`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    values: Float[Array, " p"]
    start: Float[Array, " p"]
    covariance: Float[Array, "p p"]
    differences: tuple[dict[str, Float[Array, "k ..."]], ...]
    trajectories: tuple[Trajectory, ...]
    experiments: tuple[Experiment, ...]
    cost: Float[Array, ""]
    noise_scale: Float[Array, ""]
    freedom: Int[Array, ""]
    iterations: Int[Array, ""]
    code: Int[Array, ""]
    step_shift: Float[Array, " p"]
    numerics: dict[str, Float[Array, ""]]
    y: Float[Array, " p"]
    problem: Problem
    about: Uncertainty

    @property
    def parameters(self) -> ParameterSet:
        return self.problem.parameters

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self.problem.trials

    @property
    def system(self) -> System:
        """The machine with the fitted parameters (that of the first recording)."""
        return self.experiments[0].system

    @property
    def experiment(self) -> Experiment:
        """The experiment with the fitted parameters."""
        return self._only("experiment", "experiments", self.experiments)

    @property
    def recording(self) -> Recording:
        """The recording as given to `identify`."""
        return self._only("recording", "trials", self.trials).recording

    @property
    def noise(self) -> dict[str, Float[Array, "..."]]:
        """Standard deviations of the noise as given, by name."""
        return self._only("noise", "trials", self.trials).noise

    @property
    def trajectory(self) -> Trajectory:
        """The simulation with the fitted parameters."""
        return self._only("trajectory", "trajectories", self.trajectories)

    @property
    def residuals(self) -> dict[str, Float[Array, "k ..."]]:
        """Recorded minus simulated, by name, NaN in gaps."""
        return self._only("residuals", "differences", self.differences)

    def _only(self, name: str, plural: str, things: tuple):
        given = f"a fit of {len(things)} recordings"
        require(len(things) == 1, name, given, f"one recording; see `{plural}`")
        return things[0]

    @property
    def estimates(self) -> dict[str, Array]:
        """Fitted values by name."""
        return {name: self.values[..., i] for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Array:
        require_known("parameter", name, self.names)
        return self.values[..., self.names.index(name)]

    @property
    def standard_errors(self) -> Float[Array, " p"]:
        """Standard deviations of the estimates, in natural units, shape (p,)."""
        return jnp.sqrt(jnp.diagonal(self.covariance, axis1=-2, axis2=-1))

    @property
    def independent_errors(self) -> Float[Array, " p"]:
        """Standard deviations the estimates would have if errors of neighbouring samples were
        independent, in natural units, shape (p,)."""
        slope = jnp.sqrt(
            jnp.diagonal(self.about.independent, axis1=-2, axis2=-1)
            / jnp.diagonal(self.about.covariance, axis1=-2, axis2=-1)
        )
        return slope * self.standard_errors

    @property
    def reach_of_errors(self) -> Float[Array, " p"]:
        """Largest change of each estimate that a model error as large as the residuals could cause,
        in search coordinates (1: by a factor e, or by 100 %), shape (p,). Small if the motion
        depends strongly on the parameter."""
        inverse = jnp.diagonal(self.about.inverse, axis1=-2, axis2=-1)
        return jnp.sqrt(self.cost[..., None] * inverse)

    def exact(self) -> bool:
        """Whether the simulation matches the recording to rounding errors."""
        sizes = [
            np.nansum((np.asarray(x) / np.asarray(trial.noise[name])) ** 2)
            for trial in self.trials
            for name, x in trial.recording.values.items()
        ]
        return float(jnp.sqrt(self.cost)) <= 1e-9 * np.sqrt(float(np.sum(sizes)))

    def coloured(self) -> bool:
        """Whether the residuals are not noise: correlated, and larger than rounding errors."""
        return not bool(self.about.errors.white) and not self.exact()

    @property
    def correlation(self) -> Float[Array, "p p"]:
        """Correlation matrix of the estimates."""
        e = self.standard_errors
        return self.covariance / (e[..., :, None] * e[..., None, :])

    def interval(
        self,
        level: float = 0.95,
        method: Literal["linear", "profile", "bootstrap"] = "linear",
        *,
        draws: int = 200,
        seed: int = 0,
    ) -> Float[Array, "p 2"]:
        """Confidence intervals in natural units, shape (p, 2).

        "linear": by Student's distribution in the search coordinates: positive parameters, searched
        as logarithms, have positive intervals. "profile": profile likelihood, the values of a
        parameter for which the others can be refitted well enough (infinite where no end lies
        within four times the linear interval). "bootstrap": quantiles of `draws` fits with random
        errors by `seed`. The last two repeat fits, in batches. All are widened on one side by the
        bias of the time step, if computed (`step_shift`)."""
        require(0.0 < level < 1.0, "level", level, "a probability between 0 and 1")
        require_known("method", method, ("linear", "profile", "bootstrap"))
        values = lambda parameters, y: parameters.values(y)
        for _ in range(self.y.ndim - 1):
            values = jax.vmap(values)
        quantile = self._quantile(level)
        if method == "linear":
            error = jnp.sqrt(jnp.diagonal(self.about.covariance, axis1=-2, axis2=-1))
            reach = jnp.stack([-quantile * error, quantile * error], axis=-1)
        else:
            require(self.y.ndim == 1, "interval", "a batch of fits", "one fit for this method")
        if method == "profile":
            reach = profile_ends(self, quantile)
        elif method == "bootstrap":
            require_whole("draws", draws, 2)
            tails = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
            scatter = np.quantile(bootstrap(self, draws, seed), tails, axis=0).T
            heavier = quantile / student_quantile(level, np.inf)
            reach = (scatter - np.asarray(self.y)[:, None]) * heavier[:, None]
        bias = self._step_bias()
        low = self.y + reach[..., 0] + jnp.minimum(bias, 0.0)
        high = self.y + reach[..., 1] + jnp.maximum(bias, 0.0)
        return jnp.stack([values(self.parameters, y) for y in (low, high)], axis=-1)

    def _quantile(self, level: float) -> Float[np.ndarray, " p"]:
        """Quantile of Student's distribution for each parameter."""
        return student_quantile(level, np.asarray(self.about.freedom))

    def _step_bias(self) -> Float[Array, " p"]:
        """Shift of the estimates for a time step that goes to zero, in search coordinates. Half the
        time step moves them by all but a fraction 2^-order of it. Zero if not computed."""
        slope = lambda parameters, y: jax.jvp(parameters.values, (y,), (jnp.ones_like(y),))[1]
        for _ in range(self.y.ndim - 1):
            slope = jax.vmap(slope)
        methods = [trial.experiment.integrator for trial in self.trials]
        # order 1, the most cautious value, if the order is not known
        orders = [1 if method is None else method.traits.order or 1 for method in methods]
        moved = self.step_shift / slope(self.parameters, self.y) / (1.0 - 0.5 ** min(orders))
        return jnp.where(jnp.isfinite(moved), moved, 0.0)

    def predict(
        self,
        experiment: Experiment | None = None,
        names: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        recording: int = 0,
    ) -> tuple[Trajectory, dict[str, Float[Array, "2 k ..."]]]:
        """Simulate with the fitted parameters, with bands for their uncertainty: a trajectory, and
        by name the lower and upper ends of bands, shape (2, k, ...), linearised.

        - `experiment`: experiment to simulate, such as the same machine with other inputs; that of
          the recording by default. The fitted parameters are inserted; its initial state is kept.
        - `names`: quantities with bands; those that were recorded by default.
        - `recording`: index of the recording whose separate parameter values are used, if there are
          several."""
        require(self.y.ndim == 1, "predict", "a batch of fits", "one fit")
        trial, own = self.trials[recording], experiment is None
        if experiment is None:
            grid = trial.grid
            experiment = trial.experiment.replace(
                dt=grid.dt, duration=grid.steps * grid.dt, t0=grid.t0, save_every=grid.save_every
            )
        names = trial.recording.names if names is None else tuple(names)
        run, slopes = _predicted(self.parameters, experiment, self.y, names, recording, own)
        quantile, bands = float(np.max(self._quantile(level))), {}
        for name in names:
            middle, J = observe(run, name), slopes[name]
            spread = jnp.sqrt(jnp.einsum("...i,ij,...j->...", J, self.about.covariance, J))
            bands[name] = jnp.stack([middle - quantile * spread, middle + quantile * spread])
        return run, bands

    def validate(
        self, recording: Recording, experiment: Experiment | None = None, *, settle: float = 0.5
    ) -> Validation:
        """Predict a recording that was not fitted, and compare with it.

        - `experiment`: the recorded experiment, with its inputs and initial state; the fitted
          parameters are inserted, those of the initial state are not. By default that of the first
          fitted recording, with an initial state from the first samples (`measured_state`).
        - `settle` [s]: if the initial state is a `MeasuredState` it is fitted to the samples of
          this first part, with all other parameters fixed. Later samples are compared.

        Returns RMS errors per second and as a fraction of the motion, phase lags and the fraction
        of samples within 95 % bands, compared with trivial predictors. The bands include the
        uncertainty of parameters and initial state, and the standard deviation of the residuals of
        the fit."""
        require(self.y.ndim == 1, "validate", "a batch of fits", "one fit")
        return validate(self, recording, experiment, settle)

    def cross_validate(self, folds: int, *, settle: float = 0.5) -> CrossValidation:
        """Cross-validation: fit all recordings but every `folds`-th, predict those, and repeat
        until each one has been predicted; `settle` [s] as in `validate`. Needs at least two
        recordings: split a long one with `Recording.windows`."""
        require(self.y.ndim == 1, "cross_validate", "a batch of fits", "one fit")
        return cross_validate(self, folds, settle)

    def plot(self, recording: int = 0):
        """Figure of the recording and the fitted simulation: `plot.plot_fit`."""
        from ..plot import plot_fit

        return plot_fit(self, recording)

    def save(self, path: str | Path) -> Path:
        """Write the fit to `path` (NumPy `.npz`, added if missing); returns the path. The file is
        written completely or not at all. Functions, such as an initial state that depends on the
        machine, are not stored: pass the experiments again when loading."""
        require(self.y.ndim == 1, "save", "a batch of fits", "one fit")
        return fit_file.write(path, self, _NUMBERS)

    @staticmethod
    def load(
        path: str | Path, experiment: Experiment | Sequence[Experiment] | None = None
    ) -> "Fit":
        """Read a file written by `save`. `experiment`: as given to `identify`, or a list of them,
        if the file could not store them. Nothing in the file is executed."""
        several = [experiment] if isinstance(experiment, Experiment) else experiment
        return Fit(**fit_file.read(path, several))

    @property
    def succeeded(self):
        """Whether the search converged, with residuals not far above the given noise."""
        return self.code == CONVERGED

    @property
    def reason(self) -> str:
        """Reason why the search stopped, as a sentence."""
        require(self.code.ndim == 0, "reason", "a batch of fits", "one fit; see `code` for a batch")
        return SENTENCES[int(self.code)]

    def unidentifiable(self) -> list[str]:
        """Combinations of parameters that the recording does not determine, as sentences; empty if
        the Jacobian has full rank."""
        require(self.code.ndim == 0, "unidentifiable", "a batch of fits", "one fit")
        if int(self.code) == START_FAILED:  # there is no Jacobian in this case
            return []
        kinds, stuck = self.parameters.number_kinds, self.at_bounds()
        sentences = []
        for direction in self.about.lost_directions():
            parts = [
                f"{share:+.3f} {_COORDINATE[kind]}({name})"
                for share, kind, name in zip(direction, kinds, self.names, strict=True)
                if abs(share) > 1e-3
            ]
            if all(name in stuck for name, s in zip(self.names, direction, strict=True) if s):
                continue
            sentences.append(
                f"the recording does not determine {' '.join(parts)}: moving the parameters "
                "together by these amounts leaves what was recorded unchanged; "
                + what_would_tell(self, direction)
            )
        return sentences

    def residual_summary(self) -> str:
        """A table of the residuals of each channel: number of samples, mean and standard deviation
        over noise, correlation of neighbouring samples (within 2/sqrt(n) if errors are
        independent), samples over which they are correlated, and order of their autoregressive
        model."""
        lines = [
            f"{'channel':<24} {'samples':>8} {'mean':>9} {'deviation':>9} {'neighbours':>10} "
            f"{'length':>8} {'order':>6}"
        ]
        errors, used = self.about.errors, 0
        for i, (trial, differences) in enumerate(zip(self.trials, self.differences, strict=True)):
            r = np.asarray(trial.by_channel(trial.weighed(differences)))
            for c, (name, seen) in enumerate(
                zip(trial.channels, np.asarray(trial.seen).T, strict=True)
            ):
                x = r[seen, c]
                place = f"{name}@{i}" if len(self.trials) > 1 else name
                lines.append(
                    f"{place:<24} {x.size:>8} {np.mean(x):>9.3g} {np.std(x):>9.3g} "
                    f"{float(errors.lag_one[used + c]):>10.3f} "
                    f"{float(errors.length[used + c]):>8.3g} {int(errors.order[used + c]):>6}"
                )
            used += len(trial.channels)
        white = "independent" if bool(errors.white) else "not independent"
        return "\n".join([*lines, f"the residuals are {white} of each other"])

    def at_bounds(self) -> list[str]:
        """Names of parameters that ended at one of their bounds."""
        bounds = self.parameters.number_bounds
        pairs = zip(self.names, np.asarray(self.values), bounds, strict=True)
        return [
            name
            for name, value, ends in pairs
            if ends and min(value - ends[0], ends[1] - value) < 1e-6 * (ends[1] - ends[0])
        ]

    def summary(self) -> str:
        """Table of estimates, followed by warnings and diagnostics."""
        interval, errors = np.asarray(self.interval()), np.asarray(self.standard_errors)
        units = self.parameters.units
        named = [f"{n} [{u}]" if u else n for n, u in zip(self.names, units, strict=True)]
        width = max(len(n) for n in (*named, "parameter"))
        lines = [
            f"{type(self.system).__name__}: {int(self.freedom) + len(self.names)} recorded "
            f"numbers{self._of_several}, {int(self.iterations)} iterations. {self.reason}",
            f"{'parameter':<{width}}  {'start':>12}  {'estimate':>12}  {'std. error':>10}  "
            "95 % interval",
        ]
        for i, name in enumerate(named):
            lines.append(
                f"{name:<{width}}  {float(self.start[i]):>12.6g}  {float(self.values[i]):>12.6g}  "
                f"{errors[i]:>10.3g}  {interval[i, 0]:.6g} to {interval[i, 1]:.6g}"
            )
        lines.append(
            f"standard deviation of the residuals, over noise: {float(self.noise_scale):.4g}"
        )
        if bool(jnp.all(jnp.isfinite(self.step_shift))) and not self.exact():
            shifts = np.asarray(self.step_shift) / np.asarray(self.independent_errors)
            worst = int(np.argmax(np.abs(shifts)))
            lines.append(
                f"halving the time step would move {self.names[worst]} by {abs(shifts[worst]):.2g} "
                "standard errors (the largest of all); intervals include this bias"
            )
        lines += [f"warning: {sentence}" for sentence in self.unidentifiable()]
        lines += [
            f"warning: {sentence}"
            for told in (outliers, towards_zero, sentences, step_matters)
            for sentence in told(self)
        ]
        lines += [f"warning: {name} ended at its bound" for name in self.at_bounds()]
        return "\n".join(lines)

    @property
    def _of_several(self) -> str:
        return f" of {len(self.trials)} recordings" if len(self.trials) > 1 else ""

    def warn(self) -> None:
        """Warn if the search did not converge, parameters cannot be identified, residuals are not
        noise, or the time step biases the estimates."""
        complaints = [] if bool(self.succeeded) else [self.reason]
        complaints += self.unidentifiable() + outliers(self) + towards_zero(self) + sentences(self)
        complaints += [f"{name} ended at its bound, {self[name]:g}" for name in self.at_bounds()]
        complaints += step_matters(self)
        for complaint in complaints:
            warnings.warn(f"identify: {complaint}", stacklevel=3)


@filter_jit
def _predicted(parameters: ParameterSet, experiment: Experiment, y, names, recording, own):
    def look(y):
        run = simulate(parameters.insert(experiment, y, recording, start=own), throw=False)
        return {name: observe(run, name) for name in names}, run

    slopes, run = jax.jacfwd(look, has_aux=True)(y)
    return run, slopes


#: array fields that are written to a file
_NUMBERS = (
    "values", "start", "covariance", "cost", "noise_scale", "freedom", "iterations", "code",
    "step_shift", "y",
)  # fmt: skip

#: name of the search coordinate of each kind of parameter in messages
_COORDINATE = {"log": "log", "linear": "relative", "bounded": "logit"}
