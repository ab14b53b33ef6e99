"""Motions restricted to a linear subspace, by Galerkin's method."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require, require_shape
from .._base.precision import float_field
from ..mechanics import State, Structure
from ..mechanics.constraints import ConstraintTerms
from ..mechanics.wrapper import Delegate


class Subspace(Delegate):
    """A machine with `q = origin + basis y`: its equations, exact, projected on the columns of
    `basis` (n, r); coordinates y (r,). For machines without quaternions.

    Inputs, constraints, outputs and energies are those of `inner` at the lifted state. Mass matrix
    and force cost what they cost there: such a model pays through larger steps."""

    basis: Float[Array, "n r"] = float_field()
    origin: Float[Array, " n"] = float_field()

    def __check_init__(self):
        n = self.inner.n_q
        require(n == self.inner.n_v, "inner", type(self.inner).__name__, "as many q as v")
        require(self.basis.ndim == 2, "basis", f"shape {self.basis.shape}", f"shape ({n}, r)")
        require_shape("basis", self.basis, (n, self.basis.shape[1]))
        require_shape("origin", self.origin, (n,))

    @property
    def coordinate_names(self):
        return tuple(f"y_{i + 1}" for i in range(self.basis.shape[1]))

    @property
    def velocity_names(self):
        return self.coordinate_names

    def lift(self, state: State) -> State:
        """The state of the full machine."""
        return State(self._q(state.q), self._v(state.v))

    def project(self, state: State) -> State:
        """The nearest state of the reduced machine (least squares of coordinates)."""
        fit = lambda x: jnp.linalg.lstsq(self.basis, x)[0]
        return State(fit(state.q - self.origin), fit(state.v))

    def _q(self, y):
        return self.origin + self.basis @ y

    def _v(self, y):
        return self.basis @ y

    def mass_matrix(self, q):
        at = self._q(q)
        momentum = self.inner.structure().momentum
        columns = jax.vmap(lambda b: momentum(at, b), in_axes=1, out_axes=1)
        return self.basis.T @ columns(self.basis)

    def force(self, t, q, v, u):
        return self.basis.T @ self.inner.force(t, self._q(q), self._v(v), u)

    def held(self, t, q, v):
        return self.inner.held(t, self._q(q), self._v(v))

    def held_force(self, t, q, held):
        return self.basis.T @ self.inner.held_force(t, self._q(q), held)

    def constraint(self, t, q):
        return self.inner.constraint(t, self._q(q))

    @property
    def n_constraints(self):
        return self.inner.n_constraints

    def multiplier_forces(self, t, q, multipliers):
        return self.inner.multiplier_forces(t, self._q(q), multipliers)

    def energies(self, t, q, v):
        return self.inner.energies(t, self._q(q), self._v(v))

    def potential_energy(self, t, q):
        return self.inner.potential_energy(t, self._q(q))

    def valid(self, t, q, v):
        return self.inner.valid(t, self._q(q), self._v(v))

    def outputs(self, t, q, v, u, multipliers):
        return self.inner.outputs(t, self._q(q), self._v(v), u, multipliers)

    def presentation(self):
        shown, at, rate = super().presentation(), self._q, self._v
        alarms, reason = shown.alarms, shown.invalid_reason
        return replace(
            shown,
            plots=self.coordinate_names,
            geometry=lambda t, q: shown.geometry(t, at(q)),
            alarms=alarms and (lambda t, q, v, *rest: alarms(t, at(q), rate(v), *rest)),
            invalid_reason=lambda t, q, v: reason(t, at(q), rate(v)),
        )

    def default_state(self):
        return self.project(self.inner.default_state())

    def structure(self) -> "SubspaceStructure":
        return SubspaceStructure(self)


class SubspaceStructure(Structure):
    """Structure of `Subspace`: that of the full machine, projected."""

    system: Subspace

    def momentum(self, q, v):
        model = self.system
        inner = model.inner.structure()
        return model.basis.T @ inner.momentum(model._q(q), model._v(v))

    def constraint_terms(self, t, q, v):
        model = self.system
        inner = model.inner.structure()
        phi, J, rate, bias = inner.constraint_terms(t, model._q(q), model._v(v))
        return ConstraintTerms(phi, J @ model.basis, rate, bias)
