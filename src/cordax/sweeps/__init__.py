"""Sweeps: one experiment in thousands of variants, on disk and resumable."""

from ._sweep import sweep
from .measures import Envelope, Measure
from .result import Sweep
from .tables import grid, latin_hypercube

__all__ = ["Envelope", "Measure", "Sweep", "grid", "latin_hypercube", "sweep"]
