"""Drawing of a mechanism: bars between bodies, cables along their paths, and rotating wheels."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...mechanics.parts.pulley_drawing import joined, wheels
from ...mechanics.scene import Bodies, Scene
from .body import Body
from .cables import CableSet, RigidCable
from .drums import Drums, locate, pulley_ends
from .elements import Element, Instant
from .guides import Eyelet, Pulley
from .kinematics import cross
from .loops import Loop, SphericalLoop, frames, with_ground
from .routes import Route
from .tension_cables import TensionCables
from .tree import Tree
from .wound import WoundCables
from .wraps import Wrap


def scene(
    at: Instant, bodies: tuple[Body, ...], loops: tuple[Loop, ...], elements: tuple[Element, ...]
) -> Scene:
    """Scene of one configuration. The cables have the same order as in `tensions`."""
    R, p = with_ground(at.motions.poses.R, at.motions.poses.p)
    tree, wound = at.tree, [e for e in elements if isinstance(e, WoundCables)]
    ends = {tree.body(name) for law in wound for name in law.cables}
    lines, turning, surfaces = {}, [], []
    if bars := _bars(tree, bodies, loops, elements, ends, R, p):
        lines["bar"] = jnp.stack(bars)
    ways = []
    for law in wound:
        index = np.array([tree.body(name) for name in law.cables])
        cable = law.state(at)
        length = (cable.rest + cable.stretch)[:, None]
        ways.append(jnp.stack([p[index] - length * R[index, :, 0], p[index]], axis=1))
        up = tree.parent[index]
        radius = jnp.stack([bodies[i].joint.radius for i in index])  # pyright: ignore
        turning.append(wheels(p[up], R[up, :, 0], R[up, :, 1], jnp.zeros(len(up)), radius))
    for routes, carriers, paid_out in _routed(at, loops, elements):
        of_one = lambda route, R, p: route.line(R, p)
        ways.append(jax.vmap(of_one)(routes, R[carriers], p[carriers]))
        drawn = jax.vmap(_wheels)(routes, R[carriers], p[carriers], paid_out)
        turning += [jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), w) for w in drawn]
        for i in routes.surfaces:
            at_carrier = R[carriers[:, i]], p[carriers[:, i]]
            surfaces.append(jax.vmap(_surface)(routes.guides[i], *at_carrier))
    if ways:
        # pad polylines to the same number of points by repeating the last point
        most = max(x.shape[1] for x in ways)
        longer = lambda x: jnp.concatenate([x, jnp.repeat(x[:, -1:], most - x.shape[1], 1)], 1)
        lines["cable"] = jnp.concatenate([longer(x) for x in ways])
    for element in elements:
        lines |= {kind: x for kind, x in element.lines(at).items() if x.shape[0]}
    shown = {"pulley": turning, "surface": surfaces}
    shown = {kind: joined(*parts) for kind, parts in shown.items() if parts}
    return Scene(lines, {"joint": p[:-1]}, shown)


def _surface(guide: Wrap, R, p) -> Bodies:
    axes = jnp.sum(R[:, :, None] * guide.axes[None], axis=1)
    return Bodies(p + jnp.sum(R * guide.at, axis=1), axes, guide.wrap.faces())


def tensions(at: Instant, loops, elements, multipliers) -> Float[Array, " n"] | None:
    """Tension of every cable [N]; the mean over its segments if friction makes them differ. None
    without cables."""
    found = [e.tension(e.state(at)) for e in elements if isinstance(e, WoundCables)]
    found += [jnp.mean(e.state(at).tension, axis=1) for e in elements if isinstance(e, CableSet)]
    pulled = [i for i, loop in enumerate(loops) if isinstance(loop, RigidCable)]
    rows = np.cumsum([0, *(len(loop.row_names) for loop in loops)])
    found += [multipliers[rows[i] : rows[i + 1]] for i in pulled]
    return jnp.concatenate(found) if found else None


def _bars(tree: Tree, bodies, loops, elements, cables: set[int], R, p) -> list:
    """Bars between bodies, and from bodies to the points where loops and elastic cables are
    attached, (2, 3) each [m]."""
    bars = [
        jnp.stack([p[tree.parent[i]], p[i]])
        for i in range(tree.n_bodies)
        if i not in cables and tree.parent[i] < tree.n_bodies
    ]
    ends = []
    for loop in loops:
        if isinstance(loop, SphericalLoop):
            points = loop.point, loop.successor_point
            ends += zip(map(tree.body, loop.bodies), points, strict=True)
    # a body without children is drawn as far beyond its centre of mass as its origin is before it
    last = set(range(tree.n_bodies)) - {*tree.parent.tolist(), *(i for i, _ in ends)}
    ends += [(i, 2.0 * bodies[i].inertia().centre) for i in sorted(last) if bodies[i].solids]
    for element in elements:
        if isinstance(element, CableSet | TensionCables):
            guides = element.routes.guides
            ends += [
                (tree.body(names[end]), guides[end].at[i])
                for i, names in enumerate(element.bodies)
                for end in (0, -1)
                if isinstance(guides[end], Eyelet)
            ]
    return bars + [
        jnp.stack([p[i], p[i] + jnp.sum(R[i] * x, axis=1)])
        for i, x in ends
        if i < tree.n_bodies and i not in cables
    ]


def _routed(at: Instant, loops, elements):
    """Yield cables over guides, one kind at a time: routes, indices of the bodies that carry the
    guides (n, g), and the lengths that drums at the first and the last end have paid out
    (n, 2) [m]. Drums that turn with their carrier are excluded."""
    for element in elements:
        if isinstance(element, CableSet):
            paid_out = _at_ends(element.drums(at.tree), element.paid_out, at.q)
            yield element.routes, element.carriers(at.tree), paid_out
        if isinstance(element, TensionCables):
            nothing = jnp.zeros((len(element.names), 2), at.q.dtype)
            yield element.routes, element.carriers(at.tree), nothing
    for loop in loops:
        if isinstance(loop, RigidCable):
            carriers = np.array([[at.tree.body(name) for name in loop.bodies]])
            found = locate(at.tree, (loop.bodies,), (loop.windings,), pulley_ends(loop.guides))
            route = jax.tree.map(lambda x: x[None], Route(loop.guides))
            yield route, carriers, _at_ends(found, loop.paid_out[None], at.q)


def _at_ends(drums: Drums, paid_out, q) -> Float[Array, "n 2"]:
    length = paid_out * q[drums.q]
    both = [jnp.sum(jnp.where(drums.last == last, length, 0.0), axis=1) for last in (0, 1)]
    return jnp.stack(both, axis=1)


def _wheels(route: Route, R, p, paid_out) -> list[Bodies]:
    """Wheels of the pulleys of one cable. An inner pulley turns as the cable runs over it without
    slip; a drum turns as it pays out `paid_out`, shape (2,) [m]."""
    state, last, found = route.at(R, p), len(route.guides) - 1, []
    for i, (guide, frame) in enumerate(zip(route.guides, frames(R, p), strict=True)):
        if not isinstance(guide, Pulley):
            continue
        if 0 < i < last:
            run = paid_out[0] - jnp.sum(state.parts[:i])
        else:
            end = 0 if i == 0 else 1
            run = paid_out[end] * (1 if i == 0 else -1)
        sign = -1.0 if guide.clockwise else 1.0
        x = frame.direction(guide.zero)
        y = frame.direction(cross(guide.axis, guide.zero))
        wheel = wheels(
            frame.point(guide.at)[None],
            x[None],
            y[None],
            (sign * run / guide.radius)[None],
            guide.radius,
        )
        found.append(wheel)
    return found
