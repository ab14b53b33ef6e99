"""What the Jacobian at the optimum says about the estimates."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .problem import Problem
from .residual_correlation import Colour, colour, score_covariance, seen_first

#: singular values of the column-scaled Jacobian below this share of the largest count as zero
RANK_TOLERANCE = 1e-6


class Uncertainty(eqx.Module):
    """Of search coordinates, by linearisation.

    `jacobian` J of the residuals, shape (n, p); `inverse` (J^T J)^-1; `independent`, that times the
    residual variance: the covariance if errors are independent (priors count with the variance
    they state); `covariance`, the same where they are, else widened by their correlation
    (`colour`), shape (p, p) each; `singular_values` of J
    with columns scaled to equal length, shape (p,), and the `directions` in search coordinates that
    belong to them, one per row.
    """

    jacobian: Float[Array, "n p"]
    inverse: Float[Array, "p p"]
    independent: Float[Array, "p p"]
    covariance: Float[Array, "p p"]
    singular_values: Float[Array, " p"]
    directions: Float[Array, "p p"]
    colour: Colour

    def __init__(self, J, residuals, variance, problem: Problem):
        # Columns of equal length make the rank a matter of directions, not of units.
        length = jnp.linalg.norm(J, axis=0)
        length = jnp.where(length > 0, length, 1.0)
        # The triangle of a QR factorisation has the singular values of the tall matrix.
        _, s, V = jnp.linalg.svd(jnp.linalg.qr(J / length, mode="r"))
        # the floor keeps the variance of a lost direction finite, but huge
        floor = jnp.finfo(s.dtype).eps * jnp.maximum(jnp.max(s), 1.0)
        half = V.T / jnp.maximum(s, floor) / length[:, None]
        directions = V / length
        self.jacobian = J
        self.inverse = half @ half.T
        self.singular_values = s
        self.directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
        *slopes, prior = problem.split(J)
        known = self.inverse @ prior.T @ prior @ self.inverse
        self.independent = variance * (self.inverse - known) + known
        finite = jnp.where(jnp.isfinite(residuals), residuals, 0.0)
        seen = [trial.seen for trial in problem.trials]
        pairs = list(zip(problem.trials, problem.split(finite), strict=False))
        self.colour, autocovariances = colour([trial.by_channel(r) for trial, r in pairs], seen)
        middle = sum(
            score_covariance(seen_first(trial.by_channel(slope), mask), covariance)
            for trial, slope, mask, covariance in zip(
                problem.trials, slopes, seen, autocovariances, strict=True
            )
        )
        wide = self.inverse @ middle @ self.inverse + known
        # never narrower than for independent errors
        diagonal = lambda x: jnp.maximum(jnp.diagonal(x), jnp.finfo(s.dtype).tiny)
        grown = jnp.sqrt(jnp.maximum(diagonal(self.independent) / diagonal(wide), 1.0))
        wide = grown[:, None] * wide * grown
        self.covariance = jnp.where(self.colour.white, self.independent, wide)

    def lost_directions(self) -> np.ndarray:
        """Unit vectors in search coordinates along which the residuals do not change, shape (m,
        p)."""
        s = np.asarray(self.singular_values)
        limit = max(RANK_TOLERANCE, 100 * float(np.finfo(s.dtype).eps)) * s.max(initial=0.0)
        return np.asarray(self.directions)[s <= limit]
