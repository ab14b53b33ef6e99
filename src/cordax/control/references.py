"""Reference motions."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require_shape
from .._base.precision import float_field
from ..mechanics.reference_motion import BSpline, Constant, Hermite, Quintic, Reference, Shaped


class RaisedCosine(Reference):
    """Motion `offset + amplitude (1 - cos(frequency t))/2`, from rest to rest and back.

    `amplitude`, `offset` and `frequency`, in [rad/s], are each one number for all or have
    shape (n,)."""

    amplitude: Float[Array, " n"] = float_field()
    frequency: Float[Array, "..."] = float_field(unit="rad/s", default=1.0)
    offset: Float[Array, "..."] = float_field(default=0.0)

    def __check_init__(self):
        _check_sizes(self, "frequency", "offset")

    def position(self, t):
        return self.offset + 0.5 * self.amplitude * (1.0 - jnp.cos(self.frequency * t))

    def switching_times(self):
        return jnp.zeros(0, self.amplitude.dtype)


class Sinusoid(Reference):
    """Motion `offset + amplitude sin(frequency t + phase)`.

    `amplitude`, `phase`, `offset` and `frequency`, in [rad/s], are each one number for all
    or have shape (n,)."""

    amplitude: Float[Array, " n"] = float_field()
    frequency: Float[Array, "..."] = float_field(unit="rad/s", default=1.0)
    phase: Float[Array, "..."] = float_field(default=0.0)
    offset: Float[Array, "..."] = float_field(default=0.0)

    def __check_init__(self):
        _check_sizes(self, "frequency", "phase", "offset")

    def position(self, t):
        return self.offset + self.amplitude * jnp.sin(self.frequency * t + self.phase)

    def switching_times(self):
        return jnp.zeros(0, self.amplitude.dtype)


def _check_sizes(motion, *names: str) -> None:
    given = {name: getattr(motion, name) for name in ("amplitude", *names)}
    largest = max((x.shape for x in given.values()), key=len)
    for name, x in given.items():
        require_shape(name, x, (), largest)


__all__ = [
    "BSpline",
    "Constant",
    "Hermite",
    "Quintic",
    "RaisedCosine",
    "Reference",
    "Shaped",
    "Sinusoid",
]
