"""Arrays over time that an HTML page or the viewer plays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.colors import Normalize

from .._base.checks import require_known
from ..mechanics import Scene
from ..simulation.trajectory import Trajectory
from .lines import by_kind, default_names
from .scene import bounds, line_values, norm_of, stacked_scenes
from .style import WHEELS, label

#: of the largest tension: a cable that carries less is drawn slack
SLACK = 1e-3


class Panel(NamedTuple):
    """Curves of one kind: `label` with its unit, numbers by name, shape (k,) each."""

    label: str
    curves: dict[str, np.ndarray]


class Played(NamedTuple):
    """k instants `t` [s]; `scene`, whose arrays have a leading axis of k; `tension` by kind of
    line, (k, n) each, and its scale `norm`; `trace` (k, n, 2 or 3) [m], the paths of bodies or
    ends; `low` and `high`, corners of the bounding box [m]; `panels`."""

    t: np.ndarray
    scene: Scene
    tension: dict[str, np.ndarray]
    norm: Normalize | None
    trace: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    panels: list[Panel]


def played(trajectory: Trajectory, names: Sequence[str] | None = None, most: int = 1500) -> Played:
    """At most `most` instants of a run. `names` of the curves; default: the machine's
    `Presentation.plots`."""
    system = trajectory._known_one("playing a run")
    every = np.asarray(trajectory.t, dtype=float)
    rows = np.unique(np.linspace(0, len(every) - 1, min(len(every), most)).round().astype(int))
    scene = stacked_scenes(system, every[rows], np.asarray(trajectory.q)[rows])
    tension = {kind: x[rows] for kind, x in line_values(trajectory, scene).items()}
    low, high = bounds([scene])
    names = default_names(trajectory) if names is None else names
    for name in names:
        require_known("names", name, trajectory.names)
    kinds = by_kind({name: trajectory[name] for name in names}, system.presentation().components)
    return Played(
        t=every[rows],
        scene=scene,
        tension=tension,
        norm=norm_of(*tension.values()) if tension else None,
        trace=_traced(scene),
        low=low,
        high=high,
        panels=[
            Panel(label(kind, system), {name: np.asarray(x)[rows] for name, x in curves.items()})
            for kind, curves in kinds.items()
        ],
    )


def at(scene: Scene, i: int) -> Scene:
    """One instant of a scene over time."""
    return jax.tree.map(lambda x: x[i], scene)


def _traced(scene: Scene) -> Any:
    """Positions whose paths are shown: those of bodies, or of ends if there are no bodies."""
    for kind, bodies in scene.bodies.items():
        if kind not in WHEELS:
            return np.asarray(bodies.position)
    return np.asarray(scene.points["end"]) if "end" in scene.points else None
