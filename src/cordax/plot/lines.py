"""Quantities against time."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._checks import require_known
from ..mechanics.units import stem
from ..trajectory import Trajectory
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
      `overview` by default.
    - `desired`: wanted values by name, shape (k,) each, drawn dashed beside the actual ones.
    """
    system = trajectory._known_system("plot_states")
    names = overview(trajectory) if names is None else names
    for name in names:
        require_known("names", name, trajectory.names)
    for name in desired or {}:
        require_known("desired", name, names)
    groups = by_kind({name: trajectory[name] for name in names}, system.components)
    t = np.asarray(trajectory.t)
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(
            len(groups),
            1,
            sharex=True,
            squeeze=False,
            figsize=(7.5, 1.2 + 2.3 * len(groups)),
            layout="constrained",
        )
        for one, (group, curves) in zip(axes[:, 0], groups.items(), strict=True):
            draw_curves(one, t, curves, desired or {})
            one.set_ylabel(label(group, system))
        axes[-1, 0].set_xlabel("time [s]")
    return figure


def overview(trajectory: Trajectory) -> list[str]:
    """What the machine wants to be shown by, and tensions where it reports some."""
    system = trajectory._known_system("overview")
    names = dict.fromkeys([*system.overview, "tension"])
    return [name for name in names if name in trajectory.names]


def draw_curves(
    axes: Axes, t: np.ndarray, curves: Mapping[str, Any], desired: Mapping[str, Any] | None = None
) -> None:
    """Curves by name over `t` [s], shape (k,), with a legend; wanted ones dashed on top."""
    wanted = {name: x for name, x in (desired or {}).items() if name in curves}
    for i, (name, values) in enumerate(curves.items()):
        # beyond the palette once more, in dashes
        look = {"color": COLOURS[i % len(COLOURS)], "ls": "-" if i < len(COLOURS) else "--"}
        axes.plot(t, np.asarray(values), label=pretty(name), **look)
        if name in wanted:
            axes.plot(t, np.asarray(wanted[name]), color="#000000", lw=1.0, ls=(0, (4, 3)))
    if wanted:
        axes.plot([], [], color="#000000", lw=1.0, ls=(0, (4, 3)), label="desired")
    if len(curves) > 1 or wanted:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


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


_GREEK = ("alpha", "theta")


def pretty(name: str) -> str:
    """A name for legends: Greek letters and indices as such."""
    numbered = re.fullmatch(r"(d_)?(.+)_(\d+)", name)
    if not numbered:
        return name.replace("_", " ")
    rate, base, index = numbered.groups()
    if base in _GREEK:
        return rf"$\dot\{base}_{{{index}}}$" if rate else rf"$\{base}_{{{index}}}$"
    return f"{'d ' if rate else ''}{base.replace('_', ' ')} {index}"
