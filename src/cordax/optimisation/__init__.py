"""Optimisation: motions and machines that make a cost small and keep within bounds."""

from .constraint import Constraint
from .optimise import optimise
from .result import Optimum

__all__ = ["Constraint", "Optimum", "optimise"]
