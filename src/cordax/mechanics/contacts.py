"""Contacts of a machine for a velocity-level solver."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .parts.contact_law import ContactLaw


class Contacts(NamedTuple):
    """k possible contact points of a machine at one configuration.

    `gap` (k,) [m]; `normal` (k, 3); `jacobian` (k, 3, n_v): derivative by v of the velocity of the
    first surface relative to the second; `spin` (k, 3, n_v): the same for the relative angular
    velocity, None without rolling resistance; `law` with fields (k,), in which `static_friction`
    and `rolling` are given for all contacts or None for all contacts; `viscosity`
    (k,) [N s/m] along the normal, None for none: it belongs to joint stops, which are contacts with
    a normal velocity only."""

    gap: Float[Array, " k"]
    normal: Float[Array, "k 3"]
    jacobian: Float[Array, "k 3 n"]
    spin: Float[Array, "k 3 n"] | None
    law: ContactLaw
    viscosity: Float[Array, " k"] | None = None


def spread_law(law: ContactLaw, count: int) -> ContactLaw:
    """Contact law with all fields broadcast to shape (count,)."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count,)), law)


def joined(parts: list[Contacts], n_states: int = 0) -> Contacts:
    """Concatenate the contacts of a machine, with `n_states` columns of zeros appended to the
    Jacobians."""
    if n_states:
        wider = lambda J: None if J is None else jnp.pad(J, ((0, 0), (0, 0), (0, n_states)))
        parts = [x._replace(jacobian=wider(x.jacobian), spin=wider(x.spin)) for x in parts]
    if len(parts) == 1:
        return parts[0]
    viscous = any(part.viscosity is not None for part in parts)
    rolls = any(part.spin is not None for part in parts)
    sticks = any(part.law.static_friction is not None for part in parts)

    def filled(law: ContactLaw, name: str, value) -> ContactLaw:
        pick = lambda law: getattr(law, name)
        return eqx.tree_at(pick, law, value, is_leaf=lambda x: x is None)

    def whole(part: Contacts) -> Contacts:
        law, spin = part.law, part.spin
        if rolls and law.rolling is None:
            law = filled(law, "rolling", jnp.zeros_like(law.friction))
            spin = jnp.zeros_like(part.jacobian)
        if sticks and law.static_friction is None:
            law = filled(law, "static_friction", law.friction)
        slow = part.viscosity
        slow = jnp.zeros_like(part.gap) if viscous and slow is None else slow
        return part._replace(law=law, spin=spin, viscosity=slow)

    return jax.tree.map(lambda *x: jnp.concatenate(x), *map(whole, parts))
