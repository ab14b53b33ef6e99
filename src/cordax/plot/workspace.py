"""Figures of workspaces."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..mechanics import System
from ..statics.workspace import Workspace
from .scene import bounds, draw, fit_view, scenes_of
from .style import FONT, SCALE


def plot_workspace(workspace: Workspace, robot: System) -> Figure:
    """Plot the robot and the positions inside its workspace, coloured by the largest tension;
    returns the figure."""
    state = robot.default_state()
    scenes = scenes_of(robot, np.zeros(1), np.asarray(state.q)[None], flatten=False)
    inside = np.asarray(workspace.inside)
    places = np.asarray(workspace.positions)[inside]
    tension = np.asarray(workspace.tensions)[inside].max(axis=1, initial=0.0)
    with plt.rc_context(FONT):
        figure = plt.figure(figsize=(6.4, 5.6), layout="constrained")
        axes = figure.add_subplot(projection="3d")
        draw(axes, scenes[0], {}, None)
        fit_view(axes, scenes)
        shown = axes.scatter(*places.T, c=tension, cmap=SCALE, s=16.0, alpha=0.9, linewidths=0.0)
        label = "largest tension at rest [N]"
        figure.colorbar(shown, ax=axes, label=label, shrink=0.6, pad=0.12)  # beside the z axis
        low, high = bounds(scenes)
        every = np.vstack([low, high, np.asarray(workspace.positions)])
        axes.set(xlim=(every[:, 0].min(), every[:, 0].max()))
        axes.set(ylim=(every[:, 1].min(), every[:, 1].max()))
        axes.set_zlim(every[:, 2].min(), every[:, 2].max())  # pyright: ignore
        axes.set_box_aspect(np.ptp(every, axis=0))  # pyright: ignore
        axes.set_title(f"{inside.sum()} of {inside.size} poses, {100 * workspace.share:.0f} %")
    return figure
