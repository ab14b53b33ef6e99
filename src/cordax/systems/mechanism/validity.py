"""What a mechanism cannot be computed without: ways for its cables, and mass on its joints."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .cables import CableSet, Reach, RigidCable, reaches
from .dynamics import Masses
from .elements import Element
from .loops import Loop
from .tree import Tree

#: of arcs [rad] and tensions [N]
_ROUND_OFF = 1e-9


def cable_reaches(
    tree: Tree,
    loops: tuple[Loop, ...],
    groups,
    kinds: tuple[Loop, ...],
    elements: tuple[Element, ...],
    poses,
) -> list[Reach]:
    """Of all cables at `poses`; `kinds` the stacked numbers of the `groups` of loops."""
    if not any(isinstance(part, (RigidCable, CableSet)) for part in (*loops, *elements)):
        return []
    return reaches(tree, loops, groups, kinds, elements, poses.R, poses.p)


def _carried(tree: Tree, masses: Masses) -> Float[Array, " k"]:
    """Mass and inertia, in kg and kg m^2, that each joint with a velocity carries."""
    own = masses.mass + jnp.trace(masses.inertia, axis1=1, axis2=2)
    return tree.below_sum(own[:, None])[np.unique(tree.owner), 0]


def valid(tree: Tree, masses: Masses, looped: bool, found: list[Reach]) -> Bool[Array, ""] | bool:
    """Whether all segments of cables exist, and, where no loops could hold what has no mass, all
    joints carry some."""
    good = [reach.good() for reach in found]
    if not looped:
        good.append(jnp.all(_carried(tree, masses) > 0))
    return jnp.all(jnp.stack(good)) if good else True


def expected(tree: Tree, masses: Masses, looped: bool, found: list[Reach]) -> str:
    """What `valid` misses, in words."""
    if not looped:
        joints = np.unique(tree.owner)[np.asarray(_carried(tree, masses)) <= 0]
        if names := ", ".join(tree.names[i] for i in joints):
            return f"mass on every joint, or loops that hold what has none, as {names} carry none"
    lost = next(reach for reach in found if not np.asarray(reach.good()))
    return (
        "guides of cables that are apart, none inside of a pulley, as there is no way "
        + lost.missing()
    )


def wrap(found: list[Reach]) -> Float[Array, " w"] | None:
    """Angles [rad] by which cables go round inner pulleys, less than a turn; None without any."""
    arcs = [reach.arcs.reshape(-1) for reach in found if reach.arcs.size]
    return jnp.concatenate(arcs) if arcs else None


def warnings(wrap, pulled) -> dict[str, Bool[Array, "..."]]:
    """`cable_off_pulley`: a cable would leave an inner pulley, where the model holds it as in a
    groove. `cable_pushes`: a rigid cable carries less than nothing; later states are unphysical.
    From angles `wrap` (..., w) [rad] and tensions `pulled` (..., n) [N], None without such parts.
    """
    named = {"cable_off_pulley": wrap, "cable_pushes": pulled}
    return {name: x < -_ROUND_OFF for name, x in named.items() if x is not None}
