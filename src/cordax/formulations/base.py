"""The contract between machines and integrators."""

import abc
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Int

from .._base.fields import part_field
from .._base.results import GOOD
from ..mechanics import Linearisation, State, System


class Formulation(eqx.Module):
    """A method to compute accelerations and multipliers of a System. It depends neither on the
    machine nor on the integrator."""

    #: whether the constraints are left to the integrator as they stand
    keeps_constraints: ClassVar[bool] = False
    #: whether `project` moves a state after each step
    projects: ClassVar[bool] = False
    #: whether rows of the constraints can be switched off (a field `active`)
    switches_rows: ClassVar[bool] = False

    @abc.abstractmethod
    def check(self, system: System) -> None:
        """Raise `ValueError` if the system cannot be treated this way."""

    @abc.abstractmethod
    def acceleration(
        self, system: System, t, q, v, u
    ) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
        """Acceleration, shape (n_v,), and multipliers, shape (m,)."""

    @abc.abstractmethod
    def linearise(self, system: System, t, q, v, u) -> Linearisation:
        """Equations of motion linearised about a state, for implicit steps."""

    def project(
        self, system: System, t, state: State, t_before, before: State
    ) -> tuple[State, Int[Array, ""] | int]:
        """Bring the state that a step has reached at time `t` onto the constraints, and return it
        with a `Result`; the identity by default. `before`: the state at the start of the step, at
        time `t_before`."""
        return state, GOOD

    def seen(self, system: System, t, state: State) -> State:
        """The state that a controller receives in a stage; the identity by default."""
        return state

    def enter(self, system: System, t, state: State) -> State:
        """The initial state of a phase, after the velocity jump of newly joined bodies; the
        identity by default."""
        return state


class Dynamics(eqx.Module):
    """A machine with its formulation: the equations that an integrator integrates."""

    system: System = part_field()
    formulation: Formulation = part_field()

    def acceleration(self, t, q, v, u):
        """Accelerations (n_v,) at time `t` [s], with inputs `u` (n_u,)."""
        return self.formulation.acceleration(self.system, t, q, v, u)[0]

    def accelerate(self, t, q, v, u):
        """Acceleration and multipliers."""
        return self.formulation.acceleration(self.system, t, q, v, u)

    def multipliers(self, t, q, v, u):
        """Of the constraints (m,)."""
        return self.formulation.acceleration(self.system, t, q, v, u)[1]

    def linearise(self, t, q, v, u) -> Linearisation:
        """The linearised equations of motion, as implicit methods need them."""
        return self.formulation.linearise(self.system, t, q, v, u)

    def retract(self, q, dq):
        """The configuration (n_q,) after one second at constant velocity `dq` (n_v,)."""
        return self.system.retract(q, dq)

    def rate(self, q, v):
        """dq/dt (n_q,)."""
        return self.system.rate(q, v)

    def normalise(self, q):
        """Bring a configuration computed in the embedding space back (unit quaternions); no cost
        without them."""
        return self.system.normalise(q)


def require_regular(system: System) -> None:
    """Raise `ValueError` if massless parts are not constrained."""
    if not system.mass_is_regular and system.n_constraints == 0:
        raise ValueError(
            f"system: {type(system).__name__} says that its mass matrix is singular "
            "(mass_is_regular = False), and it has no constraints that hold its massless parts; "
            "give them mass, or describe them by constraints"
        )
