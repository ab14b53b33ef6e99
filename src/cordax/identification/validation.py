"""Prediction of recordings that were not fitted, compared with trivial predictors."""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._base.checks import require, require_number
from ..parameters.built_parameters import BuiltParameters
from ..parameters.parameter import collect
from ..recordings.recording import Recording
from ..recordings.signals import scatter
from ..simulation.experiment import Experiment
from .intervals import student_quantile
from .measured_state import MeasuredState, measured_state
from .problem import Trial
from .resample import filters_of
from .time_grid import grid

#: errors relative to the motion up to which a prediction counts as accurate and as usable
ACCURATE, USABLE = 0.1, 0.3
#: smallest fraction of samples that 95 % bands should contain
FEWEST_COVERED = 0.8


class ChannelError(NamedTuple):
    """Prediction error of one channel of a recording, in the unit of the channel.

    `rms` error and `motion`, the standard deviation of the recorded values; their ratio `fraction`;
    `per_second`, RMS errors in each second of the prediction, shape (n,); `lag` [s] by which the
    prediction is late (positive) or early, and the same as `phase` [deg] of the dominant
    oscillation (NaN without one); `coverage`, the share of samples within the 95 % bands. RMS
    errors of trivial predictors: `hold` (the last value before the prediction stays) and `mean`
    (the mean of the recorded values before the prediction and of the recordings that were
    fitted). `noise`: standard deviation of the measurement errors."""

    rms: float
    motion: float
    fraction: float
    per_second: np.ndarray
    lag: float
    phase: float
    coverage: float
    hold: float
    mean: float
    noise: float = 0.0

    @property
    def net_fraction(self) -> float:
        """Error without measurement noise, as a fraction of the motion."""
        net = max(self.rms**2 - self.noise**2, 0.0) ** 0.5
        return net / self.motion if self.motion > 0 else float(net > 0)

    @property
    def beats_trivial(self) -> bool:
        """Whether the error is below that of both trivial predictors, or is measurement noise."""
        return self.rms < min(self.hold, self.mean) or self.rms <= 1.1 * self.noise


class Validation(NamedTuple):
    """Prediction of a recording that was not fitted.

    `recording`; `start` [s], the time from which samples are compared; `predicted` values, `low`
    and `high` ends of 95 % bands by name, at the instants of the recording; `errors` by channel."""

    recording: Recording
    start: float
    predicted: dict[str, np.ndarray]
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    errors: dict[str, ChannelError]

    def summary(self) -> str:
        """Table of the errors of each channel."""
        length = self.recording.t[-1] - self.start
        lines = [
            f"prediction over {length:.3g} s",
            f"{'channel':<20} {'RMS error':>10} {'of motion':>9} {'lag [s]':>9} "
            f"{'phase [deg]':>11} {'in band':>8} {'hold':>10} {'mean':>10}",
        ]
        for name, e in self.errors.items():
            lines.append(
                f"{name:<20} {e.rms:>10.3g} {100 * e.fraction:>7.1f} % {_or_dash(e.lag, '.3g'):>9} "
                f"{_or_dash(e.phase, '.1f'):>11} {100 * e.coverage:>6.1f} % {e.hold:>10.3g} "
                f"{e.mean:>10.3g}"
            )
        return "\n".join(lines)


def _or_dash(x: float, form: str) -> str:
    return format(x, form) if np.isfinite(x) else "-"


def verdict(validations: list[Validation]) -> tuple[str, list[str]]:
    """Rating of predictions ("accurate", "usable", "poor" or "useless"), and the reasons for it."""
    errors = [(name, e) for v in validations for name, e in v.errors.items()]
    if not errors:
        return "unknown", ["no window was left out, so that no prediction could be examined"]
    fraction = float(np.sqrt(np.mean([e.net_fraction**2 for _, e in errors])))
    worst = max(errors, key=lambda pair: pair[1].net_fraction)
    reasons = [
        f"RMS error on the windows left out, without measurement noise: {100 * fraction:.1f} % of "
        f"the motion on average over channels and windows, at most "
        f"{100 * worst[1].net_fraction:.1f} % ({worst[0]})"
    ]
    losing = [name for name, e in errors if not e.beats_trivial]
    coverage = float(np.mean([e.coverage for _, e in errors]))
    word = "accurate" if worst[1].net_fraction <= ACCURATE else "usable"
    word = word if fraction <= USABLE else "poor"
    if losing:
        listed = ", ".join(dict.fromkeys(losing))
        reasons.append(
            f"a trivial predictor is better in {len(losing)} of {len(errors)} cases ({listed})"
        )
        word = "useless" if len(losing) > 0.5 * len(errors) else "poor"
    reasons.append(f"95 % prediction bands contain {100 * coverage:.0f} % of the samples left out")
    if coverage < FEWEST_COVERED:
        reasons.append("the bands are too narrow: the model lacks something that the log shows")
        word = "usable" if word == "accurate" else word
    return word, reasons


