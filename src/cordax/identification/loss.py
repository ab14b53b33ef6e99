"""Robust losses, which reduce the weight of outliers compared with least squares.

A loss rho of z = (r/scale)^2 replaces the sum of squared residuals r by the sum of scale^2 rho(z).
It is minimised as a least-squares problem whose residuals are r sqrt(rho(z)/z).

To first order the error of such an estimate (Huber 1981, chapter 7) is that of least squares with
the pseudo-residuals psi(r)/mean(psi') instead of the residuals, where psi(r) = r rho'(z) is the
influence of a residual. Intervals and tests of the residuals use these pseudo-residuals.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require, require_known, require_number

LossName = Literal["linear", "soft_l1", "huber", "cauchy"]
#: scales, in standard deviations of the noise, with 95 % efficiency for normally distributed errors
SCALES = {"soft_l1": 1.345, "huber": 1.345, "cauchy": 2.385}
#: smallest mean of psi': below it, most samples are outliers and the loss gives little information
LEAST_SLOPE = 0.05


class Loss(eqx.Module):
    """Robust loss of residuals in units of the noise: its `kind`, the `scale` beyond which
    residuals have less weight than in least squares, and a `gain` of the transformed residuals,
    which makes increases of their sum of squares comparable with those of least squares."""

    kind: str = eqx.field(static=True)
    scale: Float[Array, ""]
    gain: Float[Array, ""]

    def transformed(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """Residuals whose sum of squares is the loss, shape (n,)."""
        z = (r / self.scale) ** 2
        if self.kind == "soft_l1":
            ratio = 2.0 / (jnp.sqrt(1.0 + z) + 1.0)
        elif self.kind == "huber":
            large = jnp.maximum(z, 1.0)
            ratio = jnp.where(z <= 1.0, 1.0, (2.0 * jnp.sqrt(large) - 1.0) / large)
        else:
            usual = jnp.where(z > 1e-6, z, 1.0)
            ratio = jnp.where(z > 1e-6, jnp.log1p(usual) / usual, 1.0 - 0.5 * z)
        return self.gain * r * jnp.sqrt(ratio)

    def influence(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """psi(r), half the derivative of the loss, shape (n,)."""
        z = (r / self.scale) ** 2
        if self.kind == "soft_l1":
            return r / jnp.sqrt(1.0 + z)
        if self.kind == "huber":
            return jnp.clip(r, -self.scale, self.scale)
        return r / (1.0 + z)

    def curvature(self, r: Float[Array, " n"]) -> Float[Array, " n"]:
        """psi'(r), shape (n,)."""
        return jax.jvp(self.influence, (r,), (jnp.ones_like(r),))[1]

    def linearised(self, r, J, seen, priors: int):
        """Least-squares problem with the same estimate and errors: pseudo-residuals, shape (n,),
        their Jacobian, shape (n, p), and this loss with its `gain`.

        `r` (n,) are the plain residuals, `J` (n, p) the Jacobian of the transformed ones, `seen`
        (n,) marks recorded values; the last `priors` rows are not robust."""
        n, p = J.shape
        robust = jnp.arange(n) < n - priors
        slope = jax.jvp(self.transformed, (r,), (jnp.ones_like(r),))[1]
        J = jnp.where(robust[:, None], J / slope[:, None], J)
        used = seen & robust
        count = jnp.maximum(jnp.sum(used), 1)
        curvature = jnp.where(used, self.curvature(r), 0.0)
        raw = jnp.sum(curvature) / count
        mean = jnp.maximum(raw, LEAST_SLOPE)
        spread = jnp.sum(jnp.where(used, (curvature - raw) ** 2, 0.0)) / count
        finite = 1.0 + p / count * spread / mean**2  # Huber's correction for few samples
        gain = 1.0 / jnp.sqrt(mean)
        residuals = jnp.where(robust, finite * self.influence(r) / mean, gain * r)
        J = jnp.where(robust[:, None], J, gain * J)
        return residuals, J, eqx.tree_at(lambda loss: loss.gain, self, gain)


def loss_of(loss: str, scale: float | None, noise_given: bool) -> Loss | None:
    """The loss by its name; None for least squares."""
    require_known("loss", loss, ("linear", *SCALES))
    if loss == "linear":
        require(scale is None, "loss_scale", scale, "none with loss='linear'")
        return None
    if scale is None:
        if not noise_given:
            raise ValueError(
                f"loss={loss!r} needs noise=, or loss_scale= in the units of the recorded values"
            )
        scale = SCALES[loss]
    require_number("loss_scale", scale)
    return Loss(loss, jnp.asarray(float(scale)), jnp.asarray(1.0))
