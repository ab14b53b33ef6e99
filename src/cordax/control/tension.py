"""Which tensions produce a wanted generalised force: `W T = tau` with more tendons than joints."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import describe, require_finite, require_positive, require_shape, require_values
from .._precision import float_field
from ..math.linalg import matmul, matvec, solve, vecmat
from ..math.qp import solve_qp


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
    """The solution closest to tensions `mean` [N] with every tension between `minimum` and
    `maximum` [N], each one for all or (k,): a quadratic programme. `mean` None: midway.

    NaN where no tensions within the bounds produce `tau`: a simulation then stops with
    `qp_infeasible`."""

    may_fail = True
    minimum: Float[Array, "..."] = float_field()
    maximum: Float[Array, "..."] = float_field()
    mean: Float[Array, "..."] | None = float_field(default=None)

    def __check_init__(self):
        require_positive("minimum", self.minimum, zero_allowed=True)
        require_finite("maximum", self.maximum)
        given = {name: x for name, x in vars(self).items() if x is not None}
        n = max((x.shape[0] for x in given.values() if x.ndim == 1), default=1)
        for name, x in given.items():
            require_shape(name, x, (), (n,))
        more = f"more than minimum, {describe(self.minimum)} N"
        bounds = self.maximum, self.minimum
        require_values("maximum", lambda high, low: high > low, *bounds, expected=more)

    def __call__(self, W, tau):
        k = W.shape[1]
        mean = 0.5 * (self.minimum + self.maximum) if self.mean is None else self.mean
        for name, x in (("minimum", self.minimum), ("maximum", self.maximum), ("mean", mean)):
            require_shape(name, x, (), (k,))
        wish = jnp.broadcast_to(mean, (k,)).astype(W.dtype)
        eye = jnp.eye(k, dtype=W.dtype)
        found = solve_qp(eye, -wish, W, tau, self.minimum, self.maximum)
        return jnp.where(found.solved, found.x, jnp.nan)


def _least_norm(W, tau):
    """The smallest T with W T = tau."""
    return vecmat(solve(matmul(W, W.T), tau, spd=True), W)
