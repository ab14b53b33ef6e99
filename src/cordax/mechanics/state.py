"""The state of a machine."""

import equinox as eqx
from jaxtyping import Array, Float

from .._precision import float_field


class State(eqx.Module):
    """Configuration `q`, shape (n_q,), and velocity `v`, shape (n_v,), in SI units and radians.

    The sizes differ only where quaternions appear.
    """

    q: Float[Array, " n_q"] = float_field(checked=False)
    v: Float[Array, " n_v"] = float_field(checked=False)
