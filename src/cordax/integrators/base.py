"""The contract of a one-step method."""

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

    #: whether they are constant within a step and may jump between two
    held: ClassVar[bool] = True

    def switching_times(self) -> Float[Array, " k"] | None:
        """Instants [s] at which they are known to jump or bend; None if that is not known."""
        return None

    @abc.abstractmethod
    def __call__(self, t, q, v) -> Float[Array, " n_u"]: ...


class _Function(Inputs):
    function: Any

    def __call__(self, t, q, v):
        return self.function(t, q, v)


def as_inputs(u: InputFunction) -> Inputs:
    """Inputs from themselves or from a function of `(t, q, v)`, which counts as held."""
    return u if isinstance(u, Inputs) else _Function(u)


class Report(NamedTuple):
    """What a step reports besides its end: multipliers, shape (m,), and inputs, shape (n_u,), at
    its start, where the method computes them; and the work of the step, one number for each of
    `Traits.counts`, rejected parts and failed steps included."""

    multipliers: Float[Array, " m"] | None = None
    inputs: Float[Array, " n_u"] | None = None
    counts: dict[str, Int[Array, ""]] = {}  # noqa: RUF012


class Step(NamedTuple):
    """What a step returns: the new state, what the next step needs, how it ended (a `Result`, 0:
    well), and a report."""

    state: State
    carry: Any
    code: Int[Array, ""] | int = GOOD
    report: Report = Report()


class Traits(NamedTuple):
    """What a method is and needs."""

    #: order of convergence; None where it depends on settings
    order: int | None
    explicit: bool
    #: largest stable omega*dt on the undamped oscillator; 0: unstable at every step, inf: at none
    oscillator_limit: float = math.inf
    #: "none", "allowed" or "needed": whether the method solves constraints kept by `Index3`
    solves_constraints: str = "none"
    #: whether order or structure is lost where the acceleration depends on velocity
    needs_separable: bool = False
    #: whether a step needs nothing but the state: `init` returns ()
    self_starting: bool = True
    #: whether a step begins with `dynamics.accelerate` at its start, and reports the multipliers
    #: and inputs of that
    reports_initial_stage: bool = False
    #: whether each step may be of another size: what is carried does not belong to one size
    variable_step: bool = True
    #: whether inputs are evaluated at both ends of a step: a step and its halves then differ
    #: wherever the inputs jump
    sees_both_ends: bool = True
    #: whether undamped vibrations that the step does not resolve gain energy in nonlinear motions
    amplifies_unresolved: bool = False
    #: whether the method has its own time loop, `solve`, and takes no steps
    owns_time_loop: bool = False
    #: whether one-sided constraints may be open at the start
    allows_open_constraints: bool = False
    #: names of the numbers that count its work
    counts: tuple[str, ...] = ()


class Integrator(eqx.Module):
    """One step of a method. Knows nothing of machines. A method declares its `traits` and
    implements `step`; the other members have defaults.

    `u(t, q, v)` gives the inputs; a method that evaluates it once, at the start of the step, treats
    them as held."""

    if TYPE_CHECKING:
        traits: ClassVar[Traits]
    else:
        traits: eqx.AbstractClassVar[Traits]

    def check(self, dynamics: Dynamics) -> None:
        """Raise `ValueError`, naming both, if this method does not fit the machine."""
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
        """What the first step, of size `dt`, needs besides the state; `()` for one-step methods."""
        return ()

    @abc.abstractmethod
    def step(self, dynamics: Dynamics, t, dt, state: State, u: InputFunction, carry) -> Step:
        """From `state` at `t` to the state at `t + dt`."""

    def reversible(self, reverse: bool = True) -> "Integrator":
        """The same method for `reverse` mode or without it, where these are two programs."""
        return self

    def record(self, carry) -> Any:
        """What of `carry` belongs to a stored state, for `multipliers`."""
        return ()

    def multipliers(self, dynamics: Dynamics, record, t, q, v, u) -> Float[Array, " m"]:
        """Of a stored state, shape (m,)."""
        return dynamics.multipliers(t, q, v, u)

    def violation(self, dynamics: Dynamics, record, t, q) -> Float[Array, " m"]:
        """Constraint errors of a stored state, shape (m,)."""
        return dynamics.system.constraint(t, q)

    def events(self, carry) -> Any:
        """What happened between steps, if the method looks for it; None otherwise."""
        return None

    def growth(self, eigenvalue_dt: complex) -> float:
        """Modulus of the stability function at z = lambda dt of a mode; used by `step_limit`."""
        z = complex(eigenvalue_dt)
        matrix = self.amplification(np.array([[-(abs(z) ** 2)]]), np.array([[2.0 * z.real]]))
        if matrix is None:
            raise NotImplementedError(f"{type(self).__name__} has no scalar stability function")
        return float(np.max(np.abs(np.linalg.eigvals(matrix))))

    def amplification(self, stiffness: np.ndarray, damping: np.ndarray) -> np.ndarray | None:
        """Matrix of one step on q'' = stiffness q + damping q' with time in steps; used by
        `step_limit`. Both have shape (..., n, n), the matrix (..., k, k).

        For methods that advance positions and velocities by different formulas: damping couples
        modes in these. None (default) for methods whose `growth` of each mode is exact."""
        return None
