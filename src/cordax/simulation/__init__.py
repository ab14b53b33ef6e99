"""Runs: experiments, the time loop, trajectories, batches and environments."""

from typing import TYPE_CHECKING

from .._base.lazy_imports import later

if TYPE_CHECKING:
    from ._simulate import SimulationError, simulate, simulate_steps
    from .batch import simulate_batch
    from .environment import Environment
    from .experiment import Experiment
    from .machine_check import check_machine
    from .trajectory import Trajectory

__getattr__, __dir__ = later(
    __name__,
    {
        "_simulate": "SimulationError simulate simulate_steps",
        "batch": "simulate_batch",
        "environment": "Environment",
        "experiment": "Experiment",
        "machine_check": "check_machine",
        "trajectory": "Trajectory",
        "gymnasium": "",
    },
)

__all__ = [
    "Environment",
    "Experiment",
    "SimulationError",
    "Trajectory",
    "check_machine",
    "simulate",
    "simulate_batch",
    "simulate_steps",
]
