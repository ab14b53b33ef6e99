"""Multisine inputs, for identification experiments."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require_axes, require_shape
from .._base.precision import float_field
from ..mechanics import Controller


class Multisine(Controller):
    """Inputs that are sums of sines: `base + sum_k amplitude_k sin(2 pi frequency_k t + phase_k)`.

    `base` (n_u,) and `amplitude` (n_u, k) are in the units of the inputs, `frequency` [Hz] has
    shape (k,), and `phase` [rad] has shape (n_u, k) or is one number for all sines."""

    base: Float[Array, " n_u"] = float_field()
    frequency: Float[Array, " k"] = float_field(unit="Hz")
    amplitude: Float[Array, "n_u k"] = float_field()
    phase: Float[Array, "..."] = float_field(unit="rad", default=0.0)

    def __check_init__(self):
        require_axes("base", self.base, 1, "(n_u,)")
        require_axes("frequency", self.frequency, 1, "(k,), one for each sine")
        shape = (self.base.shape[0], self.frequency.shape[0])
        require_shape("amplitude", self.amplitude, shape)
        require_shape("phase", self.phase, (), shape)

    def __call__(self, t, state, memory):
        sines = jnp.sin(2 * jnp.pi * self.frequency * t + self.phase)
        return self.base + jnp.sum(self.amplitude * sines, axis=1), memory
