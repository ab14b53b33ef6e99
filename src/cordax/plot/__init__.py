"""Figures of machines and of quantities over time, and films."""

from .animate import animate
from .fit import plot_fit, plot_residuals
from .lines import plot_states
from .page import write_page
from .pose import plot_pose
from .save import save_figure
from .scene import plot_scene, plot_snapshots
from .validation import plot_validation
from .workspace import plot_workspace

__all__ = [
    "animate",
    "plot_fit",
    "plot_pose",
    "plot_residuals",
    "plot_scene",
    "plot_snapshots",
    "plot_states",
    "plot_validation",
    "plot_workspace",
    "save_figure",
    "write_page",
]
