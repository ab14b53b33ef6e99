"""A recording against the fitted model."""

from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._base.checks import require
from ..identification import Fit
from ..recordings.recording import observe
from .lines import by_kind, pretty
from .style import COLOURS, FONT, label


def plot_fit(fit: Fit, recording: int = 0) -> Figure:
    """Recorded values (dots) and the fitted simulation (lines) against time, quantities of one kind
    in one panel, with the residuals beside each panel; returns the figure. `recording`: index of
    the recording."""
    count = len(fit.trials)
    require(recording in range(count), "recording", recording, f"a number from 0 to {count - 1}")
    trial, run = fit.trials[recording], fit.trajectories[recording]
    named = fit.system.presentation().components
    curves = by_kind(trial.recording.values, named)
    residuals = by_kind(fit.differences[recording], named)
    t = np.asarray(trial.recording.t)
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(
            len(curves),
            2,
            sharex=True,
            squeeze=False,
            figsize=(11.0, 1.2 + 2.5 * len(curves)),
            layout="constrained",
        )
        for (left, right), (group, members) in zip(axes, curves.items(), strict=True):
            for (name, recorded), colour in zip(members.items(), cycle(COLOURS), strict=False):
                left.plot(t, recorded, ".", ms=1.5, color=colour, alpha=0.4)
                left.plot(
                    np.asarray(run.t),
                    np.asarray(observe(run, name)),
                    lw=1.2,
                    color=colour,
                    label=pretty(name),
                )
                right.plot(t, residuals[group][name], ".", ms=1.5, color=colour)
            left.set_ylabel(label(group, fit.system))
            right.set_ylabel(label(group, fit.system))
            left.legend(loc="best", frameon=False, ncols=2)
        axes[0, 0].set_title("recorded (dots) and simulated (lines)")
        axes[0, 1].set_title("recorded minus simulated")
        for one in axes[-1]:
            one.set_xlabel("time [s]")
    return figure


def plot_residuals(fit: Fit, recording: int = 0, lags: int = 40) -> Figure:
    """Plot whether residuals are white noise: the autocorrelation of each recorded quantity over
    `lags` samples with the 95 % band of independent errors, and the distribution of the residuals,
    relative to the noise, beside the normal distribution; returns the figure."""
    count = len(fit.trials)
    require(recording in range(count), "recording", recording, f"a number from 0 to {count - 1}")
    trial = fit.trials[recording]
    r = np.asarray(trial.by_channel(trial.weighed(fit.differences[recording])))
    seen = np.asarray(trial.seen)
    with plt.rc_context(FONT):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
        for c, (name, colour) in enumerate(zip(trial.channels, cycle(COLOURS), strict=False)):
            x = r[seen[:, c], c]
            if x.size < 3:
                continue
            left.plot(_correlation(x, lags), color=colour, lw=1.2, label=pretty(name))
            right.hist(x, bins=30, density=True, histtype="step", color=colour)
        band = 1.96 / np.sqrt(max(int(seen.sum(axis=0).max()), 1))
        left.axhspan(-band, band, color="0.9")
        left.set(xlabel="samples apart", ylabel="correlation of residuals")
        left.legend(loc="best", frameon=False, ncols=2)
        z = np.linspace(-4.0, 4.0, 200)
        normal = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        right.plot(z, normal, color="0.4", lw=1.0, label="normal")
        right.set(xlabel="residual over noise", ylabel="density")
        right.legend(loc="best", frameon=False)
    return figure


def _correlation(x: np.ndarray, lags: int) -> np.ndarray:
    x = x - x.mean()
    count = min(lags, x.size - 1)
    whole = np.array([x[: x.size - k] @ x[k:] for k in range(count + 1)])
    return whole / max(whole[0], np.finfo(float).tiny)
