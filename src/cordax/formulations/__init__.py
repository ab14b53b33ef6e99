"""How accelerations and multipliers follow from a machine."""

from .base import Dynamics, Formulation
from .constrained import Constrained
from .index1 import Baumgarte, UdwadiaKalaba
from .index3 import Index3
from .minimal import Minimal
from .penalty import Penalty
from .projected import Projected

__all__ = [
    "Baumgarte",
    "Constrained",
    "Dynamics",
    "Formulation",
    "Index3",
    "Minimal",
    "Penalty",
    "Projected",
    "UdwadiaKalaba",
]
