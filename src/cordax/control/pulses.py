"""Forces that act for a while."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import known_values, require, require_positive, require_shape
from .._precision import float_field
from ..mechanics import Controller


class Pulses(Controller):
    """`base` plus k rectangular pulses of `inputs` (k, n_u) between the `times` (k, 2) [s].

    Held over steps of `step` seconds, the simulation's dt: a pulse acts in the steps whose middle
    lies in it, so that edges on the grid of steps are exact. `base`: the constant inputs (n_u,)."""

    times: Float[Array, "k 2"] = float_field()
    inputs: Float[Array, "k n_u"] = float_field()
    step: float = eqx.field(static=True)  # pyright: ignore[reportGeneralTypeIssues]
    base: Float[Array, " n_u"] = float_field(default=0.0)

    def __check_init__(self):
        k = self.inputs.shape[0]
        require(len(self.inputs.shape) == 2, "inputs", f"shape {self.inputs.shape}", "(k, n_u)")
        require_shape("times", self.times, (k, 2))
        require_shape("base", self.base, (), (self.inputs.shape[1],))
        require_positive("step", self.step)
        times = known_values(self.times)
        if times is not None:
            ordered = bool((times[:, 1] > times[:, 0]).all())
            require(ordered, "times", times, "each pulse to end after it begins")

    @property
    def period(self):
        return self.step

    def __call__(self, t, state, memory):
        middle = t + 0.5 * self.step
        on = (middle > self.times[:, 0]) & (middle < self.times[:, 1])
        return self.base + jnp.sum(jnp.where(on[:, None], self.inputs, 0.0), axis=0), memory
