"""The motion of a body on cables against time."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..simulation.trajectory import Trajectory
from .lines import draw_curves
from .style import FONT, PUSHES


def plot_pose(trajectory: Trajectory) -> Figure:
    """Displacement, rotation, tensions and, where pulleys swivel, their angles against time, of a
    machine that reports `position`, `euler` and `tension`; returns the figure.

    Positions and swivel angles are shown as changes from the start. Where cables let go they are
    marked, and the time from which rigid cables would have to push is shaded."""
    t = np.asarray(trajectory.t)
    panels = _panels({name: np.asarray(x) for name, x in trajectory.outputs.items()})
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(
            len(panels),
            1,
            sharex=True,
            squeeze=False,
            figsize=(7.5, 1.0 + 2.1 * len(panels)),
            layout="constrained",
        )
        for one, (name, curves) in zip(axes[:, 0], panels.items(), strict=True):
            draw_curves(one, t, curves)
            one.set_ylabel(name)
        _mark_slack(axes[list(panels).index("tension [N]"), 0], trajectory)
        axes[-1, 0].set_xlabel("time [s]")
    return figure


def _panels(outputs: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Curves by name, by label of the panel."""
    moved = outputs["position"] - outputs["position"][0]
    small = float(np.max(np.abs(moved))) < 0.1
    columns = lambda names, x: dict(zip(names, x.T, strict=True))
    numbered = lambda word, x: columns([f"{word}_{i + 1}" for i in range(x.shape[1])], x)
    panels = {
        f"displacement [{'mm' if small else 'm'}]": columns(
            ("x", "y", "z"), moved * (1e3 if small else 1.0)
        ),
        "rotation [deg]": columns(("roll", "pitch", "yaw"), np.degrees(outputs["euler"])),
        "tension [N]": numbered("cable", outputs["tension"]),
    }
    if "swivel" in outputs:
        turned = np.degrees(outputs["swivel"] - outputs["swivel"][0])
        panels["swivel, change [deg]"] = numbered("pulley", turned)
    return panels


def _mark_slack(axes, trajectory: Trajectory) -> None:
    first = float(trajectory.warnings.get("cable_pushes", np.inf))
    if np.isfinite(first):
        axes.axvspan(first, float(trajectory.t[-1]), color=PUSHES, alpha=0.08, lw=0)
        axes.text(first, 0.97, " a cable pushes", transform=axes.get_xaxis_transform(), va="top")
    events = trajectory.events
    if events is not None:
        for time in np.unique(np.asarray(events.time)[np.isfinite(np.asarray(events.time))]):
            axes.axvline(float(time), color="#777777", lw=0.8, ls=":")
