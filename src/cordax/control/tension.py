"""Which tensions produce a wanted generalised force: `W T = tau` with more tendons than joints."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._precision import float_field
from ..math.linalg import matmul, matvec, solve, vecmat
from ..mechanics.checks import require_positive


class TensionDistribution(eqx.Module):
    """`(W, tau) -> T`: W shape (n, k) [m], tau (n,) [N m], tensions T (k,) [N]. Results may be
    negative where W demands it."""

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


def _least_norm(W, tau):
    """The smallest T with W T = tau."""
    return vecmat(solve(matmul(W, W.T), tau, spd=True), W)
