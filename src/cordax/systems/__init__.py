"""The machines. Each file says what one machine is; nothing else in cordax depends on them."""

from .neck import Bars, Neck, Springs
from .oscillator import Oscillator, Pendulum

__all__ = ["Bars", "Neck", "Oscillator", "Pendulum", "Springs"]