def validate(fit, recording: Recording, experiment: Experiment | None, settle: float) -> Validation:
    """See `Fit.validate`."""
    require_number("settle", settle, positive=False)
    names = [n for n in fit.trials[0].recording.names if n in recording.values]
    expected = f"some of {', '.join(fit.trials[0].recording.names)}"
    require(len(names) > 0, "recording", ", ".join(recording.names), expected)
    compared = recording.select(names)
    noise = {n: fit.trials[0].noise[n] for n in names}
    scalar = {
        n: x for n, x in noise.items() if np.ndim(x) <= np.asarray(compared.values[n]).ndim - 1
    }
    noise = scalar if len(scalar) == len(noise) else 1.0
    known_noise = noise if fit.problem.noise_given and isinstance(noise, dict) else {}
    given = experiment is not None
    base = _experiment(fit, recording, experiment)
    if not isinstance(fit.parameters, BuiltParameters):
        base = fit.parameters.insert(base, fit.y, 0, start=False)
    start = float(recording.t[0]) + settle
    spread = {n: _residual_deviation(fit, n) for n in names}
    own = ["state0.position", "state0.velocity"] if isinstance(base.state0, MeasuredState) else []
    covariance = np.zeros((0, 0))
    if own and settle > 0:
        base, covariance = _settled(base, compared, own, noise, start)
    predicted, slopes = _simulated(fit, base, compared, own if covariance.size else [], given)
    quantile = float(student_quantile(0.95, np.min(np.asarray(fit.about.freedom))))
    shared = _shared_covariance(fit)
    low, high = {}, {}
    for name in names:
        J, K = slopes[name]
        variance = np.einsum("...i,ij,...j->...", J, shared, J)
        if covariance.size:
            variance = variance + np.einsum("...i,ij,...j->...", K, covariance, K)
        half = quantile * np.sqrt(variance + spread[name] ** 2)
        low[name], high[name] = predicted[name] - half, predicted[name] + half
    after = recording.t >= start - 1e-9
    require(int(np.sum(after)) > 2, "settle", settle, "a time before the last three samples")
    errors = {}
    for name in names:
        before = _before(fit, compared, name, after)
        columns = np.asarray(compared.values[name]).reshape(len(recording.t), -1)
        for c in range(columns.shape[1]):
            label = name if columns.shape[1] == 1 else f"{name}_{c + 1}"
            pick = lambda x, c=c: np.asarray(x).reshape(len(recording.t), -1)[after, c]
            errors[label] = _channel_error(
                recording.t[after], pick(compared.values[name]), pick(predicted[name]),
                pick(low[name]), pick(high[name]), *before[c],
                float(np.max(known_noise.get(name, np.inf))),
            )  # fmt: skip
    return Validation(compared, start, predicted, low, high, errors)


def _experiment(fit, recording: Recording, experiment: Experiment | None) -> Experiment:
    if experiment is not None:
        return experiment
    if isinstance(fit.parameters, BuiltParameters):
        own = [
            n for n, only in zip(fit.parameters.labels, fit.parameters.only, strict=True) if only
        ]
        if own:
            raise ValueError(
                f"validate needs experiment=: {', '.join(own)} have a value for each recording"
            )
        return fit.parameters.build(fit.y, 0, recording)
    base = fit.trials[0].experiment
    state = measured_state(base.system, recording, base.start)
    return base.replace(state0=state, t0=float(recording.t[0]))


def _settled(experiment: Experiment, recording: Recording, own, noise, end: float):
    """The experiment with the initial state that fits the samples up to `end` [s], and the
    covariance of that state."""
    from ._identify import identify

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of a short piece: nothing but its state matters
        fit = identify(
            experiment, recording.between(float(recording.t[0]), end), own, noise=noise,
            check_step=False, max_steps=30,
        )  # fmt: skip
    covariance = np.asarray(fit.covariance)
    usable = bool(np.all(np.isfinite(covariance)) and np.all(np.isfinite(fit.values)))
    if not usable:
        return experiment, np.zeros((0, 0))
    return experiment.replace(state0=fit.experiment.state0), covariance


