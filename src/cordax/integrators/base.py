"""The contract of a one-step method."""

import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from .._base.results import GOOD
from .._base.types import InputFunction
from ..formulations import Dynamics
from ..mechanics import State


class Step(NamedTuple):
    """What a step returns: the new state, what the next step needs, how it ended (a `Result`, 0:
    well), and what of its start the method computes anyway: multipliers, shape (m,), and inputs,
    shape (n_u,)."""

    state: State
    carry: Any
    code: Int[Array, ""] | int = GOOD
    multipliers: Float[Array, " m"] | None = None
    inputs: Float[Array, " n_u"] | None = None


class Integrator(eqx.Module):
    """One step of a method. Knows nothing of machines.

    `u(t, q, v)` gives the inputs; a method that evaluates it once, at the start of the step, treats
    them as held."""

    order: ClassVar[int]
    explicit: ClassVar[bool]
    #: largest stable omega*dt on the undamped oscillator; 0: unstable at every step, inf: at none
    oscillator_limit: ClassVar[float] = math.inf
    #: "none", "allowed" or "needed": whether the method solves constraints kept by `Index3`
    solves_constraints: ClassVar[str] = "none"
    #: whether order or structure is lost where the acceleration depends on velocity
    needs_separable: ClassVar[bool] = False
    #: whether a step needs nothing but the state: `init` returns ()
    self_starting: ClassVar[bool] = True
    #: whether a step begins with `dynamics.accelerate` at its start, and returns the multipliers
    #: and inputs of that
    begins_at_start: ClassVar[bool] = False
    #: whether each step may be of another size: what is carried does not belong to one size
    new_steps: ClassVar[bool] = True
    #: whether inputs are evaluated at both ends of a step: a step and its halves then differ
    #: wherever the inputs jump
    sees_both_ends: ClassVar[bool] = True
    #: whether undamped vibrations that the step does not resolve gain energy in nonlinear motions
    feeds_undamped: ClassVar[bool] = False
    #: whether the method has a time loop of its own, `solve`, in place of steps
    whole_runs: ClassVar[bool] = False
    #: whether one-sided constraints may be open at the start
    lets_go: ClassVar[bool] = False

    def check(self, dynamics: Dynamics) -> None:
        """Raise `ValueError`, naming both, if this method does not fit the machine."""
        kept = dynamics.formulation.keeps_constraints
        mine, given = type(self).__name__, type(dynamics.formulation).__name__
        if kept and self.solves_constraints == "none":
            raise ValueError(
                f"integrator: {mine} integrates accelerations, but {given} leaves the constraints "
                "to the integrator; use GeneralisedAlpha or LinearlyImplicitEuler, or Baumgarte as "
                "formulation"
            )
        if self.solves_constraints == "needed" and not kept and dynamics.system.n_constraints:
            raise ValueError(
                f"integrator: {mine} solves the constraints itself; got formulation {given}, "
                "expected Index3"
            )
        if self.needs_separable and not dynamics.system.separable:
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

    def step(self, dynamics: Dynamics, t, dt, state: State, u: InputFunction, carry) -> Step:
        """From `state` at `t` to the state at `t + dt`."""
        raise NotImplementedError

    def reversible(self) -> "Integrator":
        """The same for reverse mode, where that is another program."""
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

    def statistics(self, carry) -> dict[str, Int[Array, ""]]:
        """How much work a run was, by name, where the method counts it."""
        return {}

    def counting(self, carry, failed) -> Any:
        """`carry`, with the work of a step that failed and returned `failed` counted."""
        return carry

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
