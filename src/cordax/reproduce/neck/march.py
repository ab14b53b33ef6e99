"""Runs at any step with one compiled function per scheme.

The number of stored steps is part of what is compiled, so a study over many step sizes would
compile for each. Here a run advances in pieces of equally many steps; only numbers differ.
"""

import time
from typing import NamedTuple

import jax
import numpy as np

from ...mechanics import State
from ...simulate import simulate
from ...trajectory import Trajectory
from .setup import DURATION, Controlled

#: steps of a piece: the whole motion at 2 ms
STEPS = 3150


class Run(NamedTuple):
    """A run of a scheme at a step `dt` [s] until `duration` [s] or its failure.

    `pieces` are trajectories end to end, the last possibly beyond the duration; `seconds` the wall
    time spent, compilation included if this was the first run of its kind.
    """

    case: Controlled
    pieces: list[Trajectory]
    dt: float
    duration: float
    seconds: float

    def series(self, get) -> np.ndarray:
        """`get(trajectory)` along the run up to the duration or the failure, first axis time."""
        parts = [np.asarray(get(p)) for p in self.pieces]
        whole = np.concatenate([*(x[:-1] for x in parts[:-1]), parts[-1]])
        return whole[: self._count]

    @property
    def _count(self) -> int:
        last = min(self.duration, self.failure_time - 0.5 * self.dt)
        return int(np.floor(last / self.dt + 1e-6)) + 1

    @property
    def t(self) -> np.ndarray:
        """[s], shape (k,)."""
        return self.dt * np.arange(self._count)

    @property
    def alpha(self) -> np.ndarray:
        """Joint angles [rad], shape (k, n)."""
        return self.series(lambda p: p.q)[:, : self.case.neck.n_joints]

    @property
    def failure_time(self) -> float:
        """When the state left the valid range [s]; inf if it did not within the duration."""
        failed = float(self.pieces[-1].failure_time)
        return failed if failed <= self.duration + 1e-9 else np.inf

    @property
    def error(self) -> float:
        """Largest tracking error [rad]; inf for a run that failed."""
        if np.isfinite(self.failure_time):
            return np.inf
        return float(np.max(np.abs(self.alpha - self.desired)))

    @property
    def desired(self) -> np.ndarray:
        """Wanted joint angles [rad], shape (k, n)."""
        reference = self.case.control.reference
        return np.asarray(jax.vmap(reference.position)(jax.numpy.asarray(self.t)))

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / (STEPS * len(self.pieces))


def march(
    case: Controlled,
    integrator: str,
    dt: float,
    duration: float = DURATION,
    control=None,
) -> Run:
    """Simulate `case` under its controller, or under `control` if given."""
    law = case.control if control is None else control
    state, pieces = case.start, []
    begin = time.perf_counter()
    while len(pieces) * STEPS * dt < duration - 1e-9:
        piece = simulate(
            case.neck,
            state,
            dt=dt,
            duration=STEPS * dt,
            integrator=integrator,
            control=law,
            t0=len(pieces) * STEPS * dt,
            throw=False,
        )
        pieces.append(piece)
        state = State(piece.q[-1], piece.v[-1])
        if not bool(piece.succeeded):
            break
    return Run(case, pieces, dt, duration, time.perf_counter() - begin)


def timed(case: Controlled, integrator: str, dt: float, repeats: int = 3) -> Run:
    """The run with its shortest wall time of several, none of which compiles."""
    march(case, integrator, dt, duration=dt)
    runs = [march(case, integrator, dt) for _ in range(repeats)]
    return min(runs, key=lambda run: run.seconds)


def difference(a: Run, b: Run, grid: float = 2e-3) -> float:
    """Largest difference of the joint angles on a common `grid` of instants [s], in rad; inf if
    one of the runs failed."""
    if not np.isfinite(a.error) or not np.isfinite(b.error):
        return np.inf
    angles = [run.alpha[:: round(grid / run.dt)] for run in (a, b)]
    return float(np.max(np.abs(angles[0] - angles[1])))
