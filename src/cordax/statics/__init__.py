"""Rest positions, vibration modes and stable steps."""

from . import workspace
from ._equilibrium import Equilibrium, equilibrium
from ._modes import Modes, modes
from ._step_limit import StepLimit, step_limit

__all__ = [
    "Equilibrium",
    "Modes",
    "StepLimit",
    "equilibrium",
    "modes",
    "step_limit",
    "workspace",
]
