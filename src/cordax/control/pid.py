"""Sampled PID controller."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_positive, require_shape
from .._base.fields import setting_field
from .._base.precision import float_field
from ..mechanics import Controller
from ..mechanics.reference_motion import reference_field, require_position
from .references import Reference


def _indices(indices, name: str = "coordinates") -> tuple[int, ...]:
    given = indices if isinstance(indices, (tuple, list, range, np.ndarray)) else ()
    whole = all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in given)
    some = len(given) > 0 and whole
    vector = "q" if name == "coordinates" else "v"
    require(some, name, indices, f"at least one index into {vector}, in a tuple")
    return tuple(int(i) for i in given)


class PID(Controller):
    """PID controller, `u = bias + K_p e + K_i integral(e) + K_d e'` with e = reference - q of the
    selected coordinates, one per input.

    The controller is sampled every `period` seconds; its memory is the integral. `coordinates`:
    indices into q. `velocities`: indices of their rates in v, needed only if they differ from
    `coordinates`, that is, for coordinates that follow a quaternion in q.
    """

    reference: Reference = reference_field()
    coordinates: tuple[int, ...] = eqx.field(  # pyright: ignore[reportGeneralTypeIssues]
        static=True, converter=lambda x: _indices(x)
    )
    period: float = setting_field()  # pyright: ignore[reportIncompatibleVariableOverride]
    K_p: Float[Array, "..."] = float_field(default=0.0)
    K_i: Float[Array, "..."] = float_field(default=0.0)
    K_d: Float[Array, "..."] = float_field(default=0.0)
    bias: Float[Array, "..."] = float_field(default=0.0)
    velocities: tuple[int, ...] | None = eqx.field(
        static=True,
        converter=lambda x: None if x is None else _indices(x, "velocities"),
        default=None,
    )

    def __check_init__(self):
        n = len(self.coordinates)
        require(
            self.velocities is None or len(self.velocities) == n,
            "velocities",
            self.velocities,
            "as many indices into v as coordinates",
        )
        for name in ("K_p", "K_i", "K_d"):
            require_positive(name, getattr(self, name), zero_allowed=True)
        for name in ("K_p", "K_i", "K_d", "bias"):
            require_shape(name, getattr(self, name), (), (n,))
        require_position("reference", self.reference, (), (n,))

    def init(self, state):
        return jnp.zeros(len(self.coordinates), state.q.dtype)

    def __call__(self, t, state, memory):
        index = jnp.asarray(self.coordinates)
        rates = index if self.velocities is None else jnp.asarray(self.velocities)
        wanted, wanted_rate, _ = self.reference(t)
        error, error_rate = wanted - state.q[index], wanted_rate - state.v[rates]
        u = self.bias + self.K_p * error + self.K_i * memory + self.K_d * error_rate
        return u, memory + self.period * error
