"""Figures as files."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .._base.atomic_files import replacing


def save_figure(figure: Figure, path: str | Path, dpi: float = 150.0) -> Path:
    """Write a figure (PNG, PDF, SVG by suffix) and close it. Returns the path."""
    path = Path(path)
    with replacing(path) as part:
        # labels of axes in space may reach beyond the figure
        in_space = any(hasattr(axes, "zaxis") for axes in figure.axes)
        figure.savefig(part, dpi=dpi, bbox_inches="tight" if in_space else None)
    plt.close(figure)
    return path
