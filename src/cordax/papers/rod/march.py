"""Runs of the released rod, to their end or until they fail."""

import time
from typing import NamedTuple

import jax
import numpy as np

from ...simulation._simulate import simulate
from ...simulation.trajectory import Trajectory
from ..timing import Timing, in_turn
from .setup import DURATION, StudiedRod, push_of


class Run(NamedTuple):
    """A run of a scheme from the straight rod at rest, to its end or its failure.

    `trajectory`: has its full length; after a failure, the last good state is repeated. `timing`:
    wall times of the run; they include compilation if the run was measured once and was the first
    of its kind."""

    rod: StudiedRod
    trajectory: Trajectory
    timing: Timing

    @property
    def seconds(self) -> float:
        """Shortest wall time [s]."""
        return self.timing.seconds

    @property
    def failure_time(self) -> float:
        """Time at which the rod had left the valid range or a step did not converge [s]; inf if
        neither happened."""
        return float(self.trajectory.failure_time)

    @property
    def failed(self) -> bool:
        return bool(np.isfinite(self.failure_time))

    def _good(self, values) -> np.ndarray:
        """Select the values at stored instants before the failure."""
        return np.asarray(values)[np.asarray(self.trajectory.t) < self.failure_time - 1e-9]

    @property
    def t(self) -> np.ndarray:
        """Stored instants [s], shape (k,)."""
        return self._good(self.trajectory.t)

    @property
    def control(self) -> np.ndarray:
        """Control points x, y, z, theta, shape (k, n, 4)."""
        return self._good(self.trajectory["control"])

    @property
    def energy(self) -> np.ndarray:
        """Total energy [J], shape (k,)."""
        return self._good(self.trajectory.energy()["total"])

    @property
    def kinetic(self) -> np.ndarray:
        """Kinetic energy [J], shape (k,)."""
        return self._good(self.trajectory.energy()["kinetic"])


def march(
    rod: StudiedRod,
    scheme: str,
    dt: float,
    duration: float = DURATION,
    load: str = "gravity",
    stride: int = 1,
) -> Run:
    """Release the rod, straight and at rest, under one of the loads in `AMPLITUDE`. The duration
    [s] is rounded to a multiple of `stride` steps; every `stride`-th step is stored."""
    whole = round(duration / (stride * dt)) * stride * dt
    begin = time.perf_counter()
    trajectory = simulate(
        rod,
        dt=dt,
        duration=whole,
        integrator=scheme,
        control=push_of(load),
        save_every=stride,
        throw=False,
    )
    jax.block_until_ready(trajectory.q)
    return Run(rod, trajectory, Timing((time.perf_counter() - begin,)))


def timed(given: dict, rounds: int, dt: float, **options) -> dict:
    """Run rods and schemes and measure them alternately. They are compiled beforehand."""
    jobs = {
        key: lambda pair=pair: march(pair[0], pair[1], dt, **options) for key, pair in given.items()
    }
    once = options | {"duration": options.get("stride", 1) * dt}
    for rod, scheme in given.values():
        march(rod, scheme, dt, **once)
    return {key: run._replace(timing=t) for key, (run, t) in in_turn(jobs, rounds).items()}
