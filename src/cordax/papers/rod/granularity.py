"""Computing time and error of the rod with different numbers of control points and samples."""

from typing import NamedTuple

import numpy as np

from ...math import bsplines
from ..timing import ROUNDS, Timing
from .march import Run, timed
from .paper import CONTROL_POINTS, SAMPLES
from .setup import AMPLITUDE, GRID_STEP, soft_rod

#: measured cells (control points, samples) of the table in the paper: the column of its rod, some
#: cells of the row of its rod, and the finest cell, which is the reference
FINEST = (CONTROL_POINTS[-1], SAMPLES[-1])
CELLS = (*((n, 101) for n in CONTROL_POINTS), (9, 51), (9, 151), (9, 251), FINEST)
#: number of points along the rod and times [s] at which cells are compared with the finest one; at
#: later times the motion is no longer predictable
POINTS = 10
INSTANTS = 0.1 * np.arange(1, 21)
#: steps between stored states: 0.1 s
STRIDE = 125

Cell = tuple[int, int]


class Error(NamedTuple):
    """Deviation from the finest rod: `distances` (instants, points) [m]."""

    distances: np.ndarray

    @property
    def rms(self) -> float:
        return _rms(self.distances)

    @property
    def halves(self) -> tuple[float, float]:
        """Root mean square in the first and in the second half of the time [m]."""
        half = len(self.distances) // 2
        return _rms(self.distances[:half]), _rms(self.distances[half:])

    @property
    def worst_point(self) -> int:
        """Index, from 0, of the point with the largest root mean square deviation over time."""
        return int(np.argmax(np.mean(self.distances**2, axis=0)))


class Granularity(NamedTuple):
    """Results by load and cell: `timings` of 10 s, `errors` of all cells except the finest."""

    timings: dict[str, dict[Cell, Timing]]
    errors: dict[str, dict[Cell, Error]]

    def seconds(self, load: str) -> dict[Cell, float]:
        """Shortest computing time of each cell [s]."""
        return {cell: timing.seconds for cell, timing in self.timings[load].items()}


def granularity() -> Granularity:
    timings, errors = {}, {}
    for load in AMPLITUDE:
        # the load does not change the cost of a step, so ratios are measured for one load only
        runs = _runs(load, ROUNDS if load == "gravity" else 1)
        timings[load] = {cell: run.timing for cell, run in runs.items()}
        exact = _shapes(runs[FINEST])
        errors[load] = {
            cell: Error(np.linalg.norm(_shapes(run) - exact, axis=2))
            for cell, run in runs.items()
            if cell != FINEST
        }
    return Granularity(timings, errors)


def _runs(load: str, rounds: int) -> dict[Cell, Run]:
    given = {cell: (soft_rod(*cell), "forest_ruth_4") for cell in CELLS}
    runs = timed(given, rounds, GRID_STEP, load=load, stride=STRIDE)
    for cell, run in runs.items():
        if run.failed:
            raise RuntimeError(f"{cell}, {load}: failed at {run.failure_time:g} s")
    return runs


def _shapes(run: Run) -> np.ndarray:
    """Positions of `POINTS` points within the rod at the `INSTANTS`, shape (instants, points, 3)
    [m]."""
    n = run.rod.control_points
    places = np.linspace(0, n - 3, POINTS + 2)[1:-1]
    values = bsplines.basis(n, places)[0]
    rows = np.rint(INSTANTS / (STRIDE * GRID_STEP)).astype(int)
    return values @ run.control[rows][:, :, :3]


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))
