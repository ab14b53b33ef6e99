"""Errors of predicted wires over time, beside both baselines."""

import matplotlib.pyplot as plt
import numpy as np

#: key, name and colour of each prediction
KINDS = (
    ("rigid", "carried rigidly", "#999999"),
    ("quasi", "quasi-static", "#d08a2e"),
    ("model", "cordax", "#1f5fa8"),
)


def draw(judged, path) -> None:
    """Of `judged`, by wires what `wires.report` returns: mean over markers of each run, thin, and
    over runs, bold."""
    figure, axes = plt.subplots(
        1, len(judged), figsize=(2.6 * len(judged), 2.8), sharey=True, squeeze=False
    )
    for ax, (wire, runs) in zip(axes[0], judged.items(), strict=True):
        for key, name, colour in KINDS:
            rows = np.array([one[key].mean(axis=1) for one in runs])
            t = 0.01 * np.arange(rows.shape[1])
            ax.plot(t, rows.T, color=colour, lw=0.4, alpha=0.4)
            ax.plot(t, rows.mean(axis=0), color=colour, lw=1.6, label=name)
        ax.set(title=wire, xlabel="time [s]", ylim=(0.0, None))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("mean marker error [mm]")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
