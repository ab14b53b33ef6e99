"""Constraints `Phi(t, q) = 0`: time derivatives, constrained accelerations and projections."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jax.materialise import materialise
from ..math.linalg import gram, smallest_pivot
from .saddle import SaddlePoint, row_weights


class ConstraintTerms(NamedTuple):
    """Constraints at a state: `phi` (m,), `jacobian` Phi_q (m, n_v) in the tangent space, `rate`
    dPhi/dt (m,) and `bias` (m,), the part of d2Phi/dt2 that does not depend on accelerations:

        d2Phi/dt2 = Phi_q a + bias
    """

    phi: Float[Array, " m"]
    jacobian: Float[Array, "m n"]
    rate: Float[Array, " m"]
    bias: Float[Array, " m"]


def constraint_terms(system, t, q, v) -> ConstraintTerms:
    """Constraint terms by automatic differentiation, time dependence included. The bias is the
    derivative of the rate along the motion `dq/dt = system.rate(q, v)` at constant v."""
    one = jnp.ones_like(t)

    def moving(t, q):
        return jax.jvp(system.constraint, (t, q), (one, system.rate(q, v)))

    (phi, rate), (_, bias) = jax.jvp(moving, (t, q), (one, system.rate(q, v)))
    return materialise(ConstraintTerms(phi, constraint_jacobian(system, t, q), rate, bias))


def constraint_jacobian(system, t, q) -> Float[Array, "m n"]:
    """Phi_q in the tangent space, shape (m, n_v)."""
    phi = lambda q: system.constraint(t, q)
    column = lambda e: jax.jvp(phi, (q,), (system.rate(q, e),))[1]
    return jax.vmap(column, out_axes=1)(jnp.eye(system.n_v, dtype=q.dtype))


class Stabilisation(NamedTuple):
    """Baumgarte's decay of constraint errors, `d2Phi/dt2 + 2 alpha dPhi/dt + beta^2 Phi = 0`, and
    the active constraints: `active`, shape (m,), 1 or 0, or None for all."""

    alpha: Float[Array, ""]
    beta: Float[Array, ""]
    active: Float[Array, " m"] | None = None


def constrained_acceleration(structure, t, q, v, u, stabilisation: Stabilisation):
    """Acceleration and multipliers of the index-1 equations:

    M a + Phi_q^T lambda = f,    Phi_q a = -bias - 2 alpha dPhi/dt - beta^2 Phi
    """
    terms = structure.constraint_terms(t, q, v)
    alpha, beta, active = stabilisation
    wanted = -terms.bias - 2.0 * alpha * terms.rate - beta**2 * terms.phi
    saddle = structure.saddle(t, q, active, jacobian=terms.jacobian)
    return saddle.solve(structure.system.total_force(t, q, v, u), wanted)


def rank_margin(system, t, q) -> Float[Array, ""]:
    """Distance of the constraints at a configuration from redundancy: the smallest pivot of
    `Phi_q Phi_q^T` with unit diagonal. 1: independent rows; near 0: redundant rows. If the mass
    matrix may be singular, the margin also decreases to 0 as massless parts become
    unconstrained."""
    rest = jnp.zeros(system.n_v, q.dtype)
    J = system.structure().constraint_terms(t, q, rest).jacobian
    margin = _smallest_relative_pivot(gram(J.T, J.T))
    if system.mass_is_regular:
        return margin
    M = system.mass_matrix(q)
    held = M + gram(J * row_weights(M, J)[:, None], J)
    return jnp.minimum(margin, _smallest_relative_pivot(held))


def _smallest_relative_pivot(A):
    size = jnp.sqrt(jnp.diagonal(A))
    size = jnp.where(size > 0, size, 1.0)
    return smallest_pivot(A / size[:, None] / size)


def velocity_on_constraints(system, t, q, v, saddle: SaddlePoint | None = None):
    """Velocity that satisfies the constraints and is nearest to `v` in the norm of kinetic energy,
    and the impulses of this change: a plastic impact that conserves momentum."""
    structure = system.structure()
    terms = structure.constraint_terms(t, q, v)
    here = structure.saddle(t, q, jacobian=terms.jacobian) if saddle is None else saddle
    change, impulses = here.solve(None, -terms.rate)
    return v + change, impulses


def position_on_constraints(system, t, q, iterations: int):
    """Configuration near `q`, in the norm of the mass matrix, that satisfies the constraints, by
    `iterations` Gauss-Newton steps."""
    rest, structure = jnp.zeros(system.n_v, q.dtype), system.structure()

    def improve(q, _):
        terms = structure.constraint_terms(t, q, rest)
        dq, _ = structure.saddle(t, q, jacobian=terms.jacobian).solve(None, -terms.phi)
        return system.retract(q, dq), None

    return lax.scan(improve, q, length=iterations)[0]


def constraint_force(system, t, q, multipliers):
    """Constraint force `-Phi_q^T lambda`, shape (n_v,), without forming the Jacobian."""
    rest = jnp.zeros(system.n_v, q.dtype)
    _, pull = jax.vjp(lambda dq: system.constraint(t, system.retract(q, dq)), rest)
    return -pull(multipliers)[0]
