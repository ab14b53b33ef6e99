"""Interface of time-stepping methods."""

import abc
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from .._base.results import GOOD
from .._base.types import InputFunction
from ..formulations import Dynamics
from ..mechanics import State


class Inputs(eqx.Module):
    """Inputs of a machine within a step: `u(t, q, v)`, shape (n_u,)."""

    #: whether the inputs are constant within a step and may jump between steps
    held: ClassVar[bool] = True

    def switching_times(self) -> Float[Array, " k"] | None:
        """Instants [s] at which the inputs jump or have a kink; None if these are not known."""
        return None

    @abc.abstractmethod
    def __call__(self, t, q, v) -> Float[Array, " n_u"]: ...


class _Function(Inputs):
    function: Any

    def __call__(self, t, q, v):
        return self.function(t, q, v)


def as_inputs(u: InputFunction) -> Inputs:
    """Convert a function of `(t, q, v)` to `Inputs`, which then count as held; return `Inputs`
    unchanged."""
    return u if isinstance(u, Inputs) else _Function(u)


class Report(NamedTuple):
    """Additional results of a step.

    Multipliers, shape (m,), and inputs, shape (n_u,), at the start of the step, if the method
    computes them; and work counts, one for each name in `Traits.counts`, which include rejected
    substeps and failed steps."""

    multipliers: Float[Array, " m"] | None = None
    inputs: Float[Array, " n_u"] | None = None
    counts: dict[str, Int[Array, ""]] = {}  # noqa: RUF012


class Step(NamedTuple):
    """Result of a step: new state, carry for the next step, result code (a `Result`, 0 if
    successful) and report."""

    state: State
    carry: Any
    code: Int[Array, ""] | int = GOOD
    report: Report = Report()


class Traits(NamedTuple):
    """Properties and requirements of a method."""

    #: order of convergence; None where it depends on settings
    order: int | None
    explicit: bool
    #: largest stable omega*dt on the undamped oscillator; 0: unstable for every step size, inf:
    #: stable for every step size
    oscillator_limit: float = math.inf
    #: whether the method solves the constraints that `Index3` leaves to it: "none" (it cannot),
    #: "allowed" or "needed"
    solves_constraints: str = "none"
    #: whether the method loses order or structure if the acceleration depends on velocity
    needs_separable: bool = False
    #: whether a step needs only the state: `init` returns ()
    self_starting: bool = True
    #: whether a step first evaluates `dynamics.accelerate` at its start, and reports the
    #: multipliers and inputs of that evaluation
    reports_initial_stage: bool = False
    #: whether the step size may change from step to step: the carry does not depend on it
    variable_step: bool = True
    #: whether inputs are evaluated at both ends of a step; a step and its two halves then differ
    #: wherever in the step the inputs jump
    sees_both_ends: bool = True
    #: whether undamped vibrations too fast for the step gain energy in nonlinear motions
    amplifies_unresolved: bool = False
    #: whether the method has its own time loop, `solve`, and no `step`
    owns_time_loop: bool = False
    #: whether one-sided constraints may be open at the start
    allows_open_constraints: bool = False
    #: names of the work counts in its reports
    counts: tuple[str, ...] = ()


class Integrator(eqx.Module):
    """A time-stepping method, independent of the machine. A subclass declares its `traits` and
    implements `step`; the other members have defaults.

    `u(t, q, v)` returns the inputs. A method that evaluates it once, at the start of the step,
    holds the inputs over the step."""

    if TYPE_CHECKING:
        traits: ClassVar[Traits]
    else:
        traits: eqx.AbstractClassVar[Traits]

    def check(self, dynamics: Dynamics) -> None:
        """Raise `ValueError` if this method does not support the machine or its formulation."""
        kept, solves = dynamics.formulation.keeps_constraints, self.traits.solves_constraints
        mine, given = type(self).__name__, type(dynamics.formulation).__name__
        if kept and solves == "none":
            raise ValueError(
                f"integrator: {mine} integrates accelerations, but {given} leaves the constraints "
                "to the integrator; use GeneralisedAlpha or LinearlyImplicitEuler, or Baumgarte as "
                "formulation"
            )
        if solves == "needed" and not kept and dynamics.system.n_constraints:
            raise ValueError(
                f"integrator: {mine} solves the constraints itself; got formulation {given}, "
                "expected Index3"
            )
        if self.traits.needs_separable and not dynamics.system.structure().separable:
            raise ValueError(
                f"integrator: {type(self).__name__} integrates machines whose acceleration "
                f"depends on q and t alone, "
                f"but {type(dynamics.system).__name__} has velocity-dependent forces or a "
                f"configuration-dependent mass "
                "matrix; use RK4, Zhai, LinearlyImplicitEuler, Rosenbrock2 or ImplicitMidpoint"
            )

    def init(self, dynamics: Dynamics, t, dt, state: State, u: InputFunction) -> Any:
        """Carry for the first step, of size `dt`: data needed besides the state; `()` for one-step
        methods."""
        return ()

    @abc.abstractmethod
    def step(self, dynamics: Dynamics, t, dt, state: State, u: InputFunction, carry) -> Step:
        """Advance from `state` at `t` to the state at `t + dt`."""

    def reversible(self, reverse: bool = True) -> "Integrator":
        """The same method with or without support for reverse mode, if the two are compiled
        differently."""
        return self

    def record(self, carry) -> Any:
        """Part of `carry` that is stored with a state, as `record` for `multipliers`."""
        return ()

    def multipliers(self, dynamics: Dynamics, record, t, q, v, u) -> Float[Array, " m"]:
        """Lagrange multipliers at a stored state, shape (m,)."""
        return dynamics.multipliers(t, q, v, u)

    def violation(self, dynamics: Dynamics, record, t, q) -> Float[Array, " m"]:
        """Constraint errors at a stored state, shape (m,)."""
        return dynamics.system.constraint(t, q)

    def events(self, carry) -> Any:
        """Events of the run, if the method detects events; None otherwise."""
        return None

    def growth(self, eigenvalue_dt: complex) -> float:
        """Modulus of the stability function at z = lambda dt, for an eigenvalue lambda of a mode.
        Used by `step_limit`."""
        z = complex(eigenvalue_dt)
        matrix = self.amplification(np.array([[-(abs(z) ** 2)]]), np.array([[2.0 * z.real]]))
        if matrix is None:
            raise NotImplementedError(f"{type(self).__name__} has no scalar stability function")
        return float(np.max(np.abs(np.linalg.eigvals(matrix))))

    def amplification(self, stiffness: np.ndarray, damping: np.ndarray) -> np.ndarray | None:
        """Amplification matrix of one step for q'' = stiffness q + damping q', with time in steps.
        Used by `step_limit`. Both arguments have shape (..., n, n), the matrix (..., k, k).

        It is necessary for methods with different formulas for positions and velocities, in which
        damping couples the modes. None (default) for methods whose `growth` of each mode is
        exact."""
        return None
