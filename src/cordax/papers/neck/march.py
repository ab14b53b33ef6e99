"""Runs of the controlled neck, to their end or until they fail."""

import time
from typing import NamedTuple

import jax
import numpy as np

from ...simulation._simulate import simulate
from ...simulation.trajectory import Trajectory
from ..timing import Timing
from .setup import DURATION, Controlled


class Run(NamedTuple):
    """A run of a scheme at a step `dt` [s] until `duration` [s] or its failure.

    `trajectory`: has whole steps only, so it may end after the duration. `timing`: wall times of
    the run; they include compilation if the run was measured once and was the first of its kind.
    """

    case: Controlled
    trajectory: Trajectory
    dt: float
    duration: float
    timing: Timing

    def series(self, get) -> np.ndarray:
        """`get(trajectory)` along the run up to the duration or the failure, first axis time."""
        return np.asarray(get(self.trajectory))[: self._count]

    @property
    def _count(self) -> int:
        last = min(self.duration, self.failure_time - 0.5 * self.dt)
        return int(np.floor(last / self.dt + 1e-6)) + 1

    @property
    def t(self) -> np.ndarray:
        """Times [s], shape (k,)."""
        return self.dt * np.arange(self._count)

    @property
    def alpha(self) -> np.ndarray:
        """Joint angles [rad], shape (k, n)."""
        return self.series(lambda p: p.q)[:, : self.case.neck.n_joints]

    @property
    def failure_time(self) -> float:
        """Time at which the state left the valid range [s]; inf if it did not within the
        duration."""
        failed = float(self.trajectory.failure_time)
        return failed if failed <= self.duration + 1e-9 else np.inf

    @property
    def error(self) -> float:
        """Largest tracking error [rad]; inf for a run that failed."""
        if np.isfinite(self.failure_time):
            return np.inf
        return float(np.max(np.abs(self.alpha - self.desired)))

    @property
    def desired(self) -> np.ndarray:
        """Desired joint angles [rad], shape (k, n)."""
        reference = self.case.control.reference
        return np.asarray(jax.vmap(reference.position)(jax.numpy.asarray(self.t)))

    @property
    def seconds(self) -> float:
        """Shortest wall time [s]."""
        return self.timing.seconds

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / steps(self.dt, self.duration)


def steps(dt: float, duration: float = DURATION) -> int:
    """Number of steps that a run needs to reach the duration."""
    return int(np.ceil(duration / dt - 1e-6))


def march(
    case: Controlled,
    integrator: str,
    dt: float,
    duration: float = DURATION,
    control=None,
) -> Run:
    """Simulate `case` under its controller, or under `control` if given."""
    law = case.control if control is None else control
    begin = time.perf_counter()
    trajectory = simulate(
        case.neck,
        case.start,
        dt=dt,
        duration=steps(dt, duration) * dt,
        integrator=integrator,
        control=law,
        throw=False,
    )
    jax.block_until_ready(trajectory.q)
    return Run(case, trajectory, dt, duration, Timing((time.perf_counter() - begin,)))


def difference(a: Run, b: Run, grid: float = 2e-3) -> float:
    """Largest difference between the joint angles of two runs [rad], compared at instants [s] on a
    common `grid`; inf if one of the runs failed."""
    if not np.isfinite(a.error) or not np.isfinite(b.error):
        return np.inf
    angles = [run.alpha[:: round(grid / run.dt)] for run in (a, b)]
    return float(np.max(np.abs(angles[0] - angles[1])))
