"""Inverse-dynamics control of machines with at least as many inputs as degrees of freedom."""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_positive
from .._base.fields import part_field, setting_field
from .._base.precision import float_field
from .._base.results import Result, code_unless
from ..formulations import reduce
from ..formulations.independent import columns
from ..math.linalg import gram, matvec
from ..mechanics import Controller, State
from ..mechanics.reference_motion import reference_field
from ..mechanics.structure import Structure
from .references import Reference
from .tension import TensionDistribution


@runtime_checkable
class Driven(Protocol):
    """Members that the controller requires of its machine, in addition to those of a System: the
    independent coordinates (all coordinates if there are no loops) and the input matrix."""

    @property
    def independent(self) -> tuple[str, ...]: ...
    @property
    def coordinate_names(self) -> tuple[str, ...]: ...
    @property
    def velocity_names(self) -> tuple[str, ...]: ...
    @property
    def n_constraints(self) -> int: ...
    @property
    def n_u(self) -> int: ...
    def prepare(self) -> Any: ...
    def structure(self) -> Structure: ...
    def input_matrix(self, t, q, v) -> Array: ...


def freely_moving(machine: Driven) -> tuple[str, ...]:
    """Return the names of the freely moving coordinates: the independent coordinates if there are
    constraints, otherwise all velocities."""
    return machine.independent if machine.n_constraints else machine.velocity_names


def needed(machine: Driven, t, state: State, acceleration):
    """Return `B` (d, n_u) and `tau` (d,) of the equation `B u = tau` for the inputs u that produce
    an acceleration (d,) of the freely moving coordinates at this state.

    `B = G^T (input matrix)`, `tau = M~ y'' - f~`."""
    q, v = state.q, state.v
    B, idle = machine.input_matrix(t, q, v), jnp.zeros(machine.n_u, q.dtype)
    if not machine.n_constraints:
        M, f, _ = machine.structure().equations(t, q, v, idle)
        return B, matvec(M, acceleration) - f
    at = reduce(machine, t, q, v, idle, machine.independent)  # pyright: ignore
    return gram(at.G, B), matvec(at.mass, acceleration) - at.force


class InverseDynamics(Controller):
    """Inverse-dynamics controller for a machine with at least as many inputs as degrees of freedom.

    The freely moving coordinates y (d,) follow the motion P given by `reference`:

        B u = M~ y'' - f~        y'' = P'' + K_d (P' - y') + K_p (P - y)

    `distribution` selects u among the solutions: `BoundedTension` (a quadratic programme in u),
    `NullSpaceTension` (in the null space of B), `MeanTension` or another one. For any `Mechanism`
    whose freely moving coordinates have velocities of the same names (no quaternions); a machine
    with loops must name its `independent` coordinates. Gains K_p [1/s^2] and K_d [1/s];
    `period` [s] is the time between samples, None for control in every stage of the integrator."""

    machine: Driven = part_field()
    reference: Reference = reference_field()
    distribution: TensionDistribution = part_field()
    K_p: Float[Array, "..."] = float_field(default=0.0)
    K_d: Float[Array, "..."] = float_field(default=0.0)
    period: float | None = setting_field(default=None)  # pyright: ignore[reportIncompatibleVariableOverride]

    def __check_init__(self):
        require_positive("K_p", self.K_p, zero_allowed=True)
        require_positive("K_d", self.K_d, zero_allowed=True)
        names = freely_moving(self.machine)
        require(
            len(names) > 0, "machine", "loops alone", "one that names `independent` coordinates"
        )
        other = [name for name in names if name not in self.machine.coordinate_names]
        words = "velocities named like coordinates, or a choice of these as `independent`"
        require(not other, "machine", f"velocities {', '.join(other)}", words)
        n, k = len(names), self.machine.n_u
        require(k >= n, "machine", f"{k} inputs", f"{n} or more, its degrees of freedom")

    @property
    def may_fail(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.distribution.may_fail

    def prepare(self):
        return eqx.tree_at(lambda c: c.machine, self, self.machine.prepare())

    def __call__(self, t, state, memory):
        u = self.inputs(t, state)
        if not self.may_fail:
            return u, memory
        return u, memory, code_unless(jnp.all(jnp.isfinite(u)), Result.QP_INFEASIBLE)

    def failure_reason(self, t, state):
        names = [f"force on {name}" for name in freely_moving(self.machine)]
        found = eqx.filter_jit(type(self)._needed)(self, t, state)
        return self.distribution.failure_reason(*found, names)

    def inputs(self, t, state: State) -> Float[Array, " n_u"]:
        """Commanded inputs (n_u,)."""
        return self.distribution(*self._needed(t, state))

    def _needed(self, t, state: State):
        """Return `B` (d, n_u) and `tau` (d,), see `needed`, at this time and state."""
        names = freely_moving(self.machine)
        place = np.array([self.machine.coordinate_names.index(name) for name in names])
        chosen, _ = columns(self.machine, names)  # pyright: ignore
        position, rate, acceleration = self.reference(t)
        wanted = (
            acceleration
            + self.K_d * (rate - state.v[chosen])
            + self.K_p * (position - state.q[place])
        )
        return needed(self.machine, t, state, wanted)
