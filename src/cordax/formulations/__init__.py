"""How accelerations and multipliers follow from a machine."""

from .base import Dynamics, Formulation
from .minimal import Minimal

__all__ = ["Dynamics", "Formulation", "Minimal"]
