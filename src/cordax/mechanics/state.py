"""The state of a machine."""

import equinox as eqx
from jaxtyping import Array, Float

from .._base.checks import require_finite, require_instance, require_shape
from .._base.precision import float_field


class State(eqx.Module):
    """Configuration `q`, shape (n_q,), and velocity `v`, shape (n_v,), in SI units and radians.

    The sizes differ only for machines with quaternions.
    """

    q: Float[Array, " n_q"] = float_field(checked=False)
    v: Float[Array, " n_v"] = float_field(checked=False)


def require_state(field: str, state, system) -> None:
    """Raise unless `state` is a `State` with the sizes of the machine and finite values."""
    require_instance(field, state, State)
    for name, size in (("q", system.n_q), ("v", system.n_v)):
        require_shape(f"{field}.{name}", getattr(state, name), (size,))
        require_finite(f"{field}.{name}", getattr(state, name))
