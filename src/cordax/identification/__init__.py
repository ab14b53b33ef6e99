"""Identification: numbers of a machine from recordings of its motion."""

from ._identify import identify
from .design import BestExperiment, best_experiment, expected_errors
from .fit import Fit

__all__ = ["BestExperiment", "Fit", "best_experiment", "expected_errors", "identify"]
