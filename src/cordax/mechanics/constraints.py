"""Constraints `Phi(t, q) = 0` along a motion, and the accelerations they leave."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..math.complementarity import masked_solve
from ..math.linalg import matmul, matvec, smallest_pivot, solve
from ..math.materialise import materialise


class ConstraintTerms(NamedTuple):
    """Constraints at a state: `phi` (m,), `jacobian` Phi_q (m, n_v) in the tangent space, `rate`
    dPhi/dt (m,) and `bias` (m,), the part of d2Phi/dt2 without accelerations:

        d2Phi/dt2 = Phi_q a + bias
    """

    phi: Float[Array, " m"]
    jacobian: Float[Array, "m n"]
    rate: Float[Array, " m"]
    bias: Float[Array, " m"]


def constraint_terms(system, t, q, v) -> ConstraintTerms:
    """All terms by automatic differentiation, time dependence included: the bias is a second-order
    jvp in (q, t) along the motion with its velocity kept."""
    one = jnp.ones_like(t)

    def along(s):
        # retract(q, s v) has the velocity v at s = 0, and the acceleration of constant v
        return system.constraint(t + s * one, system.retract(q, s * v))

    def moving(s):
        return jax.jvp(along, (s,), (one,))

    zero = jnp.zeros_like(t)
    (phi, rate), (_, bias) = jax.jvp(moving, (zero,), (one,))
    J = jax.jacfwd(lambda dq: system.constraint(t, system.retract(q, dq)))(jnp.zeros_like(v))
    return materialise(ConstraintTerms(phi, J, rate, bias))


class Stabilisation(NamedTuple):
    """The wanted decay of constraint errors, `d2Phi/dt2 + 2 alpha dPhi/dt + beta^2 Phi = 0`
    (Baumgarte), and which rows act: `active`, shape (m,), 1 or 0, or None for all."""

    alpha: Float[Array, ""]
    beta: Float[Array, ""]
    active: Float[Array, " m"] | None = None


def constrained_acceleration(system, t, q, v, u, stabilisation: Stabilisation):
    """Acceleration and multipliers of the index-1 equations, by the Schur complement of M:

    M a + Phi_q^T lambda = f,    Phi_q a = -bias - 2 alpha dPhi/dt - beta^2 Phi
    """
    terms = system.constraint_terms(t, q, v)
    alpha, beta, active = stabilisation
    wanted = -terms.bias - 2.0 * alpha * terms.rate - beta**2 * terms.phi
    J = terms.jacobian
    free = system.mass_solve(q, system.total_force(t, q, v, u)[:, None])[:, 0]
    W = system.mass_solve(q, J.T)
    free, W = materialise((free, W))
    multipliers = solve_active(matmul(J, W), matvec(J, free) - wanted, active)
    return free - matvec(W, multipliers), multipliers


def solve_active(A, b, active=None):
    """`A x = b` for symmetric positive definite A, rows that do not act left out (x = 0 there).

    Where A has lost rank the result is NaN, never a large number: see `math.linalg.solve`.
    """
    if b.shape[0] == 0:  # a machine without constraints
        return b
    if active is not None:
        return masked_solve(A, b, active)
    return solve(*materialise((A, b)), spd=True, nan_if_singular=True)


def rank_margin(system, t, q) -> Float[Array, ""]:
    """How far the constraints at a configuration are from redundancy: the smallest pivot of
    `Phi_q M^-1 Phi_q^T` with unit diagonal. 1: independent rows; near 0: redundant ones."""
    J = system.constraint_terms(t, q, jnp.zeros(system.n_v, q.dtype)).jacobian
    A = matmul(J, system.mass_solve(q, J.T))
    size = jnp.sqrt(jnp.diagonal(A))
    size = jnp.where(size > 0, size, 1.0)
    return smallest_pivot(A / size[:, None] / size)


def velocity_on_constraints(system, t, q, v):
    """The velocity nearest to `v`, in the norm of kinetic energy, that the constraints allow, and
    the impulses that bring it there: a plastic, momentum-conserving joining."""
    terms = system.constraint_terms(t, q, v)
    W = system.mass_solve(q, terms.jacobian.T)
    impulses = solve_active(matmul(terms.jacobian, W), terms.rate)
    return v - matvec(W, impulses), impulses


def position_on_constraints(system, t, q, iterations: int):
    """The configuration near `q`, in the norm of the mass matrix, that satisfies the constraints:
    `iterations` Gauss-Newton steps."""
    rest = jnp.zeros(system.n_v, q.dtype)

    def improve(q, _):
        terms = system.constraint_terms(t, q, rest)
        W = system.mass_solve(q, terms.jacobian.T)
        x = solve_active(matmul(terms.jacobian, W), terms.phi)
        return system.retract(q, -matvec(W, x)), None

    return lax.scan(improve, q, length=iterations)[0]


def constraint_force(system, t, q, multipliers):
    """`-Phi_q^T lambda`, shape (n_v,), without forming the Jacobian."""
    rest = jnp.zeros(system.n_v, q.dtype)
    _, pull = jax.vjp(lambda dq: system.constraint(t, system.retract(q, dq)), rest)
    return -pull(multipliers)[0]
