"""Pictures of a run, as files."""

from pathlib import Path

import jax
import numpy as np

from ..control import ComputedTorque, NearRigidQP
from ..mechanics.reference_motion import positions
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


def write_pictures(run: Trajectory, experiment: Experiment, stem: Path) -> list[Path]:
    """The machine at several instants, and what shows its motion against time."""
    _no_window()
    from ..plot import plot_pose, plot_snapshots, plot_states, save_figure

    beside = lambda end: stem.with_name(stem.name + end)
    drawn = [save_figure(plot_snapshots(run, instants(run)), beside(".png"))] if seen(run) else []
    on_cables = {"position", "euler", "tension"} <= set(run.outputs)
    wanted = _wanted(run, experiment)
    return [
        *drawn,
        save_figure(
            plot_pose(run) if on_cables else plot_states(run, desired=wanted),
            beside("_motion.png"),
        ),
    ]


def seen(run: Trajectory) -> bool:
    """Whether the machine says what it looks like."""
    system = run._known_system("pictures")
    return bool(jax.tree.leaves(jax.eval_shape(system.geometry, run.t[0], run.q[0])))


def write_film(run: Trajectory, path: Path, title: str, speed: float) -> Path:
    """A film, or a page that plays."""
    _no_window()
    return (
        run.animate(path, title=title)
        if path.suffix == ".html"
        else run.animate(path, title=title, speed=speed)
    )


def instants(run: Trajectory, count: int = 5) -> list[float]:
    """Instants [s] that show a motion: its start, the way to where the machine is farthest from
    there in equal parts, and the end."""
    from ..plot.scene import stacked_scenes

    t, q = np.asarray(run.t), np.asarray(run.q)
    system = run._known_system("pictures")
    rows = np.unique(np.linspace(0, len(t) - 1, 400).round().astype(int))
    scene = stacked_scenes(system, t[rows], q[rows])
    points = [x.reshape(len(rows), -1) for x in jax.tree.leaves(scene)]
    place = np.concatenate(points, axis=1) if points else q[rows]
    far = np.linalg.norm(place - place[0], axis=1)
    top = int(np.argmax(far))
    if not np.isfinite(far[top]) or far[top] == 0:
        return np.linspace(t[0], t[-1], count).tolist()
    shares = np.linspace(0.0, far[top], count - 1)
    chosen = {int(rows[np.argmax(far[: top + 1] >= share)]) for share in shares}
    return [float(t[i]) for i in sorted(chosen | {len(t) - 1})]


def _wanted(run: Trajectory, experiment: Experiment) -> dict | None:
    """What a controller of coordinates was to follow, by name."""
    control = experiment.inputs
    if not isinstance(control, ComputedTorque | NearRigidQP) or getattr(control, "point", None):
        return None
    values = np.asarray(positions(control.reference, run.t))
    names = getattr(control, "followed", run._known_system("figures").coordinate_names)
    return dict(zip(names, values.T, strict=False))


def _no_window() -> None:
    import matplotlib

    matplotlib.use("Agg")  # files only: no window system needed
