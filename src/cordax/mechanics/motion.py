"""Positions given as functions of time: wanted motions, moving supports, wound lengths."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import known_values, require, require_shape
from .._precision import as_float_array, float_field


class Reference(eqx.Module):
    """A position as a smooth function of time; its derivatives follow."""

    def position(self, t) -> Float[Array, "..."]:
        raise NotImplementedError

    def __call__(self, t):
        """Position, rate and acceleration at `t` [s], shape (n,) each."""
        t = jnp.asarray(t, dtype=float)
        one = jnp.ones_like(t)
        rate = lambda t: jax.jvp(self.position, (t,), (one,))[1]
        return self.position(t), *jax.jvp(rate, (t,), (one,))


class Constant(Reference):
    """At rest."""

    value: Float[Array, "..."] = float_field()

    def position(self, t):
        return self.value


class Quintic(Reference):
    """`start` plus k moves from rest to rest, `s = x^3 (10 - 15 x + 6 x^2)` each: `moves`, shape
    (k, ...), like `start` [m or rad], between the `times` (k, 2) [s]."""

    start: Float[Array, "..."] = float_field()
    moves: Float[Array, "k ..."] = float_field()
    times: Float[Array, "k 2"] = float_field()

    def __check_init__(self):
        k = self.moves.shape[0]
        require_shape("moves", self.moves, (k, *self.start.shape))
        require_shape("times", self.times, (k, 2))
        times = known_values(self.times)
        if times is not None:
            ok = bool((times[:, 1] > times[:, 0]).all())
            require(ok, "times", times, "each move to end after it begins")

    def position(self, t):
        begin, end = self.times.T
        x = jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
        s = x**3 * (10.0 + x * (6.0 * x - 15.0))
        shares = s.reshape(-1, *[1] * self.start.ndim)
        return self.start + jnp.sum(shares * self.moves, axis=0)


class Hermite(Reference):
    """Cubic Hermite interpolation of `values`, shape (k, ...), and `slopes`, like them [per s], at
    increasing `times` (k,) [s]; at rest at the first and last value outside of them."""

    times: Float[Array, " k"] = float_field()
    values: Float[Array, "k ..."] = float_field()
    slopes: Float[Array, "k ..."] = float_field()

    def __check_init__(self):
        k = self.times.shape[0]
        require(k >= 2, "times", self.times, "two or more")
        require_shape("values", self.values, (k, *self.values.shape[1:]))
        require_shape("slopes", self.slopes, self.values.shape)
        times = known_values(self.times)
        if times is not None:
            require(bool((times[1:] > times[:-1]).all()), "times", times, "increasing times")

    def position(self, t):
        i = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, self.times.shape[0] - 2)
        width = self.times[i + 1] - self.times[i]
        x = (t - self.times[i]) / width
        # unlike those of clip, derivatives at the first and last instant are those inside
        x = jnp.where(x < 0.0, 0.0, jnp.where(x > 1.0, 1.0, x))
        a, b = self.values[i], self.values[i + 1]
        da, db = width * self.slopes[i], width * self.slopes[i + 1]
        rest = (1.0 - x) * (1.0 - x) * da - x * (1.0 - x) * db
        return a + x * rest + x**2 * (3.0 - 2.0 * x) * (b - a)


def as_reference(x) -> Reference:
    """A Reference from a Reference, or from the value of one that rests."""
    if isinstance(x, Reference) or type(x) is object:  # or a placeholder of a transformation
        return x  # pyright: ignore[reportReturnType]
    return Constant(as_float_array(x))
