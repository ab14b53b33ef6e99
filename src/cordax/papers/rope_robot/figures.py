"""Figures of the study, and a film."""

from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from ...simulation.trajectory import Trajectory
from .experiments import Study

#: end of the film [s]
_FILMED = 8.0


def write(study: Study, folder: Path) -> list[Path]:
    """Write all figures, as PNG files, and a GIF film, in `folder`."""
    import matplotlib

    matplotlib.use("Agg")  # writes files only, so no display is needed
    import matplotlib.pyplot as plt

    from ...plot import animate, plot_snapshots, save_figure
    from ...plot.style import FONT

    with plt.rc_context(FONT):
        written = [
            save_figure(motion(study), folder / "rope_robot_motion.png"),
            save_figure(models(study), folder / "rope_robot_models.png"),
        ]
    run, m = study.run, study.motion
    times = sorted({0.0, 0.5 * (m.slack[0] + m.slack[1]), m.top[1], m.snap[0], float(run.t[-1])})
    shapes = save_figure(plot_snapshots(run, times), folder / "rope_robot_shapes.png")
    film = folder / "rope_robot_slack.gif"
    return [*written, shapes, animate(_until(run, _FILMED), film, title="rope robot")]


def _until(run: Trajectory, end: float) -> Trajectory:
    """Truncate a run at a time [s], for a film."""
    count = int(np.sum(np.asarray(run.t) <= end + 1e-9))
    parts = lambda r: (r.t, r.q, r.outputs)
    return eqx.tree_at(parts, run, jax.tree.map(lambda x: x[:count], parts(run)))


def motion(study: Study):
    """Plot deflection of the platform, tensions and force over time, as in figure 3 of the
    paper."""
    import matplotlib.pyplot as plt

    from ...plot.style import COLOURS

    run = study.run
    t, pose = np.asarray(run.t), np.asarray(run.outputs["pose"])
    moved = pose - pose[0]
    curves = {
        "deflection x, z [mm]": {"x": 1e3 * moved[:, 0], "z": 1e3 * moved[:, 1]},
        "turn [rad]": {"": moved[:, 2]},
        "tension [N]": {
            f"rope {j + 1}": x for j, x in enumerate(np.asarray(run.outputs["tension"]).T)
        },
        "lift [N]": {"": np.asarray(run.u)[:, 1]},
    }
    figure, axes = plt.subplots(4, 1, sharex=True, figsize=(8.0, 8.5), layout="constrained")
    for one, (title, parts) in zip(axes, curves.items(), strict=True):
        for i, (name, values) in enumerate(parts.items()):
            one.plot(t[: len(values)], values, lw=1.0, color=COLOURS[i], label=name)
        one.set_ylabel(title)
        one.axvspan(*study.motion.slack, color="#000000", alpha=0.07, lw=0)
        if len(parts) > 1:
            one.legend(loc="upper right", frameon=False)
    axes[-1].set(xlabel="time [s]", xlim=(0.0, t[-1]))
    figure.suptitle("Two ropes and a platform; grey: no rope pulls")
    return figure


def models(study: Study):
    """Plot errors of reduced models, relative to coordinates and to motion."""
    import matplotlib.pyplot as plt

    from ...plot.style import COLOURS

    r = study.reduced
    names = list(r.errors)
    figure, axes = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
    place = np.arange(len(names))
    labels = ("of coordinates, the paper's", "of their motion", "of the platform's motion")
    for i, label in enumerate(labels):
        values = [100 * r.errors[name][i] for name in names]
        axes.barh(place + 0.27 * (i - 1), values, 0.25, color=COLOURS[i], label=label)
    axes.axvline(100 * r.guess, color=COLOURS[0], lw=1.0, ls="--", label="paper's, never moving")
    axes.set_yticks(place, names)
    axes.invert_yaxis()
    axes.set(xlabel="relative error [%]")
    figure.legend(loc="outside right center", frameon=False)
    figure.suptitle(f"Reduced models, {r.segments} segments per rope")
    return figure
