"""Muscles as in MuJoCo: force-length-velocity curves and activation dynamics.

Lengths are normalised by the operating range: `range` of the normalised length corresponds to
`length_range` of the tendon. Forces are generalised forces along the length. A muscle pulls, so its
force is negative."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.precision import float_field

_TINY = 1e-15


class Muscles(eqx.Module):
    """Force-length-velocity curves of m muscles. Each field has shape (m,), the ranges (m, 2).

    - `range`: normalised lengths (in optimal lengths) at the ends of `length_range` [m];
    - `force` [N]: peak active force at rest;
    - `shortest`, `longest`: normalised lengths between which the muscle has active force;
    - `speed`: shortening velocity at which the force is zero [optimal lengths per second];
    - `passive_force`: passive force relative to `force`, at three quarters of the way from the
      optimal to the longest length; at the longest length it is 1.5 times as large;
    - `lengthening_force`: active force at saturating lengthening velocity, relative to `force`."""

    range: Float[Array, "m 2"] = float_field()
    length_range: Float[Array, "m 2"] = float_field(unit="m")
    force: Float[Array, " m"] = float_field(unit="N")
    shortest: Float[Array, " m"] = float_field()
    longest: Float[Array, " m"] = float_field()
    speed: Float[Array, " m"] = float_field()
    passive_force: Float[Array, " m"] = float_field()
    lengthening_force: Float[Array, " m"] = float_field()

    def _normalised(self, length):
        span = self.length_range[:, 1] - self.length_range[:, 0]
        optimal = _at_least(span / _at_least(self.range[:, 1] - self.range[:, 0]))
        return self.range[:, 0] + (length - self.length_range[:, 0]) / optimal, optimal

    def gain(self, length, rate):
        """Force per unit activation (m,) [N] at lengths (m,) [m] and rates (m,) [m/s]."""
        L, optimal = self._normalised(length)
        V = rate / _at_least(optimal * self.speed)
        return -self.force * self._by_length(L) * self._by_velocity(V)

    def _by_length(self, L):
        """Active force relative to `force` as a function of the normalised length `L`.

        The curve consists of four parabolas. It is 0 at the shortest and longest length and 1 at
        the optimal length."""
        low, high = 0.5 * (self.shortest + 1.0), 0.5 * (1.0 + self.longest)
        square = lambda gap, span: 0.5 * (gap / _at_least(span)) ** 2
        curve = jnp.where(
            L <= low,
            square(L - self.shortest, low - self.shortest),
            jnp.where(
                L <= 1.0,
                1.0 - square(1.0 - L, 1.0 - low),
                jnp.where(
                    L <= high,
                    1.0 - square(L - 1.0, high - 1.0),
                    square(self.longest - L, self.longest - high),
                ),
            ),
        )
        return jnp.where((L >= self.shortest) & (L <= self.longest), curve, 0.0)

    def _by_velocity(self, V):
        """Force factor as a function of the normalised velocity `V`: 0 at the largest shortening
        velocity, 1 at rest, and constant (saturated) at large lengthening velocities."""
        most = self.lengthening_force
        y = most - 1.0
        lengthening = jnp.where(V <= y, most - (y - V) ** 2 / _at_least(y), most)
        shortening = jnp.where(V <= -1.0, 0.0, (V + 1.0) ** 2)
        return jnp.where(V <= 0.0, shortening, lengthening)

    def passive(self, length):
        """Passive force (m,) [N] at lengths (m,) [m].

        It is zero up to the optimal length, a parabola up to the middle between optimal and longest
        length, and linear beyond."""
        L, _ = self._normalised(length)
        half = 0.5 * (1.0 + self.longest)
        x = (L - 1.0) / _at_least(half - 1.0)
        rising = jnp.where(L <= half, 0.5 * x * x, x - 0.5)
        return -self.force * self.passive_force * jnp.where(L <= 1.0, 0.0, rising)


def activation_rate(excitation, activation, rising, falling, width):
    """Rate of change [1/s] of activations (m,) for excitations (m,) in [0, 1] (Millard et al.
    2013).

    `rising` and `falling` are the time constants [s] of activation and deactivation. The time
    constant changes smoothly from one to the other over a `width` of the difference between
    excitation and activation; with a width of 0 it switches."""
    excitation = jnp.clip(excitation, 0.0, 1.0)
    level = 0.5 + 1.5 * jnp.clip(activation, 0.0, 1.0)
    excess = excitation - activation
    up, down = rising * level, falling / level
    x = jnp.clip(excess / jnp.where(width > _TINY, width, 1.0) + 0.5, 0.0, 1.0)
    smooth = x * x * x * (10.0 + x * (6.0 * x - 15.0))
    share = jnp.where(width > _TINY, smooth, jnp.where(excess > 0.0, 1.0, 0.0))
    return excess / _at_least(down + (up - down) * share)


def _at_least(x):
    return jnp.maximum(x, _TINY)
