"""Forces and stiffness of a machine at rest, about one configuration.

With the mass matrix as metric, `M = L L^T`, displacements are `dq = L^-T y`: `y` has the unit
kg^1/2 m whatever the coordinates are, eigenvalues of the stiffness are squares of angular
frequencies [1/s^2], and directions without force do not move."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from ..mechanics import System
from ..mechanics.constraints import constraint_force


class Balance(eqx.Module):
    """A configuration at rest, linearised.

    `f` (n,) forces, `phi` (m,) constraints and `jacobian` (m, n) in the machine's coordinates,
    `multipliers` (m,) that balance the forces best (least squares);
    `metric` (n, n) and `factor` (n, n) its `L^-T`; `stiffness` (n, n) `-L^-1 K L^-T`, with that of
    the constraint forces; `close` (n, m) the pseudo-inverse of the constraints' Jacobian, so that
    `-close phi` satisfies them; `allowed` (n, n) the projection onto motions that they allow;
    `reduced` (n, n) the stiffness of allowed motions, a large number on all others; `values` (n,)
    and `directions` (n, n) the eigenvalues [1/s^2] and eigenvectors of its symmetric part;
    `is_free` (n,) which directions are allowed; `round_off` [1/s^2]: smaller eigenvalues count
    as zero; `skew`: whether the forces have no potential; `noise` (n,) round-off of the forces."""

    f: Float[Array, " n"]
    phi: Float[Array, " m"]
    jacobian: Float[Array, "m n"]
    multipliers: Float[Array, " m"]
    metric: Float[Array, "n n"]
    factor: Float[Array, "n n"]
    stiffness: Float[Array, "n n"]
    close: Float[Array, "n m"]
    allowed: Float[Array, "n n"]
    reduced: Float[Array, "n n"]
    values: Float[Array, " n"]
    directions: Float[Array, "n n"]
    is_free: Bool[Array, " n"]
    round_off: Float[Array, ""]
    skew: Bool[Array, ""]
    noise: Float[Array, " n"]

    def tangent(self, y):
        """Displacement in the machine's coordinates."""
        return self.factor @ y

    def covector(self, f):
        """A force in the metric's coordinates."""
        return f @ self.factor

    @property
    def neutral(self):
        """Allowed directions (n,) with zero stiffness."""
        return self.is_free & (jnp.abs(self.values) <= self.round_off)

    def curvature(self, dq):
        """Second derivative of the energy [J] along a displacement in the machine's coordinates."""
        y = (self.metric @ dq) @ self.factor
        return y @ (self.stiffness @ y)

    def unheld(self, f):
        """The part of a force that constraints do not balance, in the machine's coordinates."""
        return self.metric @ (self.factor @ (self.allowed @ self.covector(f)))

    def gradient(self, f, closing):
        """Energy gradient (n,) along allowed motions, after a displacement `closing` (n,)."""
        return self.allowed @ (self.stiffness @ closing - self.covector(f))

    def newton(self, f, phi):
        """The displacement (n,) in the machine's coordinates that balances `f` and satisfies
        `phi`, linearly in both, without motion along neutral directions."""
        closing = -self.close @ phi
        g = self.gradient(f, closing)
        inverse = jnp.where(self.neutral, 0.0, 1.0 / jnp.where(self.neutral, 1.0, self.values))
        straight = lambda g: -self.directions @ (inverse * (g @ self.directions))
        return self.tangent(closing + lax.cond(self.skew, self.shifted(0.0), straight, g))

    def shifted(self, shift):
        """The Newton step of an asymmetric stiffness, as a function of the gradient."""
        n = self.f.shape[0]
        matrix = self.reduced + (shift + self.round_off) * jnp.eye(n, dtype=self.f.dtype)
        return lambda g: -jnp.linalg.solve(matrix, g)

    def unstable(self):
        """Number of allowed directions with negative stiffness, or with growing motions."""
        by_energy = lambda: self.values
        by_growth = lambda: jnp.real(jnp.linalg.eigvals(self.reduced)).astype(self.values.dtype)
        values = lax.cond(self.skew, by_growth, by_energy)
        return jnp.sum(values < -self.round_off)


