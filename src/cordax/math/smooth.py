"""Smooth one-sided functions."""

import jax
import jax.numpy as jnp


def ramp(x, width):
    """Smooth `max(x, 0)`, rounded over a width w: `w log(1 + exp(x/w))`; at 0 it is w log 2."""
    return width * jax.nn.softplus(x / width)


def ramp_integral(x, width):
    """Integral of `ramp` from minus infinity: energy of a spring that only pushes or only pulls.

    It is a dilogarithm, -w^2 Li2(-exp(x/w)), transformed so that its series converges."""
    y = x / width
    # not -|y|, whose derivative vanishes at 0 where that of the tail does not
    tail = -_dilogarithm_of_minus(jnp.exp(jnp.where(y > 0, -y, y)))
    return width**2 * jnp.where(y > 0, 0.5 * y * y + jnp.pi**2 / 6.0 - tail, tail)


def _dilogarithm_of_minus(z):
    """Li2(-z) for 0 <= z <= 1, by Landen's identity `Li2(-z) = -Li2(w) - log(1 + z)^2/2` with
    w = z/(1 + z) <= 1/2, where 50 terms reach round-off."""
    w = z / (1.0 + z)
    k = jnp.arange(1.0, 50.0)
    return -jnp.sum(w[..., None] ** k / k**2, axis=-1) - 0.5 * jnp.log1p(z) ** 2
