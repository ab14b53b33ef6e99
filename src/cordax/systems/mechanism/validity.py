"""Validity of a configuration: whether its cables have paths and its joints carry mass."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._jax.constant_gather import take
from .cables import CableSet, RigidCable
from .dynamics import Masses
from .elements import Element
from .loops import Loop, with_ground
from .routes import Route
from .tree import Tree

#: size [rad] of a negative arc on a pulley at which a cable counts as lost
FAR_OFF = 0.25 * np.pi
#: margin [rad] to an arc that is ambiguous by one turn, at which a run ends
NEAR_TURN = 0.05
#: round-off error of arcs [rad] and tensions [N]
_ROUND_OFF = 1e-9


class Reach(NamedTuple):
    """Existence of the paths of n cables over guides of the same kinds.

    - `bodies`: names of the bodies that carry the guides;
    - `squares`, shape (n, k) [m^2]: positive where a segment exists;
    - `arcs` (n, w) [rad]: arcs on inner pulleys;
    - `margins`, shape (n, p) [rad]: distances of the arcs on all pulleys from arcs that are
      ambiguous by one turn (`Route`)."""

    bodies: tuple[tuple[str, ...], ...]
    squares: Float[Array, "n k"]
    arcs: Float[Array, "n w"]
    margins: Float[Array, "n p"]

    def good(self) -> Bool[Array, ""]:
        """Whether every segment exists, no cable is far off its pulley, and no arc is about to jump
        by a turn."""
        there = jnp.all(self.squares > 0) & jnp.all(self.arcs > -FAR_OFF)
        return there & jnp.all(self.margins > NEAR_TURN)

    def missing(self) -> str:
        """Message about the first segment that does not exist, or the first cable that has left a
        pulley."""
        lost = np.argwhere(~(np.asarray(self.squares) > 0))
        gone = np.argwhere(~(np.asarray(self.arcs) > -FAR_OFF))
        if not len(lost) and not len(gone):
            names = self.bodies[np.argwhere(~(np.asarray(self.margins) > NEAR_TURN))[0][0]]
            limit = "whose whole turns can be told apart: it is half a turn from Pulley.zero at an "
            limit += "end, or three quarters of a turn round an inner pulley (see Pulley.winds)"
            return f"for the cable {names[0]}-{names[-1]} {limit}"
        if not len(lost):
            names = self.bodies[gone[0][0]]
            return f"for the cable {names[0]}-{names[-1]} round its pulley: it has left it"
        cable, segment = lost[0]
        names = self.bodies[cable]
        a, b = names[segment : segment + 2]
        return f"from {a!r} to {b!r}, segment {segment + 1} of the cable {names[0]}-{names[-1]}"


def reaches(
    tree: Tree, loops: Sequence[Loop], groups, kinds, elements: Sequence[Element], R, p
) -> list[Reach]:
    """`Reach` of all cables of a mechanism at world poses (N, 3, 3), (N, 3): rigid cables (`loops`
    in `groups`, with stacked parameters `kinds`) and elastic ones."""
    R, p = with_ground(R, p)
    routed = [
        (tuple(loops[i].bodies for i in group.members), group.bodies, Route(kind.guides))
        for group, kind in zip(groups, kinds, strict=True)
        if isinstance(kind, RigidCable)
    ]
    for element in elements:
        if isinstance(element, CableSet):
            routed.append((element.bodies, element.carriers(tree), element.routes))
    both = jax.vmap(
        lambda route, R, p: (route.reach(R, p), route.arcs(R, p), route.turn_margin(R, p))
    )
    return [
        Reach(names, *both(routes, take(R, index), take(p, index)))
        for names, index, routes in routed
    ]


def cable_reaches(
    tree: Tree,
    loops: tuple[Loop, ...],
    groups,
    kinds: tuple[Loop, ...],
    elements: tuple[Element, ...],
    poses,
) -> list[Reach]:
    """`Reach` of all cables at `poses`; `kinds` are the stacked parameters of the `groups` of
    loops."""
    if not any(isinstance(part, (RigidCable, CableSet)) for part in (*loops, *elements)):
        return []
    return reaches(tree, loops, groups, kinds, elements, poses.R, poses.p)


def _carried(tree: Tree, masses: Masses) -> Float[Array, " k"]:
    """Mass [kg] and inertia [kg m^2] that each joint with a velocity carries."""
    own = masses.mass + jnp.trace(masses.inertia, axis1=1, axis2=2)
    return tree.below_sum(own[:, None])[np.unique(tree.owner), 0]


def valid(tree: Tree, masses: Masses, looped: bool, found: list[Reach]) -> Bool[Array, ""] | bool:
    """Whether all cable segments exist and all joints carry mass. The second condition applies only
    without loops, because loops can hold massless bodies."""
    good = [reach.good() for reach in found]
    if not looped:
        good.append(jnp.all(_carried(tree, masses) > 0))
    return jnp.all(jnp.stack(good)) if good else True


def invalid_reason(tree: Tree, masses: Masses, looped: bool, found: list[Reach]) -> str:
    """Message about the condition of `valid` that is violated."""
    if not looped:
        joints = np.unique(tree.owner)[np.asarray(_carried(tree, masses)) <= 0]
        if names := ", ".join(tree.names[i] for i in joints):
            return f"mass on every joint, or loops that hold what has none, as {names} carry none"
    lost = next(reach for reach in found if not np.asarray(reach.good()))
    return (
        "guides of cables that are apart, none inside of a pulley or a wrapping surface, as there "
        "is no way " + lost.missing()
    )


def wrap(found: list[Reach]) -> Float[Array, " w"] | None:
    """Wrap angles [rad] of cables on inner pulleys, less than a turn; None without such pulleys."""
    arcs = [reach.arcs.reshape(-1) for reach in found if reach.arcs.size]
    return jnp.concatenate(arcs) if arcs else None


def warnings(wrap, pulled) -> dict[str, Bool[Array, "..."]]:
    """Warnings from wrap angles `wrap` (..., w) [rad] and tensions `pulled` (..., n) [N], each None
    without such parts.

    `cable_off_pulley`: a cable would leave an inner pulley, where the model holds it as in a
    groove. `cable_pushes`: a rigid cable has a negative tension; later states are unphysical."""
    named = {"cable_off_pulley": wrap, "cable_pushes": pulled}
    return {name: x < -_ROUND_OFF for name, x in named.items() if x is not None}