def balance(system: System, t, q, u) -> Balance:
    """Forces and stiffness at a configuration `q` at rest."""
    rest = jnp.zeros(system.n_v, q.dtype)
    eps = jnp.finfo(q.dtype).eps
    n, m = rest.shape[0], system.n_constraints
    linear = system.structure().linearise(t, q, rest, u, hold=False)
    M, K, _ = linear.matrices()
    f, eye, metric = linear.f, jnp.eye(n, dtype=q.dtype), _metric(M, K)
    factor = solve_triangular(jnp.linalg.cholesky(metric), eye, lower=True).T
    if m == 0:
        phi, jacobian = jnp.zeros(0, q.dtype), jnp.zeros((0, n), q.dtype)
        multipliers = phi
        close, allowed, held = jnp.zeros((n, 0), q.dtype), eye, jnp.zeros((n, n), q.dtype)
    else:
        terms = system.structure().constraint_terms(t, q, rest)
        phi, jacobian = terms.phi, terms.jacobian
        J = jacobian @ factor
        size = jnp.sqrt(jnp.sum(J * J, axis=1))
        size = jnp.where(size > 0, size, 1.0)
        left, singular, right = jnp.linalg.svd(J / size[:, None], full_matrices=False)
        # redundant rows share the constraint force
        acts = singular > 1e4 * eps * singular[0]
        close = (right.T * jnp.where(acts, 1.0 / singular, 0.0)) @ left.T / size
        held = (right.T * acts) @ right
        allowed = eye - held
        multipliers = f @ factor @ close
        pull = lambda dq: constraint_force(system, t, system.retract(q, dq), multipliers)
        K = K + jax.jacfwd(pull)(rest)
    A = -factor.T @ K @ factor
    reduced = allowed @ A @ allowed
    scale = jnp.sqrt(jnp.sum(reduced * reduced))
    shift = 4.0 * scale + 1.0
    values, directions = jnp.linalg.eigh(0.5 * (reduced + reduced.T) + shift * held)
    is_free = values < 0.5 * shift
    largest = jnp.max(jnp.where(is_free, jnp.abs(values), 0.0))
    return Balance(
        f=f,
        phi=phi,
        jacobian=jacobian,
        multipliers=multipliers,
        metric=metric,
        factor=factor,
        stiffness=A,
        close=close,
        allowed=allowed,
        reduced=reduced + shift * held,
        values=values,
        directions=directions,
        is_free=is_free,
        round_off=500.0 * eps * largest + jnp.finfo(q.dtype).tiny,
        skew=_has_no_energy(system, reduced, K, metric @ (factor @ (allowed @ (f @ factor)))),
        noise=50.0 * eps * jnp.sum(jnp.abs(K), axis=1) * (1e-3 + jnp.max(jnp.abs(q))),
    )


def _has_no_energy(system: System, reduced, K, unbalanced):
    """Whether the stiffness is asymmetric. For rotations it is symmetric only in equilibrium:
    elsewhere the skew part is the unbalanced torque."""
    norm = lambda A: jnp.sqrt(jnp.sum(A * A))
    skew = norm(reduced - reduced.T) > 1e6 * jnp.finfo(K.dtype).eps * norm(reduced)
    if system.n_q == system.n_v:
        return skew
    return skew & (norm(K - K.T) > 4.0 * norm(unbalanced))


def _metric(M, K):
    """The mass matrix, made positive definite. Massless coordinates get the mass that gives them
    the highest frequency of the others."""
    inertia, spring = jnp.diagonal(M), jnp.abs(jnp.diagonal(K))
    heavy = inertia > 0
    quickest = jnp.max(jnp.where(heavy, spring / jnp.where(heavy, inertia, 1.0), 0.0))
    quickest = jnp.where(quickest > 0, quickest, 1.0)
    light = jnp.where(spring > 0, spring / quickest, 1.0)
    share = jnp.sqrt(jnp.finfo(M.dtype).eps)
    return M + jnp.diag(jnp.where(heavy, share * inertia, light))
