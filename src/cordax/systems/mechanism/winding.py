"""Cables that wind round pulleys over any number of turns.

Poses determine the arc on a pulley only up to whole turns. The arcs on pulleys that have `winds`
are therefore coordinates of the mechanism, placed after all others and without velocities. Each
step updates them to the arcs of the new poses that are nearest to the old arcs."""

import functools
import inspect
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax.constant_gather import take
from .cables import CableSet, RigidCable
from .elements import Element
from .guides import Pulley
from .loops import Loop, with_ground
from .routes import Route
from .tree import Tree


def count(loops: Sequence[Loop], elements: Sequence[Element]) -> int:
    """Number of arcs that are coordinates."""
    return sum(n * len(route.wound) for route, n in _routes(loops, elements))


def _routes(loops: Sequence[Loop], elements: Sequence[Element]):
    """Yield each route with the number of cables that follow it."""
    for loop in loops:
        if isinstance(loop, RigidCable):
            yield Route(loop.guides), 1
    for element in elements:
        if isinstance(element, CableSet):
            yield element.routes, len(element.bodies)


def has_arcs(loops: Sequence[Loop], elements: Sequence[Element]) -> bool:
    """Whether any pulley has `winds`."""
    guides = [guide for route, _ in _routes(loops, elements) for guide in route.guides]
    return any(isinstance(guide, Pulley) and guide.winds for guide in guides)


def arcs(
    tree: Tree, loops: Sequence[Loop], elements: Sequence[Element], poses
) -> Float[Array, " w"]:
    """Arcs [rad] on pulleys that have `winds`, first of rigid cables, then of elastic ones."""
    R, p = with_ground(poses.R, poses.p)
    found = [jnp.zeros(0, p.dtype)]
    for loop in loops:
        if isinstance(loop, RigidCable):
            bodies = np.array([tree.body(name) for name in loop.bodies])
            found.append(Route(loop.guides).winding(take(R, bodies), take(p, bodies)))
    for element in elements:
        if isinstance(element, CableSet):
            bodies = element.carriers(tree)
            each = jax.vmap(lambda route, R, p: route.winding(R, p))
            found.append(each(element.routes, take(R, bodies), take(p, bodies)).reshape(-1))
    return jnp.concatenate(found)


def wind(loops: Sequence[Loop], elements: Sequence[Element], near: Float[Array, " w"]):
    """Copies of the loops and elements whose arcs are those nearest to `near` [rad]."""
    start, parts = 0, []
    for part in (*loops, *elements):
        if isinstance(part, RigidCable):
            wound, guides = Route(part.guides).wound, lambda x: x.guides
            values = list(near[start : start + len(wound)])
        elif isinstance(part, CableSet):
            wound, guides = part.routes.wound, lambda x: x.routes.guides
            size = len(part.bodies) * len(wound)
            values = list(near[start : start + size].reshape(len(part.bodies), len(wound)).T)
        else:
            parts.append(part)
            continue
        if len(wound):
            start += len(wound) * values[0].size
            where = lambda x, guides=guides, wound=wound: [guides(x)[j].near for j in wound]
            part = eqx.tree_at(where, part, values, is_leaf=lambda x: x is None)
        parts.append(part)
    return tuple(parts[: len(loops)]), tuple(parts[len(loops) :])


def follows_winding(method: Callable) -> Callable:
    """Decorate a method of a mechanism that takes coordinates `q` (n_q,). The method is evaluated
    with the cables wound by the arcs in `q`, and receives the remaining coordinates as `q`."""
    place = list(inspect.signature(method).parameters).index("q") - 1

    @functools.wraps(method)
    def follow(self, *arguments, **named):
        if not self.n_windings:
            return method(self, *arguments, **named)
        if "q" in named:
            machine, named["q"] = self.wound(named["q"])
        else:
            machine, q = self.wound(arguments[place])
            arguments = (*arguments[:place], q, *arguments[place + 1 :])
        return method(machine, *arguments, **named)

    return follow
