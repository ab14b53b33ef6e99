"""Styles: colours that colour-blind readers can distinguish, and one style per kind of line."""

from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap

from ..mechanics.units import unit_of

#: Okabe and Ito's palette without its yellow, which is too faint on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: for quantities along a scale (tensions): light to dark, monotonic in brightness; the lightest
#: yellow is left out, which thin lines on white would lose
SCALE = ListedColormap(colormaps["viridis"](np.linspace(0.9, 0.0, 256)), "tension")
#: below the scale: cables that push
PUSHES = "#E6194B"
SCALE = SCALE.with_extremes(under=PUSHES)

FONT = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class LineStyle(NamedTuple):
    """Style of a kind of line; `zigzag` draws straight lines as coils, in the plane only."""

    colour: str
    width: float
    order: int
    zigzag: bool = False


class BodyStyle(NamedTuple):
    """Style of a kind of body: colours of its faces and edges, and the opacity of both."""

    face: str
    edge: str
    opacity: float = 0.92


class PointStyle(NamedTuple):
    colour: str
    size: float
    order: int
    marker: str = "o"


LINES = {
    "bar": LineStyle("#333333", 3.0, 3),
    "tendon": LineStyle("#D55E00", 1.6, 4),
    "cable": LineStyle("#D55E00", 1.6, 4),
    "spring": LineStyle("#8A8A8A", 0.9, 2, zigzag=True),
    "ground": LineStyle("#000000", 4.0, 1),
}
BODIES = {
    "body": BodyStyle("#A9C3D9", "#22303C"),
    "payload": BodyStyle("#E8C48A", "#4A3517"),
    "pulley": BodyStyle("#8C8C8C", "#444444"),
    "drum": BodyStyle("#C9B79C", "#5B4A32"),
    "surface": BodyStyle("#C9DBA0", "#8FA36B", 0.4),
}
#: of all bodies: width of edges [pt], and their place among lines and points of a plane
BODY_EDGE, BODY_ORDER = 0.9, 2.5
#: of all points: width [pt] and colour of their edges
POINT_EDGE = 0.8, "#333333"
#: kinds of bodies that turn on the spot
WHEELS = ("pulley", "drum")
OTHER_BODY = BODIES["body"]
POINTS = {
    "pivot": PointStyle("#FFFFFF", 16.0, 5),
    "ground": PointStyle("#000000", 30.0, 5),
    "exit": PointStyle("#333333", 26.0, 5, "s"),
    "joint": PointStyle("#FFFFFF", 7.0, 6),
}
OTHER_LINE = LineStyle("#0072B2", 1.6, 3)
OTHER_POINT = PointStyle("#0072B2", 16.0, 5)

#: which output of a machine colours which kind of line, where their numbers agree
COLOURED_BY = {"tendon": "tension", "cable": "tension"}


def label(stem: str, system=None) -> str:
    """A name with its unit, as the machine has it: `tension [N]`; `d_` marks a rate."""
    name, unit = stem.removeprefix("d_"), unit_of(system, stem)
    if unit is None:
        return stem.replace("_", " ")
    return f"{name.replace('_', ' ')}{' rate' * (stem != name)} [{unit}]"
