"""Identification: numbers of a machine from recordings of its motion."""

from .identification import identify
from .parameters import Parameter
from .recording import Recording
from .report import Fit

__all__ = ["Fit", "Parameter", "Recording", "identify"]
