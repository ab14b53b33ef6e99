"""Bodies: their mass, and their connection to a parent by a joint."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import (
    require,
    require_finite,
    require_instance,
    require_rotation,
    require_shape,
)
from ..._base.fields import name_field, part_field
from ..._base.precision import as_float_array, float_field
from .joints import Fixed, Joint
from .solids import Solid

WORLD = "world"
#: placeholder for the name of a body or joint where loops or cables of one kind are batched
NAMELESS = "*"


class Body(eqx.Module):
    """Rigid body connected to a `parent` (a name; "world" is the ground) by a `joint`.

    `at` (3,) [m] and `turned` (3, 3) are position and rotation of the joint's predecessor frame in
    the parent. `solids` are the parts of the body in body axes; a body without solids is massless.
    `start` and `start_rate` are coordinates and velocities of the joint in the default state."""

    name: str = name_field()
    joint: Joint = part_field(default_factory=Fixed)
    parent: str = name_field(default=WORLD)
    at: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    turned: Float[Array, "3 3"] = float_field(default=((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)))
    solids: tuple[Solid, ...] = eqx.field(converter=lambda s: _solids(s), default=())
    start: Float[Array, " n_q"] | None = eqx.field(
        converter=lambda x: _optional(x, "start"), default=None
    )
    start_rate: Float[Array, " n_v"] | None = eqx.field(
        converter=lambda x: _optional(x, "start_rate"), default=None
    )

    def __check_init__(self):
        where = f"body {self.name!r}: "
        require(
            bool(self.name) and self.name != WORLD, "name", repr(self.name), "a name of its own"
        )
        require_shape(where + "at", self.at, (3,))
        require_finite(where + "at", self.at)
        require_rotation(where + "turned", self.turned)
        for name, names in (("start", "coordinates"), ("start_rate", "velocities")):
            value = getattr(self, name)
            if value is not None:
                require_shape(where + name, value, (len(getattr(self.joint, names)),))
                require_finite(where + name, value)

    def inertia(self) -> Solid:
        """Total mass, centre of mass and inertia of all solids."""
        mass = sum((s.mass for s in self.solids), jnp.zeros(()))
        first = sum((s.mass * s.centre for s in self.solids), jnp.zeros(3))
        heavy = mass > 0
        centre = first / jnp.where(heavy, mass, 1.0)
        total = jnp.zeros((3, 3))
        for s in self.solids:
            d = s.centre - centre
            total = total + s.inertia + s.mass * (jnp.sum(d * d) * jnp.eye(3) - d[:, None] * d)
        return Solid(mass, centre, total)


def _solids(given) -> tuple[Solid, ...]:
    if isinstance(given, Solid):
        return (given,)
    if isinstance(given, Sequence):
        given = tuple(given)
        for solid in given:
            if type(solid) is not object:  # placeholder of a JAX transformation
                require_instance("solids", solid, Solid)
        return given
    if type(given) is not object:
        require_instance("solids", given, Solid, tuple)
    return given  # pyright: ignore[reportReturnType]


def _optional(x, name: str) -> Any:
    if x is None or type(x) is object:
        return x
    x = as_float_array(x, name)
    return x[None] if x.ndim == 0 else x
