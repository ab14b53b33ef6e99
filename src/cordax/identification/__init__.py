"""Identification: numbers of a machine from recordings of its motion."""

from .fitting import identify
from .report import Fit

__all__ = ["Fit", "identify"]
