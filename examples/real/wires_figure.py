"""Shapes of wires, measured and predicted, and errors over time beside both baselines."""

import matplotlib.pyplot as plt
import numpy as np

#: key, name and colour of each prediction
KINDS = (
    ("rigid", "carried rigidly", "#999999"),
    ("quasi", "quasi-static", "#d08a2e"),
    ("model", "cordax", "#1f5fa8"),
)
#: instants at which shapes are drawn, as parts of the run
INSTANTS = (0.2, 0.4, 0.6, 0.8)
FRAME = 0.01


def draw(judged, path) -> None:
    """Of `judged`, by wires what `wires.report` returns, a row each: shapes of the run with the
    median error, seen from the side; errors, mean over markers of each run, thin, and over runs,
    bold."""
    count = len(INSTANTS) + 1
    figure, axes = plt.subplots(
        len(judged),
        count,
        figsize=(2.6 * count, 1.9 * len(judged) + 0.4),
        squeeze=False,
        width_ratios=[1.0] * len(INSTANTS) + [1.4],
    )
    for row, (wire, runs) in zip(axes, judged.items(), strict=True):
        typical = sorted(runs, key=lambda one: one["model"].mean())[(len(runs) - 1) // 2]
        draw_shapes(row[:-1], wire, typical)
        draw_errors(row[-1], runs)
    axes[0, 0].plot([], [], color=KINDS[-1][2], label="predicted")
    axes[0, 0].plot([], [], "k.", ms=4, label="measured")
    axes[0, 0].legend(frameon=False, fontsize=7, loc="upper left")
    axes[0, -1].legend(frameon=False, fontsize=7)
    axes[-1, -1].set_xlabel("time [s]")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_shapes(axes, wire, one) -> None:
    """Heights over the way along the grippers' first line, in one scale."""
    run, found = one["run"], one["found"]
    whole = np.concatenate([run[:, :2], found, run[:, -2:]], axis=1)
    along = (run[0, -2] - run[0, 1]) * np.array([1.0, 1.0, 0.0])
    along = along / np.linalg.norm(along)
    seen = lambda x: (x @ along, x[..., 2])
    both = np.concatenate([run, whole])
    limits = [(part.min() - 0.03, part.max() + 0.03) for part in seen(both)]
    for ax, instant in zip(axes, INSTANTS, strict=True):
        k = round(instant * (len(run) - 1))
        ax.plot(*seen(whole[k]), color=KINDS[-1][2], lw=1.6)
        ax.plot(*seen(run[k]), "k.", ms=4)
        error = one["model"][k].mean()
        ax.set(xlim=limits[0], ylim=limits[1], aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"{wire} {one['label']}, {k * FRAME:.1f} s: {error:.0f} mm", fontsize=7)


def draw_errors(ax, runs) -> None:
    for key, name, colour in KINDS:
        rows = np.array([one[key].mean(axis=1) for one in runs])
        t = FRAME * np.arange(rows.shape[1])
        ax.plot(t, rows.T, color=colour, lw=0.4, alpha=0.4)
        ax.plot(t, rows.mean(axis=0), color=colour, lw=1.6, label=name)
    ax.set(ylim=(0.0, None))
    ax.set_title("mean marker error [mm]", fontsize=7)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
