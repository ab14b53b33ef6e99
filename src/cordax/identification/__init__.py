"""Identification: estimate parameters of a machine from recordings of its motion."""

from ._identify import identify
from .design import BestExperiment, best_experiment, expected_errors
from .fit import Fit
from .measured_state import MeasuredState, measured_state
from .validation import ChannelError, CrossValidation, Validation, verdict

__all__ = [
    "BestExperiment",
    "ChannelError",
    "CrossValidation",
    "Fit",
    "MeasuredState",
    "Validation",
    "best_experiment",
    "expected_errors",
    "identify",
    "measured_state",
    "verdict",
]
