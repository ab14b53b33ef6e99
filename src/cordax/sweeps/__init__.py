"""Sweeps: one experiment in thousands of variants, on disk and resumable."""

from .measures import Envelope, Measure
from .result import Sweep
from .sweep import sweep
from .variations import grid, latin_hypercube

__all__ = ["Envelope", "Measure", "Sweep", "grid", "latin_hypercube", "sweep"]
