"""Suggest measurements that would separate unidentifiable parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from .._jax.identity import filter_jit
from ..simulation.trajectory import Trajectory
from .problem import Problem

#: relative change below which a quantity gives no information
SHOWS = 1e-4
#: largest number of quantities named in a sentence
NAMED = 3


def what_would_tell(fit, direction: np.ndarray) -> str:
    """Quantities of the same motions that were not recorded and change along a direction in search
    coordinates, as the end of a sentence of advice."""
    recorded = {name for trial in fit.trials for name in trial.recording.names}
    changes = _changes(fit.problem, fit.y, jnp.asarray(direction))
    shares = {}
    for run, tangents in zip(fit.trajectories, changes, strict=True):
        for name, change in tangents.items():
            size = np.sqrt(np.nanmean(np.asarray(run[name]) ** 2))
            moved = np.sqrt(np.nanmean(np.asarray(change) ** 2))
            if name not in recorded and size > 0 and np.isfinite(moved):
                shares[name] = max(shares.get(name, 0.0), moved / size)
    telling = sorted((n for n, x in shares.items() if x > SHOWS), key=shares.__getitem__)[::-1]
    if not telling:
        return "nothing else in this motion would show it: excite the machine otherwise"
    return f"recording {' or '.join(telling[:NAMED])} would"


@filter_jit
def _changes(problem: Problem, y, direction):
    def look(y):
        return tuple(_all(run) for run in problem.run(y))

    return jax.jvp(look, (y,), (direction,))[1]


def _all(run: Trajectory) -> dict:
    system = run.system
    assert system is not None
    known = {*system.input_names}  # inputs are given, not measured
    return {name: run[name] for name in run.names if name not in known}
