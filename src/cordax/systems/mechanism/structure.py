"""Accelerations and linear solves of mechanisms."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._jax.materialise import materialise
from ..._jax.trace_memo import once
from ...math.linalg import solve
from ...mechanics.elimination import Eliminated, selection
from ...mechanics.saddle import SaddlePoint, WholeMatrix
from ...mechanics.structure import Structure
from . import dynamics
from . import loops as loop_terms

if TYPE_CHECKING:
    from .mechanism import Mechanism


def _joint_accelerations(machine: "Mechanism", t, q, v, u):
    """Joint accelerations without constraints, and rates of the states of elements."""
    at, n = machine.instant(t, q, v), machine.tree.n_v
    f = machine._force(at, u, MechanismStructure._inertia(machine, at))
    return jnp.concatenate([solve(machine._joint_masses(at), f[:n], spd=True), f[n:]])


class MechanismStructure(Structure):
    """Structure of a `Mechanism`: one pass through the tree computes the mass matrix, the forces
    and the terms of the loops."""

    system: "Mechanism"

    def acceleration(self, t, q, v, u):
        """Acceleration without constraints. The states of elements are not part of the linear
        system."""
        machine, q = self.system.wound(q)
        if not any(e.has_inertia or e.state_names for e in machine.elements):
            return Structure(machine).acceleration(t, q, v, u)
        # reverse mode repeats the evaluation, because storing the hundreds of intermediate arrays
        # of each stage takes longer, both to run and to compile
        return eqx.filter_checkpoint(_joint_accelerations, prevent_cse=False)(machine, t, q, v, u)

    def constraint_terms(self, t, q, v):
        machine, q = self.system.wound(q)
        return machine._loop_terms(t, q, v)

    def equations(self, t, q, v, u):
        machine, q = self.system.wound(q)
        at = machine.instant(t, q, v)
        return materialise(
            (
                machine._with_states(machine._joint_masses(at)),
                machine._force(at, u, self._inertia(machine, at)),
                machine._loop_terms(t, q, v),
            )
        )

    def constrained_acceleration(self, t, q, v, u, stabilisation):
        M, f, terms = self.equations(t, q, v, u)
        alpha, beta, active = stabilisation
        wanted = -terms.bias - 2.0 * alpha * terms.rate - beta**2 * terms.phi
        return self._saddle(M, terms.jacobian, active).solve(f, wanted)

    def saddle(self, t, q, active=None, *, jacobian=None):
        if self.system.mass_is_regular:
            return super().saddle(t, q, active, jacobian=jacobian)
        if jacobian is None:
            rest = jnp.zeros(self.system.n_v, q.dtype)
            jacobian = self.constraint_terms(t, q, rest).jacobian
        return self._saddle(self.system.mass_matrix(q), jacobian, active)

    def _saddle(self, M, J, active) -> SaddlePoint:
        """Saddle-point solver. It eliminates the dependent velocities if `independent` names as
        many velocities as there are degrees of freedom without redundant constraints."""
        machine = self.system
        named = set(machine.independent)
        if active is not None or not named or len(named) != machine.n_v - machine.n_constraints:
            return WholeMatrix(M, J, active)
        rows = machine.tree.speeds(machine.independent, "independent")
        return Eliminated(M, J, selection(self, rows))

    @staticmethod
    def _inertia(machine: "Mechanism", at):
        return once(dynamics.world_inertia, at.motions.poses, machine._constants().masses)

    @property
    def constraint_pattern(self) -> np.ndarray:
        machine = self.system
        rows = loop_terms.pattern(machine.tree, machine._groups)
        return np.pad(rows, ((0, 0), (0, len(machine.state_names))))

    @property
    def mass_pattern(self) -> np.ndarray:
        machine = self.system
        if any(e.has_inertia for e in machine.elements) or machine.state_names:
            return super().mass_pattern
        return machine.tree.pairs.place < len(machine.tree.pairs.first)
