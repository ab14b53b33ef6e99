"""Runs of the released rod, whole or until they fail."""

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

    `trajectory`: whole, the last good state repeated after a failure; `timing` of the run, with
    compilation if it is not one of several and was the first of its kind."""

    rod: StudiedRod
    trajectory: Trajectory
    timing: Timing

    @property
    def seconds(self) -> float:
        """The least wall time [s]."""
        return self.timing.seconds

    @property
    def failure_time(self) -> float:
        """When the rod had left the machine, or a step had no solution [s]; inf if never."""
        return float(self.trajectory.failure_time)

    @property
    def failed(self) -> bool:
        return bool(np.isfinite(self.failure_time))

    def _good(self, values) -> np.ndarray:
        """What belongs to instants before the failure, of what belongs to stored ones."""
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
    """Release the rod, straight and at rest, under a load of `AMPLITUDE`, for as many times
    `stride` steps as fit into the duration [s]; every `stride`-th step is stored."""
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
    """Runs of rods and schemes, measured in turn; none of them compiles."""
    jobs = {
        key: lambda pair=pair: march(pair[0], pair[1], dt, **options) for key, pair in given.items()
    }
    once = options | {"duration": options.get("stride", 1) * dt}
    for rod, scheme in given.values():
        march(rod, scheme, dt, **once)
    return {key: run._replace(timing=t) for key, (run, t) in in_turn(jobs, rounds).items()}
