"""Rectangular pulses as inputs."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require_axes, require_shape, require_values
from .._base.fields import setting_field
from .._base.precision import float_field
from ..mechanics import Controller


class Pulses(Controller):
    """Constant inputs `base` (n_u,) plus k rectangular pulses.

    Pulse i adds `inputs` (k, n_u), row i, between the two instants in row i of `times` (k, 2) [s].
    Inputs are held for `period` seconds, which is the time step of the simulation. A pulse acts in
    the steps whose middle lies within the pulse, so edges on the grid of steps are exact. Without
    `period`, and in runs with `accuracy`, inputs are not held: such runs step exactly to each edge.
    """

    times: Float[Array, "k 2"] = float_field(unit="s")
    inputs: Float[Array, "k n_u"] = float_field()
    period: float | None = setting_field(default=None)  # pyright: ignore[reportIncompatibleVariableOverride]
    base: Float[Array, " n_u"] = float_field(default=0.0)

    def __check_init__(self):
        require_axes("inputs", self.inputs, 2, "(k, n_u)")
        k = self.inputs.shape[0]
        require_shape("times", self.times, (k, 2))
        require_shape("base", self.base, (), (self.inputs.shape[1],))
        expected = "each pulse to end after it begins"
        require_values("times", lambda t: t[:, 1] > t[:, 0], self.times, expected=expected)

    def switching_times(self):
        return jnp.sort(self.times.reshape(-1))

    def unsampled(self):
        return dataclasses.replace(self, period=None)

    def __call__(self, t, state, memory):
        middle = t if self.period is None else t + 0.5 * self.period
        on = (middle > self.times[:, 0]) & (middle < self.times[:, 1])
        return self.base + jnp.sum(jnp.where(on[:, None], self.inputs, 0.0), axis=0), memory
