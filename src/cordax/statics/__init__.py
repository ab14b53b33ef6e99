"""Rest positions, vibration modes and stable steps."""

from .equilibrium import Equilibrium, equilibrium
from .modes import Modes, modes
from .step_limit import StepLimit, step_limit

__all__ = ["Equilibrium", "Modes", "StepLimit", "equilibrium", "modes", "step_limit"]
