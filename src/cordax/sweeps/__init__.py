"""Sweeps: simulation of thousands of variants of one experiment, stored on disk, resumable."""

from ._sweep import sweep
from .measures import Envelope, Measure
from .result import Sweep
from .tables import grid, latin_hypercube

__all__ = ["Envelope", "Measure", "Sweep", "grid", "latin_hypercube", "sweep"]
