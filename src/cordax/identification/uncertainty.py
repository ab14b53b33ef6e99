"""Covariance and identifiability of the estimates from the Jacobian at the optimum."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .problem import Problem
from .residual_correlation import LEAST_FREEDOM, ErrorModel, error_covariance

#: singular values of the column-scaled Jacobian below this fraction of the largest count as zero
RANK_TOLERANCE = 1e-6


class Uncertainty(eqx.Module):
    """Uncertainty of search coordinates, by linearisation.

    `jacobian` J of the residuals, shape (n, p); `inverse` (J^T J)^-1; `independent`, that times the
    residual variance: the covariance if errors are independent (priors keep their given variance);
    `covariance`, the same if the model of the `errors` is white, else that of correlated errors,
    shape (p, p) each; `freedom`, degrees of freedom of Student's distribution for intervals, shape
    (p,); `singular_values` of J with columns scaled to equal length, shape (p,), and the
    corresponding `directions` in search coordinates, one per row.
    """

    jacobian: Float[Array, "n p"]
    inverse: Float[Array, "p p"]
    independent: Float[Array, "p p"]
    covariance: Float[Array, "p p"]
    freedom: Float[Array, " p"]
    singular_values: Float[Array, " p"]
    directions: Float[Array, "p p"]
    errors: ErrorModel

    def __init__(self, J, residuals, variance, problem: Problem):
        # Columns of equal length make the rank depend on directions, not on units.
        length = jnp.linalg.norm(J, axis=0)
        length = jnp.where(length > 0, length, 1.0)
        # The triangle of a QR factorisation has the singular values of the tall matrix.
        _, s, V = jnp.linalg.svd(jnp.linalg.qr(J / length, mode="r"))
        # the floor keeps the variance of an unidentifiable direction finite, but huge
        floor = jnp.finfo(s.dtype).eps * jnp.maximum(jnp.max(s), 1.0)
        half = V.T / jnp.maximum(s, floor) / length[:, None]
        directions = V / length
        self.jacobian = J
        self.inverse = half @ half.T
        self.singular_values = s
        self.directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
        *slopes, prior = problem.split(J)
        stated = self.inverse @ prior.T @ prior @ self.inverse
        self.independent = variance * (self.inverse - stated) + stated
        finite = jnp.where(jnp.isfinite(residuals), residuals, 0.0)
        trials = problem.trials
        self.errors, correlated, relative = error_covariance(
            [t.by_channel(r) for t, r in zip(trials, problem.split(finite), strict=False)],
            [t.by_channel(slope) for t, slope in zip(trials, slopes, strict=True)],
            [t.seen for t in trials],
            half,
        )
        white = jnp.all(self.errors.order == 0)
        self.covariance = jnp.where(white, self.independent, correlated + stated)
        # the variance of priors is exact
        share = jnp.diagonal(correlated) / jnp.diagonal(self.covariance)
        few = 2.0 / (relative * share**2) - len(self.inverse)
        freedom = jnp.where(white, problem.count() - len(self.inverse), few)
        self.freedom = jnp.maximum(jnp.nan_to_num(freedom), LEAST_FREEDOM)

    def lost_directions(self) -> np.ndarray:
        """Unit vectors in search coordinates along which the residuals do not change, shape (m,
        p)."""
        s = np.asarray(self.singular_values)
        limit = max(RANK_TOLERANCE, 100 * float(np.finfo(s.dtype).eps)) * s.max(initial=0.0)
        return np.asarray(self.directions)[s <= limit]
