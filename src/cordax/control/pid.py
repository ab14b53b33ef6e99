"""A sampled PID controller."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import require, require_positive
from .._precision import float_field
from ..mechanics import Controller
from .references import Reference


class PID(Controller):
    """`u = bias + K_p e + K_i integral(e) + K_d e'` with e = reference - q of the chosen
    coordinates, one per input.

    Sampled every `sample` seconds; the memory is the integral. `coordinates`: indices into q;
    `velocities`: those of their rates in v where they differ, behind quaternions.
    """

    reference: Reference
    coordinates: tuple[int, ...] = eqx.field(static=True)
    sample: float = eqx.field(static=True)
    K_p: Float[Array, "..."] = float_field(default=0.0)
    K_i: Float[Array, "..."] = float_field(default=0.0)
    K_d: Float[Array, "..."] = float_field(default=0.0)
    bias: Float[Array, "..."] = float_field(default=0.0)
    velocities: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require(
            len(self.coordinates) > 0, "coordinates", self.coordinates, "at least one index into q"
        )
        require(
            self.velocities is None or len(self.velocities) == len(self.coordinates),
            "velocities",
            self.velocities,
            "as many indices into v as coordinates",
        )
        require_positive("sample", self.sample)

    @property
    def period(self):
        return self.sample

    def init(self, state):
        return jnp.zeros(len(self.coordinates), state.q.dtype)

    def __call__(self, t, state, memory):
        index = jnp.asarray(self.coordinates)
        rates = index if self.velocities is None else jnp.asarray(self.velocities)
        wanted, wanted_rate, _ = self.reference(t)
        error, error_rate = wanted - state.q[index], wanted_rate - state.v[rates]
        u = self.bias + self.K_p * error + self.K_i * memory + self.K_d * error_rate
        return u, memory + self.sample * error
