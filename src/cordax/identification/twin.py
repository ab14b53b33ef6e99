"""Fit a machine to windows of logs, and predict the windows that were left out."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from .._base.checks import require
from ..parameters.parameter import Parameter, collect
from ..recordings.recording import Recording
from ..recordings.signals import scatter
from ..simulation.experiment import Experiment
from ._identify import identify, problem_of
from .fit import Fit
from .loss import LossName
from .measured_state import measured_state
from .validation import Validation, verdict

#: every n-th window is left out of the fit
LEFT_OUT = 3
#: largest relative standard error at which a parameter counts as determined by the log
DETERMINED = 0.1
#: largest ratio of residuals to noise at which a fit explains the log
EXPLAINED = 1.2
#: weak priors of initial states: standard deviations of positions and velocities, SI units
STATE_PRIOR = 1.0, 10.0
STATE = (
    Parameter("state0.position", prior=(0.0, STATE_PRIOR[0])),
    Parameter("state0.velocity", prior=(0.0, STATE_PRIOR[1])),
)
#: parameters that are fitted first if the log cannot identify all of them separately
_FIRST = ("damping", "friction", "viscosity", "stiffness", "modulus", "young")


class Twin(NamedTuple):
    """A machine fitted to logs: the `fit`, predictions of the windows left out (`validations`),
    begin and end [s] of the windows that were fitted and left out, the estimated `noise` by
    channel, the candidates that were not fitted because the log does not determine them
    (`undetermined`), and those that were not needed to explain the log (`unneeded`)."""

    fit: Fit
    validations: list[Validation]
    fitted_times: list[tuple[float, float]]
    left_out_times: list[tuple[float, float]]
    noise: dict[str, float]
    undetermined: list[str]
    unneeded: list[str]

    def verdict(self) -> tuple[str, list[str]]:
        """Rating of the predictions with its reasons, see `verdict`; at best "poor" if the search
        for the parameters did not converge, because other windows may need other values."""
        word, reasons = verdict(self.validations)
        if bool(self.fit.succeeded):
            return word, reasons
        reasons = [f"the estimates and their intervals do not hold: {self.fit.reason}", *reasons]
        return ("poor" if word in ("accurate", "usable") else word), reasons


def noise_of(windows: Sequence[Recording]) -> dict[str, float]:
    """Standard deviations of the measurement errors by channel, from the scatter of neighbouring
    samples; at least a millionth of the motion."""
    found = {}
    for name in windows[0].names:
        columns = [np.asarray(w.values[name]).reshape(len(w.t), -1) for w in windows]
        errors = [scatter(x[:, c]) for x in columns for c in range(x.shape[1])]
        motion = float(np.nanstd(np.concatenate([x.ravel() for x in columns])))
        found[name] = max(float(np.median(errors)), 1e-6 * motion, 1e-12)
    return found


def window_length(log: Recording, names: Sequence[str]) -> float:
    """Window length [s]: six periods of the dominant oscillation, at most a quarter of the log."""
    length = float(log.t[-1] - log.t[0])
    even = log.select(names).resample(float(np.median(np.diff(log.t))), gap=length)
    periods = []
    for x in even.values.values():
        for column in np.nan_to_num(np.asarray(x).reshape(len(even.t), -1)).T:
            wave = np.abs(np.fft.rfft((column - column.mean()) * np.hanning(column.size)))
            if wave[1:].size and np.max(wave[1:]) > 0:
                k = int(np.argmax(wave[1:])) + 1
                periods.append((even.t[-1] - even.t[0]) / k)
    wanted = 6.0 * float(np.median(periods)) if periods else length
    return min(wanted, 0.25 * length)


def equal_windows(log: Recording, names: Sequence[str], length: float) -> list[Recording]:
    """Split a log into windows of about `length` [s] with equal numbers of samples, without gaps,
    in which something moves."""
    windows = log.windows(length * (1.0 + 1e-6), shortest=0.7 * length)
    windows = [w for w in windows if _moves(w, names)]
    fewest = min((len(w.t) for w in windows), default=0)
    return [w._at(np.arange(len(w.t)) < fewest) for w in windows]


def _moves(window: Recording, names: Sequence[str]) -> bool:
    for name in names:
        for x in np.asarray(window.values[name]).reshape(len(window.t), -1).T:
            if np.sum(np.isfinite(x)) > 8 and np.nanstd(x) > 3.0 * scatter(x):
                return True
    return False


def make_twin(
    experiment: Callable[[Recording], Experiment],
    logs: Sequence[Recording],
    parameters: Sequence[str | Parameter],
    *,
    observe: Sequence[str],
    choose: bool = False,
    window: float | None = None,
    settle: float | None = None,
    shift: bool = True,
    loss: LossName = "linear",
) -> Twin:
    """Fit a machine to windows of logs, and predict the windows that were left out.

    - `experiment`: function from a window to its experiment, with inputs, `dt` and `t0`; the
      initial state is replaced by the measured one.
    - `parameters`: parameters to fit; with `choose`, only those of them that the log determines to
      10 %, and only damping and stiffness if these explain it.
    - `observe`: the channels to compare.
    - `window` [s]: length of the windows; six periods of the dominant oscillation by default.
    - `settle` [s]: the first part of a window left out, to which its initial state is fitted; a
      quarter by default.
    - `shift`: let every window begin at time 0, so that all are simulated as one batch. Use False
      if inputs are functions of the time of the log.
    - `loss`: as in `identify`.
    """
    lengths = [window_length(log, observe) if window is None else window for log in logs]
    pairs = zip(logs, lengths, strict=True)
    windows = [w for log, length in pairs for w in equal_windows(log, observe, length)]
    given = (
        f"{len(windows)} windows of {', '.join(f'{x:.3g}' for x in lengths)} s in which it moves"
    )
    require(len(windows) >= 2, "logs", given, "at least two; give a shorter window")
    held = {i for i in range(len(windows)) if i % LEFT_OUT == LEFT_OUT - 1}
    held = held or {len(windows) - 1}
    times = [(float(w.t[0]), float(w.t[-1])) for w in windows]
    windows = [w.shift(-float(w.t[0])) for w in windows] if shift else windows
    training = [w for i, w in enumerate(windows) if i not in held]
    experiments = [_with_state(experiment(w), w) for w in training]
    compared = [w.select(observe) for w in training]
    noise = noise_of(compared)
    undetermined: list[str] = []
    unneeded: list[str] = []
    first = parameters
    if choose:
        parameters, undetermined = determined(experiments, compared, list(parameters), noise)
        expected = "parameters that the log determines to 10 %"
        require(len(parameters) > 0, "parameters", f"none of {', '.join(undetermined)}", expected)
        first = [p for p in parameters if _rank(p) < len(_FIRST)] or parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report contains the warnings
        fit = identify(experiments, compared, [*first, *STATE], noise=noise, loss=loss)
        if len(first) < len(parameters):
            if explains(fit):
                unneeded = [_name(p) for p in parameters if p not in first]
            else:
                every = [*parameters, *STATE]
                fit = identify(experiments, compared, every, noise=noise, loss=loss)
    validations = []
    for i in sorted(held):
        w = windows[i]
        part = 0.25 * float(w.t[-1] - w.t[0]) if settle is None else settle
        validations.append(
            fit.validate(w.select(observe), _with_state(experiment(w), w), settle=part)
        )
    fitted = [x for i, x in enumerate(times) if i not in held]
    left_out = [x for i, x in enumerate(times) if i in held]
    return Twin(fit, validations, fitted, left_out, noise, undetermined, unneeded)


def explains(fit: Fit) -> bool:
    """Whether the search converged and residuals are about as large as the noise."""
    return bool(fit.succeeded) and float(fit.noise_scale) < EXPLAINED


def _name(parameter: str | Parameter) -> str:
    return parameter.name if isinstance(parameter, Parameter) else parameter


def _rank(parameter: str | Parameter) -> int:
    """Place of a parameter in the order in which they are fitted."""
    name = _name(parameter)
    return next((i for i, word in enumerate(_FIRST) if word in name), len(_FIRST))


def _with_state(experiment: Experiment, window: Recording) -> Experiment:
    return experiment.replace(
        state0=measured_state(experiment.system, window, experiment.start), duration=None
    )


def determined(
    experiments: list[Experiment],
    recordings: list[Recording],
    parameters: list[str | Parameter],
    noise: dict[str, float],
) -> tuple[list[str | Parameter], list[str]]:
    """Parameters that the recordings determine together to a relative standard error of 10 %, by
    linearisation at the initial values, and the names of the others. Damping and stiffness come
    first."""
    ordered = sorted(parameters, key=_rank)
    begins = [e.t0 for e in experiments]
    problem = problem_of(experiments, recordings, [*ordered, *STATE], noise=noise, times=begins)
    J = np.asarray(jax.jit(lambda y: problem.jacobian(y)[0])(problem.origin))
    A = J.T @ J
    sizes = [int(np.prod(np.shape(collect([p], experiments).starts[0]))) for p in ordered]
    ends = np.cumsum(sizes)
    chosen: list[int] = list(range(int(ends[-1]), len(A)))  # states are always fitted
    kept, left = [], []
    for parameter, end, size in zip(ordered, ends, sizes, strict=True):
        trial = [*range(end - size, end), *chosen]
        part = A[np.ix_(trial, trial)]
        scale = np.sqrt(np.maximum(np.diagonal(part), 1e-300))
        values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
        inverse = (vectors / np.maximum(values, 1e-14)) @ vectors.T / np.outer(scale, scale)
        shared = [i for i, column in enumerate(trial) if column < ends[-1]]
        errors = np.sqrt(np.diagonal(inverse))[shared]
        if np.all(np.isfinite(errors)) and np.max(errors) <= DETERMINED:
            kept.append(parameter)
            chosen = trial
        else:
            left.append(_name(parameter))
    return kept, left
