"""A recording against the fitted model."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..identify import Fit
from ..identify.recording import observe
from .lines import pretty, stem
from .style import COLOURS, FONT, label


def plot_fit(fit: Fit) -> Figure:
    """Recorded values (dots) and the fitted simulation (lines) against time, quantities of one kind
    in one panel, and beside each panel the residuals; returns the figure."""
    curves = _curves(fit)
    t = np.asarray(fit.recording.t)
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
            for i, (name, (recorded, residual)) in enumerate(members.items()):
                colour = COLOURS[i % len(COLOURS)]
                left.plot(t, recorded, ".", ms=1.5, color=colour, alpha=0.4)
                left.plot(
                    np.asarray(fit.trajectory.t),
                    np.asarray(observe(fit.trajectory, name)),
                    lw=1.2,
                    color=colour,
                    label=pretty(name),
                )
                right.plot(t, residual, ".", ms=1.5, color=colour)
            left.set_ylabel(label(group))
            left.legend(loc="best", frameon=False, ncols=2)
        axes[0, 0].set_title("recorded (dots) and simulated (lines)")
        axes[0, 1].set_title("recorded minus simulated")
        for one in axes[-1]:
            one.set_xlabel("time [s]")
    return figure


def _curves(fit: Fit) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Recorded values and residuals, shape (k,) each, by kind and by name of one component."""
    curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for name, values in fit.recording.values.items():
        recorded, residual = np.asarray(values), np.asarray(fit.residuals[name])
        if recorded.ndim == 1:
            curves.setdefault(stem(name), {})[name] = (recorded, residual)
            continue
        columns = zip(
            recorded.reshape(len(recorded), -1).T,
            residual.reshape(len(residual), -1).T,
            strict=True,
        )
        curves[name] = {f"{name}_{i + 1}": pair for i, pair in enumerate(columns)}
    return curves