def _shared_covariance(fit) -> Float[np.ndarray, "p p"]:
    """Covariance of the search coordinates with zeros for those of initial states."""
    kept = np.array([not name.startswith("state0") for name in fit.names])
    return np.asarray(fit.about.covariance) * np.outer(kept, kept)


def _simulated(fit, experiment: Experiment, recording: Recording, own: list[str], given: bool):
    """Simulated values at the recorded instants by name, and their derivatives by the fitted
    parameters and by those of the initial state. `given`: the experiment does not come from a build
    function."""
    places = grid(recording.t, experiment.dt or fit.trials[0].grid.dt, experiment.t0, np.inf)
    states = collect(own, experiment) if own else None
    zeros = {name: jnp.zeros_like(x) for name, x in recording.values.items()}
    filters = filters_of(experiment, recording)
    trial = Trial(experiment, Recording(recording.t, zeros), places, {}, filters)
    built = isinstance(fit.parameters, BuiltParameters)

    def look(y, z):
        if not built:
            here = fit.parameters.insert(experiment, y, 0, start=False)
        elif given:
            here = experiment
        else:
            here = fit.parameters.build(y, 0, recording)
        here = here if states is None else states.insert(here, z, 0)
        run = trial.run(here, "scan")
        values = {name: -x for name, x in trial.differences(here, run).items()}
        return values, values

    z = jnp.zeros(0 if states is None else states.size)
    slopes, values = jax.jit(jax.jacfwd(look, argnums=(0, 1), has_aux=True))(fit.y, z)
    scale = np.ones(z.size) if states is None else np.asarray(_slope(states))
    plain = {n: np.asarray(x) for n, x in values.items()}
    return plain, {n: (np.asarray(J), np.asarray(K) / scale) for n, (J, K) in slopes.items()}


def _slope(states) -> np.ndarray:
    """d(values)/d(search coordinates), since covariances of states are in natural units."""
    return np.diagonal(np.asarray(jax.jacfwd(states.values)(states.origin)))


def _residual_deviation(fit, name: str) -> float:
    residuals = [np.asarray(d[name]).ravel() for d in fit.differences if name in d]
    return float(np.sqrt(np.nanmean(np.concatenate(residuals) ** 2)))


def _before(fit, recording: Recording, name: str, after: np.ndarray) -> list[tuple[float, float]]:
    """For each column: the last value before the prediction, and the mean of the known values."""
    x = np.asarray(recording.values[name])
    x = x.reshape(len(x), -1)
    fitted = [
        np.asarray(t.recording.values[name]) for t in fit.trials if name in t.recording.values
    ]
    fitted = np.concatenate([f.reshape(len(f), -1) for f in fitted])
    found = []
    for c in range(x.shape[1]):
        early = x[~after, c][np.isfinite(x[~after, c])]
        late = x[after, c][np.isfinite(x[after, c])]
        last = float(early[-1]) if early.size else float(late[0]) if late.size else np.nan
        found.append((last, float(np.nanmean(np.concatenate([fitted[:, c], early])))))
    return found


def _channel_error(
    t, recorded, predicted, low, high, last: float, mean: float, noise: float
) -> ChannelError:
    """`noise`: given standard deviation of the measurement errors, or infinite. Not more than the
    scatter of neighbouring samples is taken for noise."""
    seen = np.isfinite(recorded)
    t, recorded, predicted = t[seen], recorded[seen], predicted[seen]
    rms = lambda x: float(np.sqrt(np.mean(x**2))) if x.size else float("nan")
    error = recorded - predicted
    seconds = np.floor(t - t[0] + 1e-9).astype(int) if t.size else np.zeros(0, int)
    per_second = np.array(
        [rms(error[seconds == s]) for s in range(int(seconds.max(initial=-1)) + 1)]
    )
    motion = float(np.std(recorded)) if t.size else float("nan")
    lag, phase = _lag(t, recorded, predicted)
    inside = (recorded >= low[seen]) & (recorded <= high[seen])
    return ChannelError(
        rms(error),
        motion,
        rms(error) / motion if motion > 0 else float("inf"),
        per_second,
        lag,
        phase,
        float(np.mean(inside)) if t.size else float("nan"),
        rms(recorded - last),
        rms(recorded - mean),
        min(noise, scatter(recorded)),
    )


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.sqrt(np.sum(a**2) * np.sum(b**2)))
    return float(np.sum(a * b)) / size if size > 0 else 0.0


