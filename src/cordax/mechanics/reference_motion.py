"""Positions as prescribed functions of time: desired motions, moving supports, wound lengths."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_axes, require_finite, require_shape, require_values
from .._base.precision import as_float_array, declared_field, float_field
from .._jax.program_cache import kept_filter_jit

#: up to this number of instants the current one is found by comparison with all
FEW = 1024


class Reference(eqx.Module):
    """A position as a smooth function of time; its derivatives follow by differentiation."""

    @abc.abstractmethod
    def position(self, t) -> Float[Array, "..."]:
        """Desired value at time `t` [s]."""

    def switching_times(self) -> Float[Array, " k"] | None:
        """Increasing instants [s] at which the motion or one of its derivatives jumps; empty if
        there are none, None if they are not known."""
        return None

    def __call__(self, t):
        """Position, rate and acceleration at `t` [s], shape (n,) each."""
        t = jnp.asarray(t, dtype=float)
        one = jnp.ones_like(t)
        rate = lambda t: jax.jvp(self.position, (t,), (one,))[1]
        return self.position(t), *jax.jvp(rate, (t,), (one,))


class Constant(Reference):
    """A constant position."""

    value: Float[Array, "..."] = float_field()

    def position(self, t):
        return self.value

    def switching_times(self):
        return jnp.zeros(0, self.value.dtype)


class Quintic(Reference):
    """Quintic point-to-point motion: `start` plus k moves from rest to rest, each with the profile
    `s = x^3 (10 - 15 x + 6 x^2)`: `moves`, shape (k, ...), like `start` [m or rad], between the
    `times` (k, 2) [s]."""

    start: Float[Array, "..."] = float_field()
    moves: Float[Array, "k ..."] = float_field()
    times: Float[Array, "k 2"] = float_field(unit="s")

    def __check_init__(self):
        moves = f"(k, {', '.join(map(str, self.start.shape))}), k moves like start"
        require_axes("moves", self.moves, self.start.ndim + 1, moves)
        k = self.moves.shape[0]
        require_shape("moves", self.moves, (k, *self.start.shape))
        require_shape("times", self.times, (k, 2))
        expected = "each move to end after it begins"
        require_values("times", lambda t: t[:, 1] > t[:, 0], self.times, expected=expected)

    def switching_times(self):
        return jnp.sort(self.times.reshape(-1))

    def position(self, t):
        begin, end = self.times.T
        x = jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
        s = x**3 * (10.0 + x * (6.0 * x - 15.0))
        shares = s.reshape(-1, *[1] * self.start.ndim)
        return self.start + jnp.sum(shares * self.moves, axis=0)


class Shaped(Reference):
    """A `motion` of (n,) plus corrections between two `times` (2,) [s], at which they vanish with
    two derivatives: coefficients `bumps` (k, n), in the unit of the motion, of
    `(4 x (1 - x))^3 cos(j pi x)`, j from 0. An optimisation varies them to change the path between
    fixed ends."""

    motion: Reference
    times: Float[Array, " 2"] = float_field(unit="s")
    bumps: Float[Array, "k ..."] = float_field()

    def __check_init__(self):
        require(isinstance(self.motion, Reference), "motion", self.motion, "a Reference")
        require_shape("times", self.times, (2,))
        require_values("times", lambda t: t[1:] > t[:-1], self.times, expected="increasing times")
        like = self.motion.position(0.0).shape
        require_shape("bumps", self.bumps, (self.bumps.shape[0], *like))

    def switching_times(self):
        return merged(self.motion.switching_times(), self.times)

    def position(self, t):
        begin, end = self.times
        x = jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
        waves = (4.0 * x * (1.0 - x)) ** 3 * jnp.cos(jnp.pi * jnp.arange(self.bumps.shape[0]) * x)
        shares = waves.reshape(-1, *[1] * (self.bumps.ndim - 1))
        return self.motion.position(t) + jnp.sum(shares * self.bumps, axis=0)


class Hermite(Reference):
    """Cubic Hermite interpolation of `values`, shape (k, ...), and `slopes`, like them [per s], at
    increasing `times` (k,) [s]; constant at the first and last value outside of them."""

    times: Float[Array, " k"] = float_field(unit="s")
    values: Float[Array, "k ..."] = float_field()
    slopes: Float[Array, "k ..."] = float_field()

    def __check_init__(self):
        require_axes("times", self.times, 1, "(k,), k instants")
        k = self.times.shape[0]
        require(k >= 2, "times", self.times, "two or more")
        require_shape("values", self.values, (k, *self.values.shape[1:]))
        require_shape("slopes", self.slopes, self.values.shape)
        expected = "increasing times"
        require_values("times", lambda t: t[1:] > t[:-1], self.times, expected=expected)

    def switching_times(self):
        return self.times

    def position(self, t):
        k = self.times.shape[0]
        # few comparisons compile and run faster than a bisection loop
        method = "compare_all" if k <= FEW else "scan"
        i = jnp.searchsorted(self.times, t, side="right", method=method) - 1
        i = jnp.clip(i, 0, k - 2)
        width = self.times[i + 1] - self.times[i]
        x = (t - self.times[i]) / width
        # unlike with clip, derivatives at the first and last instant are those inside the interval
        x = jnp.where(x < 0.0, 0.0, jnp.where(x > 1.0, 1.0, x))
        a, b = self.values[i], self.values[i + 1]
        da, db = width * self.slopes[i], width * self.slopes[i + 1]
        rest = (1.0 - x) * (1.0 - x) * da - x * (1.0 - x) * db
        return a + x * rest + x**2 * (3.0 - 2.0 * x) * (b - a)


class BSpline(Reference):
    """Uniform cubic B-spline of `values` (k, ...), k >= 4, between two `times` (2,) [s], twice
    continuously differentiable. It stays within the range of its values, so bounds on the values
    hold for the whole spline. It does not interpolate them: it begins at (v_0 + 4 v_1 + v_2)/6, and
    ends likewise; with three equal values at its beginning (or end) it begins (or ends) at that
    value. Outside of its times it is constant."""

    times: Float[Array, " 2"] = float_field(unit="s")
    values: Float[Array, "k ..."] = float_field()

    def __check_init__(self):
        require_shape("times", self.times, (2,))
        require_values("times", lambda t: t[1:] > t[:-1], self.times, expected="increasing times")
        k = self.values.shape[0] if self.values.ndim else 0
        require(k >= 4, "values", f"shape {self.values.shape}", "(k, ...) with k >= 4")

    def switching_times(self):
        shares = np.linspace(0.0, 1.0, self.values.shape[0] - 2)
        return self.times[0] + shares * (self.times[1] - self.times[0])

    def position(self, t):
        begin, end = self.times
        spans = self.values.shape[0] - 3
        x = spans * jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
        i = jnp.clip(jnp.floor(x).astype(int), 0, spans - 1)
        x = x - i
        y = 1.0 - x
        weights = jnp.stack(
            [
                y**3,
                4.0 - 6.0 * x**2 + 3.0 * x**3,
                4.0 - 6.0 * y**2 + 3.0 * y**3,
                x**3,
            ]
        )
        near = jax.lax.dynamic_slice_in_dim(self.values, i, 4)
        return jnp.tensordot(weights, near, 1) / 6.0


def merged(*times: Float[Array, " k"] | None) -> Float[Array, " n"] | None:
    """Switching times of several motions [s] in one increasing array; None if some are unknown."""
    known = [x for x in times if x is not None]
    return jnp.sort(jnp.concatenate(known)) if len(known) == len(times) else None


def as_reference(x, name: str = "reference") -> Reference:
    """Convert a constant value to a Reference; return a Reference unchanged. Error messages contain
    the `name`."""
    if isinstance(x, Reference) or type(x) is object:  # or a placeholder of a transformation
        return x  # pyright: ignore[reportReturnType]
    value = as_float_array(x, name)
    require_finite(name, value)
    return Constant(value)


@kept_filter_jit
def positions(reference: Reference, t) -> Array:
    """Positions of a motion at times `t` [s], shape (k,), with a leading axis of size k."""
    return jax.vmap(reference.position)(t)


class _AsReference:
    def __init__(self, optional: bool):
        self.name, self.optional = "reference", optional

    def declare(self, name: str, annotation) -> None:
        self.name = name

    def __call__(self, x) -> Reference | None:
        return None if x is None and self.optional else as_reference(x, self.name)


def reference_field(**kwargs) -> Any:
    """Module field for a `Reference` or a constant value; None is allowed if it is the default."""
    optional = "default" in kwargs and kwargs["default"] is None
    return declared_field(_AsReference(optional), **kwargs)


def require_position(field: str, reference: Reference, *shapes: tuple[int, ...]) -> None:
    """Raise unless the positions of a reference have one of the given shapes."""
    position = jax.eval_shape(reference.position, 0.0)  # only its shape, without computing it
    given = isinstance(position, jax.ShapeDtypeStruct)
    require(given, f"{field}.position", position, "jax.Array or numpy.ndarray")
    require_shape(field, position, *shapes)
