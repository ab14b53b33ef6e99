"""Interface of machines: state, equations of motion, energies and geometry."""

from .controller import Controller, as_controller
from .lagrangian import LagrangianSystem
from .linearisation import DenseLinearisation, Linearisation
from .presentation import Presentation
from .saddle import SaddlePoint
from .scene import Bodies, Scene
from .state import State
from .structure import Structure
from .system import System
from .wrapper import Delegate

__all__ = [
    "Bodies",
    "Controller",
    "Delegate",
    "DenseLinearisation",
    "LagrangianSystem",
    "Linearisation",
    "Presentation",
    "SaddlePoint",
    "Scene",
    "State",
    "Structure",
    "System",
    "as_controller",
]
