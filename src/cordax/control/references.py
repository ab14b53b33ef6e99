"""Motions to follow."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._precision import float_field


class Reference(eqx.Module):
    """A wanted position as a smooth function of time; its derivatives follow."""

    def position(self, t) -> Float[Array, " n"]:
        raise NotImplementedError

    def __call__(self, t):
        """Position, rate and acceleration at `t` [s], shape (n,) each."""
        t = jnp.asarray(t, dtype=float)
        one = jnp.ones_like(t)
        rate = lambda t: jax.jvp(self.position, (t,), (one,))[1]
        return self.position(t), *jax.jvp(rate, (t,), (one,))


class RaisedCosine(Reference):
    """`offset + amplitude (1 - cos(frequency t))/2`: from rest to rest and back; `frequency`
    [rad/s]."""

    amplitude: Float[Array, " n"] = float_field()
    frequency: Float[Array, ""] = float_field(default=1.0)
    offset: Float[Array, "..."] = float_field(default=0.0)

    def position(self, t):
        return self.offset + 0.5 * self.amplitude * (1.0 - jnp.cos(self.frequency * t))


class Sinusoid(Reference):
    """`offset + amplitude sin(frequency t + phase)`, each number or shape (n,); `frequency`
    [rad/s]."""

    amplitude: Float[Array, " n"] = float_field()
    frequency: Float[Array, "..."] = float_field(default=1.0)
    phase: Float[Array, "..."] = float_field(default=0.0)
    offset: Float[Array, "..."] = float_field(default=0.0)

    def position(self, t):
        return self.offset + self.amplitude * jnp.sin(self.frequency * t + self.phase)
