"""How accelerations and multipliers follow from a machine."""

from .base import Dynamics, Formulation
from .constrained import Constrained
from .independent import IndependentCoordinates, Reduced, reduce
from .index1 import Baumgarte, UdwadiaKalaba
from .index3 import Index3
from .minimal import Minimal
from .penalty import Penalty
from .projected import Projected

#: by the name that machines use for their default
BY_NAME: dict[str, type[Formulation]] = {
    "minimal": Minimal,
    "baumgarte": Baumgarte,
    "udwadia_kalaba": UdwadiaKalaba,
    "penalty": Penalty,
    "projected": Projected,
    "index_3": Index3,
}

__all__ = [
    "BY_NAME",
    "Baumgarte",
    "Constrained",
    "Dynamics",
    "Formulation",
    "IndependentCoordinates",
    "Index3",
    "Minimal",
    "Penalty",
    "Projected",
    "Reduced",
    "UdwadiaKalaba",
    "reduce",
]
