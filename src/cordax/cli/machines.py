"""Machines that commands know by name or from files."""

from ..io import experiment_of
from ..simulation.experiment import Experiment


def with_given(experiment: Experiment, **given) -> Experiment:
    """With what a command was given, by name, in the place of the experiment's own."""
    return experiment.replace(**{name: x for name, x in given.items() if x is not None})


__all__ = ["experiment_of", "with_given"]
