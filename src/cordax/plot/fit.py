"""A recording against the fitted model."""

from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._checks import require
from ..identification import Fit
from ..recording import observe
from .lines import by_kind, pretty
from .style import COLOURS, FONT, label


def plot_fit(fit: Fit, recording: int = 0) -> Figure:
    """Recorded values (dots) and the fitted simulation (lines) against time, quantities of one kind
    in one panel, and beside each panel the residuals; returns the figure. Of several recordings
    that with the number `recording`."""
    count = len(fit.trials)
    require(recording in range(count), "recording", recording, f"a number from 0 to {count - 1}")
    trial, run = fit.trials[recording], fit.trajectories[recording]
    named = fit.system.components
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
