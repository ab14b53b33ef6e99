"""Figures and films of a run as files."""

from pathlib import Path

import jax
import numpy as np

from ..control import ComputedTorque, NearRigidQP
from ..mechanics.reference_motion import positions
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


def write_pictures(run: Trajectory, experiment: Experiment, stem: Path) -> list[Path]:
    """Write a figure of the machine at several times, and one of its motion over time."""
    _write_without_window()
    from ..plot import plot_pose, plot_snapshots, plot_states, save_figure

    path = lambda ending: stem.with_name(stem.name + ending)
    written = []
    if has_geometry(run):
        written.append(save_figure(plot_snapshots(run, snapshot_times(run)), path(".png")))
    has_pose = {"position", "euler", "tension"} <= set(run.outputs)
    motion = plot_pose(run) if has_pose else plot_states(run, desired=_desired(run, experiment))
    return [*written, save_figure(motion, path("_motion.png"))]


def has_geometry(run: Trajectory) -> bool:
    """Whether the machine of the run can be drawn."""
    system = run._known_system("pictures")
    return bool(jax.tree.leaves(jax.eval_shape(system.presentation().geometry, run.t[0], run.q[0])))


def write_film(run: Trajectory, path: Path, title: str, speed: float) -> Path:
    """Write a film, or a web page that plays (.html)."""
    _write_without_window()
    return (
        run.animate(path, title=title)
        if path.suffix == ".html"
        else run.animate(path, title=title, speed=speed)
    )


def snapshot_times(run: Trajectory, count: int = 5) -> list[float]:
    """Times [s] for snapshots of a motion: the start, points at equal distances up to the largest
    displacement from the start, and the end."""
    from ..plot.scene import stacked_scenes

    t, q = np.asarray(run.t), np.asarray(run.q)
    system = run._known_system("pictures")
    rows = np.unique(np.linspace(0, len(t) - 1, 400).round().astype(int))
    scene = stacked_scenes(system, t[rows], q[rows])
    points = [x.reshape(len(rows), -1) for x in jax.tree.leaves(scene)]
    position = np.concatenate(points, axis=1) if points else q[rows]
    distance = np.linalg.norm(position - position[0], axis=1)
    farthest = int(np.argmax(distance))
    if not np.isfinite(distance[farthest]) or distance[farthest] == 0:
        return np.linspace(t[0], t[-1], count).tolist()
    levels = np.linspace(0.0, distance[farthest], count - 1)
    chosen = {int(rows[np.argmax(distance[: farthest + 1] >= level)]) for level in levels}
    return [float(t[i]) for i in sorted(chosen | {len(t) - 1})]


def _desired(run: Trajectory, experiment: Experiment) -> dict | None:
    """Reference of a controller of coordinates by coordinate name, None for other controllers."""
    control = experiment.inputs
    if not isinstance(control, ComputedTorque | NearRigidQP) or getattr(control, "point", None):
        return None
    values = np.asarray(positions(control.reference, run.t))
    names = getattr(control, "followed", run._known_system("figures").coordinate_names)
    return dict(zip(names, values.T, strict=False))


def _write_without_window() -> None:
    import matplotlib

    matplotlib.use("Agg")  # writes files without a window system