def _lag(t: np.ndarray, recorded: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Time [s] by which the prediction is late, where the cross-correlation is largest within half
    a period, and the same in degrees of the dominant oscillation; NaN without an oscillation."""
    nothing = float("nan"), float("nan")
    if t.size < 16 or not np.all(np.isfinite(predicted)):
        return nothing
    even = np.linspace(t[0], t[-1], t.size)
    a, b = (np.interp(even, t, x - np.mean(x)) for x in (recorded, predicted))
    if np.std(a) == 0 or np.std(b) == 0:
        return nothing
    step = even[1] - even[0]
    power = np.abs(np.fft.rfft(a * np.hanning(a.size))) ** 2
    k = int(np.argmax(power[1:])) + 1
    period = a.size * step / k
    if k < 2:
        return nothing
    most = max(1, min(int(0.5 * period / step), a.size // 4))
    shifts = np.arange(-most, most + 1)
    score = [
        _correlation(a[max(0, -s) : a.size - max(0, s)], b[max(0, s) : b.size - max(0, -s)])
        for s in shifts
    ]
    i = int(np.argmax(score))
    lag = float(shifts[i])
    if 0 < i < len(shifts) - 1:  # vertex of the parabola through three neighbours
        left, middle, right = score[i - 1], score[i], score[i + 1]
        bend = left - 2.0 * middle + right
        lag += 0.5 * (left - right) / bend if bend < 0 else 0.0
    return lag * step, 360.0 * lag * step / period


class CrossValidation(NamedTuple):
    """Predictions of recordings by fits to the others: one `Validation` for each recording, and the
    `estimates` of the shared parameters in each fold, shape (folds, p), by `names`."""

    validations: list[Validation]
    names: tuple[str, ...]
    estimates: np.ndarray
    errors: np.ndarray

    def summary(self) -> str:
        """Text with the verdict, the errors of each recording, and the spread of estimates over
        folds."""
        word, reasons = verdict(self.validations)
        lines = [f"{word}: {'; '.join(reasons)}"]
        for name, x, error in zip(self.names, self.estimates.T, self.errors, strict=True):
            spread = float(np.std(x, ddof=1)) if len(x) > 1 else 0.0
            note = "; intervals are too narrow" if spread > 2.0 * error else ""
            lines.append(
                f"{name}: {x.min():.6g} to {x.max():.6g} over the folds, deviation "
                f"{spread / error:.2g} standard errors of the fit{note}"
            )
        return "\n".join([*lines, *(v.summary() for v in self.validations)])


def cross_validate(fit, folds: int, settle: float) -> CrossValidation:
    """See `Fit.cross_validate`."""
    from ._identify import refit

    count = len(fit.trials)
    expected = f"2 to {count}, the number of recordings of the fit"
    require(isinstance(folds, int) and 2 <= folds <= count, "folds", folds, expected)
    shared = np.array([only is None for only in fit.parameters._spread(fit.parameters.only)])
    validations, estimates = {}, []
    for fold in range(folds):
        left_out = [i for i in range(count) if i % folds == fold]
        other = refit(fit, [i for i in range(count) if i not in left_out])
        rows = [only is None for only in other.parameters._spread(other.parameters.only)]
        estimates.append(np.asarray(other.values)[np.array(rows)])
        for i in left_out:
            trial = fit.trials[i]
            built = isinstance(fit.parameters, BuiltParameters)
            experiment = None if built else trial.experiment
            if experiment is not None and isinstance(experiment.state0, MeasuredState):
                state = measured_state(experiment.system, trial.recording, experiment.start)
                experiment = experiment.replace(state0=state)
            validations[i] = validate(other, trial.recording, experiment, settle)
    names = tuple(n for n, keep in zip(fit.names, shared, strict=True) if keep)
    errors = np.asarray(fit.standard_errors)[shared]
    ordered = [validations[i] for i in range(count)]
    return CrossValidation(ordered, names, np.array(estimates), errors)
