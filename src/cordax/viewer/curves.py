"""Curves beside the machine with a marker at the present time."""

from typing import Any

import numpy as np

from ..plot.playback import Played
from ..plot.style import COLOURS

#: instants that a curve shows
_SHOWN = 400
#: curves of a panel that have a dot at the present and a name
_NAMED = 12


class Curves:
    """One chart for each panel of a run: lines for the whole run, dots for the present."""

    def __init__(self, server: Any, run: Played):
        self._charts = []
        for panel in run.panels:
            names = list(panel.curves)
            colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
            lines: list[Any] = [
                {"label": name.replace("_", " "), "stroke": colour, "width": 1.5}
                for name, colour in zip(names, colours, strict=True)
            ]
            dots: list[Any] = [
                {
                    "label": "now",
                    "stroke": colour,
                    "width": 0,
                    "points": {"show": True, "size": 8, "fill": colour},
                }
                for colour in colours[:_NAMED]
            ]
            server.gui.add_markdown(f"**{panel.label}**")
            empty = np.zeros((1 + len(lines) + len(dots), 2))
            chart = server.gui.add_uplot(
                data=tuple(empty),
                series=({"label": "time [s]"}, *lines, *dots),
                scales={"x": {"time": False}},
                axes=({"label": "time [s]", "labelSize": 18, "size": 30}, {"size": 55}),
                legend={"show": False},
                height=170,
            )
            self._charts.append(chart)
        self.replace(run)

    def replace(self, run: Played) -> None:
        """Show another run with the same panels."""
        self._t = run.t
        self._rows = np.unique(np.linspace(0, len(run.t) - 1, _SHOWN).round().astype(int))
        self._y = [np.stack(list(panel.curves.values())) for panel in run.panels]
        for chart, y in zip(self._charts, self._y, strict=True):
            chart.scales = {"x": {"time": False}, "y": {"auto": False, "range": _range(y)}}
        self.show(0)

    def show(self, i: int) -> None:
        """Move the dots to instant `i`."""
        # the present may lie between the instants that are shown
        place = int(np.searchsorted(self._rows, i))
        rows = np.insert(self._rows, place, i)
        for chart, y in zip(self._charts, self._y, strict=True):
            now = np.full((min(len(y), _NAMED), len(rows)), np.nan)
            now[:, place] = y[: len(now), i]
            chart.data = (self._t[rows], *y[:, rows], *now)


def _range(y: np.ndarray) -> tuple[float, float]:
    """Range of the vertical axis, with a margin. It is computed here because the charts cannot
    handle NaN."""
    known = y[np.isfinite(y)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    pad = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return float(low - pad), float(high + pad)
