"""Independent coordinates; the constraints determine the others."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import require
from .._base.fields import count_field, names_field
from .._base.results import Result, code_unless
from .._jax.gradient_guard import frozen
from .._jax.materialise import materialise
from .._jax.program_cache import kept_filter_jit
from ..math.linalg import matvec, solve
from ..mechanics import State, System
from ..mechanics.elimination import DependentInverse, Selection, reduction, selection
from .constrained import Constrained

#: part of the velocity, in the norm of the mass matrix, that closing the loops may change in a step
LARGEST_CORRECTION = 0.3


class Reduced(NamedTuple):
    """The equations in independent accelerations y'': `a = G y'' + g` and `M~ y'' = f~`, with
    `mass` M~ = G^T M G (d, d) and `force` f~ = G^T (f - M g) (d,). What the full equations were:
    `M`, `f`, and the `inverse` of the Jacobian's dependent columns."""

    G: Float[Array, "n d"]
    g: Float[Array, " n"]
    mass: Float[Array, "d d"]
    force: Float[Array, " d"]
    M: Float[Array, "n n"]
    f: Float[Array, " n"]
    inverse: DependentInverse


def columns(system: System, independent) -> tuple[np.ndarray, np.ndarray]:
    """Indices of independent and dependent velocities, shapes (d,) and (m,)."""
    names = system.velocity_names
    for name in independent:
        require(name in names, "independent", repr(name), "some of " + ", ".join(names))
    chosen = np.array([names.index(name) for name in independent], int)
    return chosen, np.setdiff1d(np.arange(len(names)), chosen)


def selected(system: System, independent) -> Selection:
    """The named velocities, and the blocks of the others."""
    return selection(system.structure(), columns(system, independent)[0])


def reduce(system: System, t, q, v, u, independent) -> Reduced:
    """The equations of motion in the named velocities, at a state that satisfies the
    constraints."""
    chosen = selected(system, independent)
    M, f, terms = system.structure().equations(t, q, v, u)
    inverse = DependentInverse.of(terms.jacobian, chosen)
    at = reduction(M, terms.jacobian, inverse, f, -terms.bias)
    d = len(chosen.chosen)
    G = chosen.in_order(jnp.eye(d, dtype=f.dtype), at.C)
    g = chosen.in_order(jnp.zeros(d, f.dtype), at.g)
    G, g, mass, force = materialise((G, g, at.mass, at.force))
    return Reduced(G, g, mass, force, M, f, inverse)


class IndependentCoordinates(Constrained):
    """Accelerations of a selection of coordinates, `M~ y'' = f~` with `a = G y'' + g`, and loops
    closed exactly at every evaluation: dependent coordinates follow by Newton's method from the
    integrated ones, dependent velocities from the constraints. There is no drift and nothing to
    stabilise, and the mass matrix may be singular where M~ is not.

    `independent`: names of velocities, as many as there are degrees of freedom; by default those
    the machine names (`Mechanism.independent`). At a dead centre they do not determine the other
    velocities, and a run that reaches or passes one ends (`dead_centre`). `iterations` of Newton's
    method: two reach round-off from the error of a stage."""

    independent: tuple[str, ...] = names_field(default=())
    iterations: int = count_field(default=2)
    projects = True

    def names(self, system: System) -> tuple[str, ...]:
        """Names of the independent velocities of a machine."""
        return self.independent or tuple(getattr(system, "independent", ()))

    def check(self, system):
        names = self.names(system)
        columns(system, names)
        dof = system.n_v - system.n_constraints
        require(
            len(set(names)) == dof,
            "independent",
            names,
            f"{dof} different velocities, {system.n_v} less {system.n_constraints} constraints",
        )

    def closed(self, system: System, t, q, v):
        """The state with dependent coordinates and velocities from the constraints."""
        return self._closed(system, t, q, v)[:2]

    def _closed(self, system: System, t, q, v):
        """The same, and the inverse of the Jacobian's dependent columns there."""
        chosen = selected(system, self.names(system))
        still = jnp.zeros(len(chosen.chosen), q.dtype)

        def improve(q, _):
            terms = system.structure().constraint_terms(t, q, v)
            step = -DependentInverse.of(terms.jacobian, chosen).times(terms.phi)
            return system.retract(q, chosen.in_order(still, step)), None

        q = lax.scan(improve, q, length=self.iterations)[0]
        terms = system.structure().constraint_terms(t, q, v)
        # rate = J v + dPhi/dt at the old v; the dependent part takes what is left
        inverse = DependentInverse.of(terms.jacobian, chosen)
        return q, v + chosen.in_order(still, -inverse.times(terms.rate)), inverse

    def acceleration(self, system, t, q, v, u):
        q, v = materialise(self.closed(system, t, q, v))
        at = reduce(system, t, q, v, u, self.names(system))
        a = matvec(at.G, solve(*materialise((at.mass, at.force)), spd=True)) + at.g
        # M a - f = -J^T lambda in the dependent rows
        left = at.f - matvec(at.M, a)
        return a, at.inverse.transposed(left[at.inverse.selection.dependent])

    def seen(self, system, t, state):
        """Closed, as the accelerations take it: what machine and controller have in common is
        computed once, and its round-off is the same in both."""
        return State(*materialise(self.closed(system, t, state.q, state.v)))

    def project(self, system, t, state, t_before, before):
        q, v, inverse = self._closed(system, t, state.q, state.v)
        closed = State(q, v)
        finite = lambda s: jnp.all(jnp.isfinite(s.q)) & jnp.all(jnp.isfinite(s.v))
        # from a finite state, only a dead centre leads to a NaN
        good = finite(closed) | ~finite(state)
        system, t_before, before, q, v, added = frozen(
            (system, t_before, before, q, v, v - state.v)
        )
        J = system.structure().constraint_terms(t_before, before.q, before.v).jacobian
        passed = inverse.determinant_sign(J) < 0
        # near a dead centre errors of a step are amplified without bound
        thrown = system.kinetic_energy(q, added) > LARGEST_CORRECTION**2 * system.kinetic_energy(
            q, v
        )
        return closed, code_unless(good & ~(passed | thrown), Result.DEAD_CENTRE)

    @kept_filter_jit  # called between runs
    def enter(self, system, t, state):
        return State(*self.closed(system, t, state.q, state.v))
