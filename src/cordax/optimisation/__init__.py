"""Optimisation: motions and machines that make a cost small and keep within bounds."""

from ._optimise import optimise
from .constraint import Constraint
from .optimum import Optimum

__all__ = ["Constraint", "Optimum", "optimise"]
