"""Quantities against time."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._base.checks import require_known
from ..mechanics.units import stem
from ..simulation.trajectory import Trajectory
from .style import COLOURS, FONT, label


def plot_states(
    trajectory: Trajectory,
    names: Sequence[str] | None = None,
    *,
    desired: Mapping[str, Any] | None = None,
) -> Figure:
    """Plot quantities of a trajectory against time, those of one kind (`alpha_1`, `alpha_2`...) in
    one panel; returns the figure.

    **Arguments:**

    - `names`: coordinates, velocities (`d_` + name), inputs or outputs; the machine's
      `Presentation.plots` by default.
    - `desired`: wanted values by name, shape (k,) each, drawn dashed beside the actual ones.
    """
    system = trajectory._known_system("plot_states")
    names = default_names(trajectory) if names is None else names
    for name in names:
        require_known("names", name, trajectory.names)
    for name in desired or {}:
        require_known("desired", name, names)
    groups = by_kind({name: trajectory[name] for name in names}, system.presentation().components)
    t = np.asarray(trajectory.t)
    columns = 1 if len(groups) <= 4 else 2
    rows = -(-len(groups) // columns)
    with plt.rc_context(FONT):
        figure, grid = plt.subplots(
            rows,
            columns,
            sharex=True,
            squeeze=False,
            figsize=(7.5 if columns == 1 else 11.0, 1.0 + min(2.3, 8.0 / rows) * rows),
            layout="constrained",
        )
        axes = list(grid.T.flat)
        for one, (group, curves) in zip(axes, groups.items(), strict=False):
            draw_curves(one, t, curves, desired or {})
            one.set_ylabel(label(group, system))
        for empty in axes[len(groups) :]:
            empty.set_axis_off()
        for last in {rows - 1, len(groups) - 1}:
            axes[last].set_xlabel("time [s]")
            axes[last].tick_params(labelbottom=True)
    return figure


def default_names(trajectory: Trajectory) -> list[str]:
    """Names of the default curves: those of the machine, and tensions if it has some."""
    system = trajectory._known_system("default plots")
    names = dict.fromkeys([*(system.presentation().plots or system.coordinate_names), "tension"])
    return [name for name in names if name in trajectory.names]


def draw_curves(
    axes: Axes, t: np.ndarray, curves: Mapping[str, Any], desired: Mapping[str, Any] | None = None
) -> None:
    """Curves by name over `t` [s], shape (k,), their names at their ends; desired ones dashed on
    top. A curve that coincides with an earlier one is dashed, so that both are visible."""
    wanted = {name: x for name, x in (desired or {}).items() if name in curves}
    known = [np.asarray(values, dtype=float) for values in curves.values()]
    span = _span([*known, *(np.asarray(x, dtype=float) for x in wanted.values())])
    labels: list[tuple[float, str, str]] = []
    for i, (name, values) in enumerate(zip(curves, known, strict=True)):
        covered = any(_same(values, other, 0.01 * (span[1] - span[0])) for other in known[:i])
        colour = COLOURS[i % len(COLOURS)]
        # beyond the palette once more, in dashes
        axes.plot(t, values, color=colour, ls="--" if covered or i >= len(COLOURS) else "-")
        labels.append((_last(values), pretty(name), colour))
        if name in wanted:
            axes.plot(t, np.asarray(wanted[name]), color="#000000", lw=1.0, ls=(0, (4, 3)))
    if wanted:
        labels.append((_last(np.asarray(next(iter(wanted.values())))), "desired", "#000000"))
    if len(curves) > 1 or wanted:
        _label_ends(axes, labels, span)


def _span(curves: Sequence[np.ndarray]) -> tuple[float, float]:
    every = np.concatenate([np.ravel(x) for x in curves])
    every = every[np.isfinite(every)]
    return (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)


def _same(a: np.ndarray, b: np.ndarray, width: float) -> bool:
    both = np.isfinite(a) & np.isfinite(b)
    return bool(both.any()) and bool(np.max(np.abs(a[both] - b[both])) <= width)


def _last(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else 0.0


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]], span, most: int = 12) -> None:
    """Write names beside the ends of the curves, without overlaps. With very many curves, only the
    first and the last one are named."""
    if len(labels) > most:
        labels = [labels[0], labels[-1]]
    low, high = span
    pad = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    axes.set_ylim(low - pad, high + pad)
    order = sorted(range(len(labels)), key=lambda i: labels[i][0])
    wished = [(labels[i][0] - low + pad) / (high - low + 2 * pad) for i in order]
    gap = min(0.14, 1.0 / max(len(labels) - 1, 1))
    places = _apart(wished, gap)
    for i, height in zip(order, places, strict=True):
        _, text, colour = labels[i]
        axes.text(
            1.01,
            height,
            text,
            color=colour,
            transform=axes.transAxes,
            va="center",
            fontsize=FONT["legend.fontsize"],
        )


def _apart(wished: list[float], gap: float) -> list[float]:
    """Sorted heights between 0 and 1, at least `gap` from each other and otherwise near those
    wished: neighbours that are too close become a block around their mean."""
    blocks: list[list[float]] = []
    centre = lambda block: min(
        max(float(np.mean(block)), 0.5 * gap * (len(block) - 1)), 1 - 0.5 * gap * (len(block) - 1)
    )
    for height in wished:
        blocks.append([height])
        while len(blocks) > 1:
            a, b = blocks[-2:]
            if centre(b) - centre(a) >= 0.5 * gap * (len(a) + len(b)) - 1e-12:
                break
            blocks[-2:] = [a + b]
    start = lambda block: centre(block) - 0.5 * gap * (len(block) - 1)
    return [start(block) + gap * i for block in blocks for i in range(len(block))]


def by_kind(
    quantities: Mapping[str, Any], components: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, np.ndarray]]:
    """Curves, shape (k,) each, by kind and by name: numbered scalars together, and the components
    of an array, shape (k, ...), by the names of `components` or as `name_1`, `name_2`..."""
    kinds: dict[str, dict[str, np.ndarray]] = {}
    for name, quantity in quantities.items():
        values = np.asarray(quantity)
        if values.ndim > 1:
            columns = values.reshape(len(values), -1).T
            parts = components.get(name, [f"{name}_{i + 1}" for i in range(len(columns))])
            kinds[name] = dict(zip(parts, columns, strict=True))
        else:
            kinds.setdefault(stem(name), {})[name] = values
    return kinds


_GREEK = {"alpha": "\N{GREEK SMALL LETTER ALPHA}", "theta": "\N{GREEK SMALL LETTER THETA}"}
#: 0 to 9, lowered: formulas of matplotlib would take as long as the rest of a small figure
_LOWERED = str.maketrans({str(i): chr(0x2080 + i) for i in range(10)})


def pretty(name: str) -> str:
    """A name for legends: Greek letters and indices as such."""
    numbered = re.fullmatch(r"(d_)?(.+)_(\d+)", name)
    if not numbered:
        return name.replace("_", " ")
    rate, base, index = numbered.groups()
    if base in _GREEK and rate:
        return rf"$\dot\{base}_{{{index}}}$"
    if base in _GREEK:
        return _GREEK[base] + index.translate(_LOWERED)
    return f"{'d ' if rate else ''}{base.replace('_', ' ')} {index}"
