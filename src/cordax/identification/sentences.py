"""What residuals that are not noise mean for the estimates, in words."""

import numpy as np

from .stopping import CONVERGED, MISFIT

#: how far errors of the model may reach (1: 100 %) before a motion counts as not showing a number
HARDLY_SHOWN = 0.3
#: changes of the simulation, over the residuals, above which numerics may explain these
NUMERICS_MATTER = 0.3


def sentences(fit) -> list[str]:
    """None where residuals are noise, or those of a search that did not come to an end."""
    if int(fit.code) not in (CONVERGED, MISFIT) or not fit.coloured():
        return []
    return [_not_noise(fit), *_hardly_shown(fit), *_numerics(fit)]


def _not_noise(fit) -> str:
    found = fit.about.colour
    worst = int(np.argmax(np.asarray(found.samples)))
    name, time = _channel(fit, worst)
    time *= float(found.samples[worst])
    grown = np.diag(np.asarray(fit.about.covariance)) / np.diag(np.asarray(fit.about.independent))
    wider = float(np.sqrt(np.max(grown)))
    return (
        f"the residuals are not noise: those of {name} agree over about {time:.2g} s (neighbouring "
        f"samples correlate by {float(found.neighbours[worst]):.4f}), so the simulation differs "
        "from the recording by more than errors of measurement. Intervals are widened, by "
        f"up to {wider:.2g} times; they do not cover an error of the model that looks like a "
        "change of the parameters. Plot the fit; check machine, start, inputs, integrator and step"
    )


def _channel(fit, number: int) -> tuple[str, float]:
    """The name of a column of all residuals, and the time between its samples [s]."""
    for i, trial in enumerate(fit.trials):
        names = trial.channels
        if number < len(names):
            t = np.asarray(trial.recording.t)[np.asarray(trial.seen)[:, number]]
            interval = (t[-1] - t[0]) / max(len(t) - 1, 1) if t.size else np.nan
            where = f" in recording {i}" if len(fit.trials) > 1 else ""
            return names[number] + where, float(interval)
        number -= len(names)
    raise IndexError(number)


def _hardly_shown(fit) -> list[str]:
    reach = np.asarray(fit.reach_of_errors)
    scatter, errors = _scatter(fit), np.asarray(fit.independent_errors)
    alone = errors * scatter / float(fit.noise_scale)
    return [
        f"this motion does not show {name} against errors of this size: errors as large as the "
        f"residuals could move it by {_amount(kind, reach[i])}. Without them, from the scatter of "
        f"neighbouring samples alone, its standard error would be {alone[i]:.2g}. Excite it more, "
        "or remove the errors"
        for i, (name, kind) in enumerate(zip(fit.names, fit.parameters.number_kinds, strict=True))
        if reach[i] > HARDLY_SHOWN
    ]


def _amount(kind: str, reach: float) -> str:
    if kind == "log":
        return f"a factor of {np.exp(min(reach, 300.0)):.3g}"
    return f"{100 * reach:.3g} %" if kind == "linear" else f"{reach:.3g} in logit coordinates"


def _scatter(fit) -> float:
    """The part of the residuals, over noise, that changes from sample to sample: third
    differences, of which those of independent errors have 20 times the variance."""
    squares, count = 0.0, 0
    for trial, residuals in zip(fit.trials, fit.differences, strict=True):
        for name, residual in residuals.items():
            x = np.asarray(residual) / np.asarray(trial.noise[name])
            x = np.diff(x.reshape(len(x), -1), n=3, axis=0)
            squares += float(np.nansum(x**2))
            count += int(np.sum(~np.isnan(x)))
    return np.sqrt(squares / (20.0 * max(count, 1)))


def _numerics(fit) -> list[str]:
    changes = {name: float(x) for name, x in fit.numerics.items()}
    large = [name for name, x in changes.items() if not x <= NUMERICS_MATTER]
    if not large:
        return []
    said = ", ".join(f"{changes[name]:.2g} ({name})" for name in large)
    return [
        "how the motion is simulated matters as much as the residuals: simulated values would "
        f"change by so many times their size: {said}. If the recording comes from a simulation, "
        "fit with the integrator, step and inputs that made it; if from a machine, find out how "
        "its inputs go between samples and take a smaller step"
    ]
