"""What a machine is: its state, equations of motion, energies and geometry."""

from .controller import Controller, as_controller
from .lagrangian import LagrangianSystem
from .linearisation import DenseLinearisation, Linearisation
from .scene import Scene
from .state import State
from .system import System

__all__ = [
    "Controller",
    "DenseLinearisation",
    "LagrangianSystem",
    "Linearisation",
    "Scene",
    "State",
    "System",
    "as_controller",
]
