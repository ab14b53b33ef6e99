"""Time-stepping methods; one module per method."""

from .adaptive import Adaptive
from .base import Integrator
from .convex_contact import ConvexContact
from .diffrax import Diffrax
from .euler_midpoint import ImplicitEuler, ImplicitMidpoint
from .events import Events
from .explicit_euler import ExplicitEuler
from .generalised_alpha import GeneralisedAlpha
from .linearly_implicit_euler import LinearlyImplicitEuler
from .rk4 import RK4
from .rosenbrock import Rosenbrock2
from .splitting import ForestRuth4, StormerVerlet, Suzuki4, SymplecticEuler
from .unilateral import Unilateral
from .zhai import Zhai

#: fixed-step methods for any machine, by name. The command line and `System.default_integrator`
#: use these names.
BY_NAME: dict[str, type[Integrator]] = {
    "explicit_euler": ExplicitEuler,
    "symplectic_euler": SymplecticEuler,
    "stormer_verlet": StormerVerlet,
    "forest_ruth_4": ForestRuth4,
    "suzuki_4": Suzuki4,
    "rk4": RK4,
    "zhai": Zhai,
    "linearly_implicit_euler": LinearlyImplicitEuler,
    "rosenbrock_2": Rosenbrock2,
    "implicit_euler": ImplicitEuler,
    "implicit_midpoint": ImplicitMidpoint,
    "generalised_alpha": GeneralisedAlpha,
}

__all__ = [
    "BY_NAME",
    "RK4",
    "Adaptive",
    "ConvexContact",
    "Diffrax",
    "Events",
    "ExplicitEuler",
    "ForestRuth4",
    "GeneralisedAlpha",
    "ImplicitEuler",
    "ImplicitMidpoint",
    "Integrator",
    "LinearlyImplicitEuler",
    "Rosenbrock2",
    "StormerVerlet",
    "Suzuki4",
    "SymplecticEuler",
    "Unilateral",
    "Zhai",
]
