"""Messages on residuals that are not noise and their consequences for the estimates."""

import numpy as np

from .termination import CONVERGED, MISFIT

#: largest effect of model errors (1: 100 %) up to which the motion counts as showing a parameter
HARDLY_SHOWN = 0.3
#: changes of the simulation relative to the residuals above which numerical errors may explain them
NUMERICS_MATTER = 0.3

#: shift of an estimate by half the time step, in standard errors, from which a message is given
STEP_MATTERS = 0.5
#: residuals in units of their spread above which they are outliers: one in 10^9 of a normal
#: distribution
FAR = 6.0
#: residuals below this fraction of the recorded values are not outliers
ROUNDING = 1e-6
#: largest number of items named in one sentence
NAMED = 12
#: a parameter below this fraction of its initial value, and uncertain by a factor of e, has
#: vanished
VANISHED = 0.1


def sentences(fit) -> list[str]:
    """Messages on correlated residuals; empty if residuals are noise or the search did not
    converge."""
    if int(fit.code) not in (CONVERGED, MISFIT) or not fit.coloured():
        return []
    return [_not_noise(fit), *_hardly_shown(fit), *_numerics(fit)]


def outliers(fit) -> list[str]:
    """Message on single samples far from their neighbours, which no motion can explain."""
    found = []
    for i, (trial, residuals) in enumerate(zip(fit.trials, fit.differences, strict=True)):
        where = f" in recording {i}" if len(fit.trials) > 1 else ""
        t = np.asarray(trial.recording.t)
        for name, residual in residuals.items():
            for x, recorded in zip(
                _columns(residual), _columns(trial.recording.values[name]), strict=True
            ):
                away = _away(x, recorded)
                beside = np.maximum(np.r_[0.0, away[:-1]], np.r_[away[1:], 0.0])
                at = np.flatnonzero((away > FAR) & (beside < 0.5 * away))
                if len(at):
                    when = ", ".join(f"{t[k]:.4g}" for k in at[:NAMED])
                    more = f" and {len(at) - NAMED} more" if len(at) > NAMED else ""
                    times = f"up to {np.max(away[at]):.2g} times"
                    found.append(f"{name}{where} at {when} s{more} ({times})")
    if not found:
        return []
    text = f"single samples lie far from the others, {'; '.join(found)} the spread of residuals. "
    loss = fit.problem.loss
    if loss is not None:
        return [f"{text}The {loss.kind} loss reduces their weight"]
    return [
        f"{text}They pull the estimates, and intervals do not include this: if they are errors of "
        "a sensor make them NaN, or use a robust loss (loss='huber'), and fit again"
    ]


def step_matters(fit) -> list[str]:
    """Messages on estimates that depend on the time step; empty if a recording is matched to
    rounding errors."""
    if fit.exact():
        return []
    shift, errors = np.asarray(fit.step_shift), np.asarray(fit.independent_errors)
    return [
        f"{name} depends on the time step: half of it would move the estimate by "
        f"{abs(moved) / error:.2g} standard errors; choose a smaller dt or an integrator of higher "
        "order"
        for name, moved, error in zip(fit.names, shift, errors, strict=True)
        if np.isfinite(moved) and abs(moved) > STEP_MATTERS * error
    ]


def _columns(x) -> np.ndarray:
    x = np.asarray(x)
    return x.reshape(len(x), -1).T


def _away(x, recorded) -> np.ndarray:
    """Residuals of one channel in units of their spread, estimated robustly; zero where nothing was
    recorded."""
    seen = np.isfinite(x)
    away = np.zeros_like(x)
    if np.any(seen):
        away[seen] = np.abs(x[seen] - np.median(x[seen]))
        spread = max(1.4826 * np.median(away[seen]), ROUNDING * np.std(recorded[seen]))
        away = away / spread if spread > 0 else np.zeros_like(x)
    return away


def towards_zero(fit) -> list[str]:
    """Messages on positive parameters that the search reduced towards zero."""
    errors = np.sqrt(np.diag(np.asarray(fit.about.covariance)))
    numbers = zip(fit.names, fit.parameters.number_kinds, fit.values, fit.start, strict=True)
    return [
        f"{name} went towards zero, {float(value):.2g} from {float(start):.2g}: the recording does "
        "not tell it from none. Set it to zero and leave it out, or give it bounds"
        for i, (name, kind, value, start) in enumerate(numbers)
        if kind == "log" and value < VANISHED * start and errors[i] > 1.0
    ]


def _not_noise(fit) -> str:
    errors = fit.about.errors
    worst = int(np.argmax(np.asarray(errors.length)))
    name, time = _channel(fit, worst)
    time *= float(errors.length[worst])
    grown = np.diag(np.asarray(fit.about.covariance)) / np.diag(np.asarray(fit.about.independent))
    low, high = np.sqrt([np.min(grown), np.max(grown)])
    return (
        f"the residuals are not noise: those of {name} are correlated over about {time:.2g} s "
        f"(neighbouring samples by {float(errors.lag_one[worst]):.4f}), so the simulation differs "
        "from the recording by more than independent errors of measurement. Standard errors "
        f"include the correlation: they are {low:.2g} to {high:.2g} times those of independent "
        "errors. They do not include an error of the model that looks like a change of the "
        "parameters. Plot the fit; check machine, initial state, inputs, integrator and step"
    )


def _channel(fit, number: int) -> tuple[str, float]:
    """Name of a column of all residuals, and its sampling interval [s]."""
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
    kinds = fit.parameters.number_kinds
    lost = [i for i in range(len(fit.names)) if reach[i] > HARDLY_SHOWN]
    if not lost:
        return []
    named, more = lost[:NAMED], len(lost) - NAMED
    listed = lambda words: ", ".join(words) + (f" and {more} more" if more > 0 else "")
    which = listed([fit.names[i] for i in named])
    amounts = listed([_amount(kinds[i], reach[i]) for i in named])
    them, its = ("it", "its standard error") if len(lost) == 1 else ("them", "standard errors")
    return [
        f"this motion does not show {which} against errors of this size: errors as large as the "
        f"residuals could move {them} by {amounts}. Without them, from the scatter of neighbouring "
        f"samples alone, {its} would be {listed([f'{alone[i]:.2g}' for i in named])}. "
        f"Excite {them} more, or remove the errors"
    ]


def _amount(kind: str, reach: float) -> str:
    if kind == "log":
        return f"a factor of {np.exp(min(reach, 300.0)):.3g}"
    return f"{100 * reach:.3g} %" if kind == "linear" else f"{reach:.3g} in logit coordinates"


def _scatter(fit) -> float:
    """Part of the residuals, over noise, that is independent from sample to sample: from third
    differences, whose variance is 20 times that of independent errors."""
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
