"""A selection of the coordinates that moves freely; the constraints give the rest."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._checks import require
from .._fields import count_field, names_field
from .._results import Code, code_unless
from ..math.linalg import gram, matmul, matvec, solve, vecmat
from ..math.linalg import inverse as inverse_of
from ..math.materialise import materialise
from ..mechanics import State, System
from .constrained import Constrained


class Reduced(NamedTuple):
    """The equations in independent accelerations y'': `a = G y'' + g` and `M~ y'' = f~`, with
    `mass` M~ = G^T M G (d, d) and `force` f~ = G^T (f - M g) (d,). What the full equations were:
    `M`, `f`, and the inverse (m, m) of the Jacobian's dependent columns."""

    G: Float[Array, "n d"]
    g: Float[Array, " n"]
    mass: Float[Array, "d d"]
    force: Float[Array, " d"]
    M: Float[Array, "n n"]
    f: Float[Array, " n"]
    inverse: Float[Array, "m m"]


def columns(system: System, independent) -> tuple[np.ndarray, np.ndarray]:
    """Where independent and dependent velocities stand, shapes (d,) and (m,)."""
    names = system.velocity_names
    for name in independent:
        require(name in names, "independent", repr(name), "some of " + ", ".join(names))
    chosen = np.array([names.index(name) for name in independent], int)
    return chosen, np.setdiff1d(np.arange(len(names)), chosen)


def reduce(system: System, t, q, v, u, independent) -> Reduced:
    """The equations of motion in the named velocities, at a state that satisfies the
    constraints."""
    chosen, rest = columns(system, independent)
    M, f, terms = system.equations(t, q, v, u)
    inverse = materialise(inverse_of(terms.jacobian[:, rest]))
    G, g = _assembled(terms, inverse, chosen, rest)
    MG = materialise(matmul(M, G))
    mass = gram(G, MG)
    force = vecmat(f - matvec(M, g), G)
    return materialise(Reduced(G, g, mass, force, M, f, inverse))


def _assembled(terms, inverse, chosen, rest):
    """G (n, d) and g (n,) with rows in the order of velocities."""
    order = np.argsort(np.concatenate([chosen, rest]))
    J = terms.jacobian[:, chosen]
    eye = jnp.eye(len(chosen), dtype=J.dtype)
    G = jnp.concatenate([eye, -matmul(inverse, J)])[order]
    g = jnp.concatenate([jnp.zeros(len(chosen), J.dtype), -matvec(inverse, terms.bias)])[order]
    return materialise((G, g))


class IndependentCoordinates(Constrained):
    """Accelerations of a selection of coordinates, `M~ y'' = f~` with `a = G y'' + g`, and loops
    closed exactly at every evaluation: dependent coordinates follow by Newton's method from the
    integrated ones, dependent velocities from the constraints. There is no drift and nothing to
    stabilise, and the mass matrix may be singular where M~ is not.

    `independent`: names of velocities, as many as there are degrees of freedom; by default those
    the machine names (`Mechanism.independent`). Where the selection stops being one (a dead
    centre), the run ends with a state that is not finite. `iterations` of Newton's method: two
    reach round-off from the error of a stage."""

    independent: tuple[str, ...] = names_field(default=())
    iterations: int = count_field(default=2)

    def names(self, system: System) -> tuple[str, ...]:
        """The selection for a machine."""
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
        """Coordinates and velocities with dependent ones from the constraints."""
        names = self.names(system)
        chosen, rest = columns(system, names)
        order = np.argsort(np.concatenate([chosen, rest]))
        still = jnp.zeros(len(chosen), q.dtype)

        def improve(q, _):
            terms = system.constraint_terms(t, q, v)
            step = -matvec(inverse_of(terms.jacobian[:, rest]), terms.phi)
            return system.retract(q, jnp.concatenate([still, step])[order]), None

        q = lax.scan(improve, q, length=self.iterations)[0]
        terms = system.constraint_terms(t, q, v)
        inverse = materialise(inverse_of(terms.jacobian[:, rest]))
        # rate = J v + dPhi/dt at the old v; the dependent part takes what is left
        step = -matvec(inverse, terms.rate)
        return q, v + jnp.concatenate([still, step])[order]

    def acceleration(self, system, t, q, v, u):
        q, v = materialise(self.closed(system, t, q, v))
        names = self.names(system)
        _, rest = columns(system, names)
        at = reduce(system, t, q, v, u, names)
        a = matvec(at.G, solve(*materialise((at.mass, at.force)), spd=True)) + at.g
        # M a - f = -J^T lambda in the dependent rows
        left = (at.f - matvec(at.M, a))[rest]
        return a, vecmat(left, at.inverse)

    def project(self, system, t, state):
        closed = State(*self.closed(system, t, state.q, state.v))
        finite = lambda s: jnp.all(jnp.isfinite(s.q)) & jnp.all(jnp.isfinite(s.v))
        # from a finite state, only a selection that is none leads to a NaN
        found = finite(closed) | ~finite(state)
        return closed, code_unless(found, Code.SINGULAR_CONSTRAINTS)

    def enter(self, system, t, state):
        return State(*self.closed(system, t, state.q, state.v))
