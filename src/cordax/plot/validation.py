"""Figures of predictions."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..identification.validation import Validation
from .style import COLOURS, FONT


def plot_validation(validation: Validation, title: str = "") -> Figure:
    """Recorded values (dots), their prediction (line) with 95 % bands against time [s], one panel
    for each channel; the part to which the initial state was fitted is grey. Returns the figure."""
    recording = validation.recording
    t = np.asarray(recording.t)
    panels = []
    for name, values in recording.values.items():
        flat = [
            np.asarray(x).reshape(len(t), -1)
            for x in (
                values,
                validation.predicted[name],
                validation.low[name],
                validation.high[name],
            )
        ]
        for c in range(flat[0].shape[1]):
            label = name if flat[0].shape[1] == 1 else f"{name}_{c + 1}"
            panels.append((label, *(x[:, c] for x in flat)))
    with plt.rc_context(FONT):
        size = (8.0, 1.0 + 2.0 * len(panels))
        figure, axes = plt.subplots(
            len(panels), 1, sharex=True, squeeze=False, figsize=size, layout="constrained"
        )
        for axis, (label, recorded, predicted, low, high) in zip(axes[:, 0], panels, strict=True):
            axis.fill_between(t, low, high, color=COLOURS[0], alpha=0.25, lw=0, label="95 % band")
            axis.plot(t, recorded, ".", ms=2.5, color="black", alpha=0.5, label="recorded")
            axis.plot(t, predicted, lw=1.2, color=COLOURS[0], label="predicted")
            axis.axvspan(t[0], validation.start, color="0.9", zorder=-1)
            axis.set_ylabel(label)
        axes[0, 0].legend(loc="best", frameon=False, ncols=3)
        axes[0, 0].set_title(title or "prediction of a window left out")
        axes[-1, 0].set_xlabel("time [s]")
    return figure
