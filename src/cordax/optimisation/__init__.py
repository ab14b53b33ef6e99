"""Optimisation of motions and machines: minimise a cost subject to constraints."""

from ._optimise import optimise
from .constraint import Constraint
from .optimum import Optimum

__all__ = ["Constraint", "Optimum", "optimise"]
