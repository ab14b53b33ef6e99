"""The contract of a one-step method."""

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
from jaxtyping import Array, Bool

from .._types import InputFunction
from ..formulations import Dynamics
from ..mechanics import State


class Step(NamedTuple):
    """What a step returns: the new state, what the next step needs, and whether its equations were
    solved."""

    state: State
    carry: Any
    solved: Bool[Array, ""] | bool = True


class Integrator(eqx.Module):
    """One step of a method. Knows nothing of machines.

    `u(t, q, v)` gives the inputs; a method that evaluates it once, at the start of the step, treats
    them as held."""

    order: ClassVar[int]
    explicit: ClassVar[bool]
    #: largest stable omega*dt on the undamped oscillator; 0: unstable at every step, inf: at none
    oscillator_limit: ClassVar[float] = math.inf
    #: whether order or structure is lost where the acceleration depends on velocity
    needs_separable: ClassVar[bool] = False

    def check(self, dynamics: Dynamics) -> None:
        """Raise `ValueError`, naming both, if this method does not fit the machine."""
        if self.needs_separable and not dynamics.system.separable:
            raise ValueError(
                f"integrator: {type(self).__name__} integrates machines whose acceleration "
                f"depends on q and t alone, "
                f"but {type(dynamics.system).__name__} has velocity-dependent forces or a "
                f"configuration-dependent mass "
                "matrix; use RK4, Zhai, LinearlyImplicitEuler, Rosenbrock2 or ImplicitMidpoint"
            )

    def init(self, dynamics: Dynamics, t, state: State, u: InputFunction) -> Any:
        """What the first step needs besides the state; `()` for one-step methods."""
        return ()

    def step(self, dynamics: Dynamics, t, dt, state: State, u: InputFunction, carry) -> Step:
        """From `state` at `t` to the state at `t + dt`."""
        raise NotImplementedError

    def growth(self, eigenvalue_dt: complex) -> float:
        """Modulus of the stability function at z = lambda dt of a mode; used by `step_limit`."""
        raise NotImplementedError(f"{type(self).__name__} has no scalar stability function")
