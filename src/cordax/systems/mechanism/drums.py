"""Drums at the ends of cables: the end that each drum winds, and whether its arc is part of the
route.

`windings` of a cable are names of drum coordinates. A drum whose `Pulley` is on the body that
carries the drum pays out `radius` times its coordinate. A drum whose `Pulley` is on the drum
itself, and turns with it, pays out through the arc of the route, so its coordinate must not be
counted a second time."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._base.checks import describe, require, require_values
from .body import Body
from .guides import Guide, Pulley
from .joints import Fixed, Revolute
from .tree import Tree


class Drums(NamedTuple):
    """Drums of n cables with w drums each: indices of their coordinates in `q` and `v` (n, w),
    whether each is at the last end of its cable, `last` (n, w), and whether `rest` is paid out at
    the last end (n,)."""

    q: np.ndarray
    v: np.ndarray
    last: np.ndarray
    rest_last: np.ndarray


@functools.cache
def locate(
    tree: Tree,
    bodies: tuple[tuple[str, ...], ...],
    windings: tuple[tuple[str, ...], ...],
    pulleys: tuple[bool, bool],
) -> Drums:
    """Find the end of each cable at which its drums are. `bodies` carry the guides; `pulleys` holds
    whether the first and the last guide are pulleys.

    Of two drums, the first is at the first end and the second at the last end. A single drum is at
    the end whose body is the drum or the nearest to it towards the root of the tree. The same rule
    places a prescribed `rest` length without drums, as if its drum were on the ground. If both ends
    are equally near, the end with a pulley is chosen, then the first end."""
    q, v = zip(*(tree.scalars(names, "windings") for names in windings), strict=True)
    last, rest_last = [], []
    for names, rows in zip(bodies, v, strict=True):
        ends = names[0], names[-1]
        drums = [tree.owner[row] for row in rows]
        if len(drums) > 1:
            last.append(np.arange(len(drums)) > 0)
        else:
            last.append(np.array([_at_last(tree, ends, drum, pulleys) for drum in drums], bool))
        at = last[-1][0] if drums else _at_last(tree, ends, tree.n_bodies, pulleys)
        rest_last.append(at)
    return Drums(np.stack(q), np.stack(v), np.stack(last), np.array(rest_last, bool))


def _at_last(tree: Tree, ends: tuple[str, str], drum: int, pulleys: tuple[bool, bool]) -> bool:
    """Whether a drum winds the last of two ends on bodies `ends`."""
    path = [drum]
    while path[-1] < tree.n_bodies:
        path.append(int(tree.parent[path[-1]]))
    carriers = [tree.body(name) for name in ends]
    distance = [path.index(i) if i in path else len(path) for i in carriers]
    return (distance[1], not pulleys[1]) < (distance[0], not pulleys[0])


def pulley_ends(guides: Sequence[Guide]) -> tuple[bool, bool]:
    """Whether the first and the last guide are each a `Pulley`."""
    return isinstance(guides[0], Pulley), isinstance(guides[-1], Pulley)


def turned_by_carrier(bodies, windings, pulleys: tuple[bool, bool]) -> np.ndarray:
    """Mask (w,) of the drums whose `Pulley` is on the body that `windings` names, for a cable over
    guides on `bodies`. The route already contains the length that these drums pay out."""
    ends = zip((bodies[0], bodies[-1]), pulleys, strict=True)
    carriers = {name for name, is_pulley in ends if is_pulley}
    return np.array([name in carriers for name in windings], bool)


def check(bodies: tuple[Body, ...], tree: Tree, guides: Sequence[Guide], windings, radius):
    """Raise if the drums of one cable, `windings` with `radius` (w,) [m], contradict the pulleys at
    its ends."""
    ends, names = (guides[0], guides[-1]), tuple(g.body for g in guides)
    drums = locate(tree, (names,), (windings,), pulley_ends(guides))
    for j, name in enumerate(windings):
        owner = int(tree.owner[drums.v[0, j]])
        for at_last, guide in enumerate(ends):
            if not isinstance(guide, Pulley):
                continue
            if guide.body != name:
                where = f"a Pulley on {guide.body!r}, which is fixed to the drum {name!r}"
                expected = f"one on {name!r} itself, or on the body that carries {name!r}"
                apart = not _fixed_to(tree, tree.body(guide.body), owner)
                require(apart, "windings", where, expected)
                continue
            joint = bodies[owner].joint
            expected = "a Revolute joint, as this body carries the Pulley of a drum"
            turns = isinstance(joint, Revolute)
            require(turns, f"joint of {name!r}", type(joint).__name__, expected)
            expected = "first the drum at the first end, then that at the last"
            require(bool(drums.last[0, j]) == bool(at_last), "windings", windings, expected)
            sign = -1.0 if guide.clockwise != bool(at_last) else 1.0
            numbers = radius[j], joint.axis, guide.axis, guide.radius  # pyright: ignore
            fits = functools.partial(_pays_out, sign)
            expected = "the length that its Pulley pays out per radian, "
            expected += f"{sign:+.0f} times {describe(guide.radius)} about its axis"
            require_values(f"radius of {name!r}", fits, *numbers, expected=expected)


def _pays_out(sign: float, radius, joint_axis, drum_axis, drum_radius):
    """Whether a drum pays out `radius` [m] per radian of its joint: `sign` times the drum radius
    about the joint axis. True if the axes are not parallel."""
    along = (joint_axis * drum_axis).sum()
    along = along / ((joint_axis * joint_axis).sum()) ** 0.5
    about = sign * (2.0 * (along > 0) - 1.0) * drum_radius
    return (abs(abs(along) - 1.0) > 1e-5) | (abs(radius - about) <= 1e-6 * drum_radius)


def _fixed_to(tree: Tree, body: int, drum: int) -> bool:
    """Whether a body is the drum or is connected to it by fixed joints only."""
    while body < tree.n_bodies and body != drum and issubclass(tree.kinds[body], Fixed):
        body = int(tree.parent[body])
    return body == drum
