"""Identification: numbers of a machine from recordings of its motion."""

from .design import BestExperiment, best_experiment, expected_errors
from .fitting import identify
from .report import Fit

__all__ = ["BestExperiment", "Fit", "best_experiment", "expected_errors", "identify"]
