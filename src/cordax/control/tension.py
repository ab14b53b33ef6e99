"""Which tensions produce a wanted generalised force: `W T = tau` with more tendons than joints."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import known_values, require, require_positive
from .._precision import float_field
from ..math.linalg import matmul, matvec, solve, vecmat


class TensionDistribution(eqx.Module):
    """`(W, tau) -> T`: W shape (n, k) [m], tau (n,) [N m], tensions T (k,) [N]. Results may be
    negative where W demands it. One that `may_fail` is NaN where there is no solution."""

    may_fail: ClassVar[bool] = False

    def __call__(self, W, tau) -> Float[Array, " k"]:
        raise NotImplementedError


class MeanTension(TensionDistribution):
    """The solution closest to equal tensions `mean` [N]: smooth."""

    mean: Float[Array, ""] = float_field(default=50.0)

    def __check_init__(self):
        require_positive("mean", self.mean, zero_allowed=True)

    def __call__(self, W, tau):
        ones = jnp.ones(W.shape[1], W.dtype)
        return self.mean * ones + _least_norm(W, tau - self.mean * matvec(W, ones))


class MinimumTension(TensionDistribution):
    """Shift along the null space until the slackest tendon carries `minimum` [N]. Has kinks where
    that tendon changes.

    For one more tendon than joints, in an arrangement whose null vector is positive ("single"
    routing)."""

    minimum: Float[Array, ""] = float_field(default=5.0)

    def __check_init__(self):
        require_positive("minimum", self.minimum, zero_allowed=True)

    def __call__(self, W, tau):
        T = _least_norm(W, tau)
        ones = jnp.ones(W.shape[1], W.dtype)
        nu = ones - _least_norm(W, matvec(W, ones))
        nu = nu / jnp.max(jnp.abs(nu))
        pulls = nu > 1e-9
        shift = jnp.max(jnp.where(pulls, (self.minimum - T) / jnp.where(pulls, nu, 1.0), -jnp.inf))
        return T + shift * nu


class BoundedTension(TensionDistribution):
    """The solution closest to equal tensions `mean` [N] with every tension between `minimum` and
    `maximum` [N]: a quadratic programme, solved by qpax. `mean` None: midway.

    NaN where no tensions within the bounds produce `tau`: a simulation then stops with
    `qp_infeasible`. Derivatives in reverse mode only."""

    may_fail = True
    minimum: Float[Array, ""] = float_field()
    maximum: Float[Array, ""] = float_field()
    mean: Float[Array, ""] | None = None

    def __check_init__(self):
        require_positive("minimum", self.minimum, zero_allowed=True)
        low, high = known_values(self.minimum), known_values(self.maximum)
        if low is not None and high is not None:
            require(bool(high > low), "maximum", self.maximum, f"more than minimum, {low:g} N")

    def __call__(self, W, tau):
        import qpax

        k = W.shape[1]
        mean = 0.5 * (self.minimum + self.maximum) if self.mean is None else self.mean
        # in units of the mean, so that the solver's tolerance is a relative one
        unit, eye = jnp.maximum(jnp.abs(mean), 1e-3 * self.maximum), jnp.eye(k, dtype=W.dtype)
        bounds = jnp.concatenate([jnp.full(k, self.maximum), jnp.full(k, -self.minimum)]) / unit
        x = qpax.solve_qp_primal(
            eye,
            jnp.full(k, -mean / unit),
            W,
            tau / unit,
            jnp.concatenate([eye, -eye]),
            bounds,
            solver_tol=1e-10,
        )
        produced = jnp.max(jnp.abs(matvec(W, x) - tau / unit)) < _FEASIBLE
        within = jnp.all(x * unit < self.maximum * (1 + _FEASIBLE)) & jnp.all(
            x * unit > self.minimum - _FEASIBLE * self.maximum
        )
        return jnp.where(produced & within, unit * x, jnp.nan)


#: relative error of bounds and balance beyond which a quadratic programme has no solution
_FEASIBLE = 1e-6


def _least_norm(W, tau):
    """The smallest T with W T = tau."""
    return vecmat(solve(matmul(W, W.T), tau, spd=True), W)
