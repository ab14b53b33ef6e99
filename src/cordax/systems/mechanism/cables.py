"""Cables of a mechanism: elastic cables exert forces, rigid cables are constraints.

The unstretched length of a cable is its `rest` length, constant or prescribed over time, plus the
length that drums have paid out: `radius` times a joint coordinate for each of its `windings`."""

import dataclasses
import operator
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_finite, require_positive, require_shape
from ..._base.precision import as_float_array, float_field
from ..._jax.constant_gather import take
from ..._jax.materialise import materialise
from ...mechanics.parts.cables import ElasticCables
from ...mechanics.reference_motion import Reference, as_reference, reference_field
from . import drums
from .body import NAMELESS
from .elements import Effort, Element, Instant, as_names, spread
from .guides import Guide
from .loops import Loop, by_twists, rates, with_ground
from .routes import Route
from .tree import Tree
from .wound import CableTerms


class RigidCable(Loop):
    """Inextensible cable over `guides`, with the same tension in all segments.

    Its length is `rest` [m] (a number or a `Reference`) plus `radius` (w,) [m] times the
    coordinates of `windings`, the drums, which pay out cable with positive angles. The multiplier
    is the tension [N]; it is negative where the cable would have to push. For capstan friction use
    a `CableSet`."""

    guides: tuple[Guide, ...] = eqx.field(converter=tuple)
    rest: Reference = reference_field(unit="m")
    windings: tuple[str, ...] = eqx.field(static=True, converter=as_names, default=())
    radius: Float[Array, " w"] = float_field(unit="m", default=())
    one_sided = True

    def __new__(cls, *parts, **options):
        # with friction, the force on a guide and the sliding speed depend on each other, so there
        # may be two solutions or none
        words = "none: a rigid cable has one tension; use CableSet(friction=...), stiff but elastic"
        require("friction" not in options, "friction", options.get("friction"), words)
        return super().__new__(cls)

    def __check_init__(self):
        require_shape("radius", self.radius, (len(self.windings),))
        Route(self.guides)

    @property
    def bodies(self):
        return tuple(g.body for g in self.guides)

    @property
    def joints(self):
        return self.windings

    @property
    def row_names(self):
        return ("length",)

    def nameless(self):
        guides = tuple(dataclasses.replace(g, body=NAMELESS) for g in self.guides)
        windings = (f"drum {NAMELESS}",) * len(self.windings)
        return dataclasses.replace(self, guides=guides, windings=windings, radius=self.paid_out)

    @property
    def paid_out(self) -> Float[Array, " w"]:
        """Length paid out per radian [m]; zero for drums whose arc is part of the route."""
        ends = drums.pulley_ends(self.guides)
        by_route = drums.turned_by_carrier(self.bodies, self.windings, ends)
        return jnp.where(by_route, 0.0, self.radius)

    def residual(self, t, frames, y):
        given = self.rest.position(t) + jnp.sum(self.paid_out * y)
        R, p = (jnp.stack(x) for x in zip(*frames, strict=True))
        return (jnp.sum(Route(self.guides).at(R, p).parts) - given)[None]


class StrainLaw(eqx.Module):
    """Tension from the strain of the free part of a cable.

    The tension is `F = EA eps + mu_A deps/dt` with eps = u/(l - u) for a stretch u and a straight
    length l. It is zero where the cable is slack or where F would be negative. `stiffness` E A [N]
    and `viscosity` mu A [N s] have shape (n,) or are one value for all cables. The energy is that
    of the free part: without damping the total energy is conserved, unless cable runs onto a pulley
    or drum and takes its strain with it."""

    stiffness: Float[Array, " n"] = float_field(unit="N")
    viscosity: Float[Array, " n"] = float_field(unit="N s", default=0.0)

    def __check_init__(self):
        require_positive("stiffness", self.stiffness)
        require_positive("viscosity", self.viscosity, zero_allowed=True)

    def check_count(self, n: int) -> None:
        """Raise unless each parameter has one value for all cables or one for each of `n`
        cables."""
        for name in ("stiffness", "viscosity"):
            require_shape(name, getattr(self, name), (), (1,), (n,))

    def tension(self, stretch, stretch_rate, free, free_rate):
        """Tension of each cable (n,) [N] from stretch and straight length [m] and their rates
        [m/s]."""
        rest = free - stretch
        strain = stretch / rest
        rate = (stretch_rate - strain * (free_rate - stretch_rate)) / rest
        force = self.stiffness * strain + self.viscosity * rate
        return jnp.where(stretch > 0, jnp.maximum(force, 0.0), 0.0)

    def energy(self, stretch, free) -> Float[Array, " n"]:
        """Elastic energy of each cable [J] from stretch and straight length [m]."""
        return 0.5 * self.stiffness * jnp.maximum(stretch, 0.0) ** 2 / (free - stretch)


class CableSetState(NamedTuple):
    """Lengths and tensions of n cables with k segments each: `stretch` (n,) [m] with its rate
    [m/s], `free` straight length (n,) [m], `tension` (n, k) [N] of the segments, and the
    unstretched length `rest` (n,) [m] to which a strain refers, with its rate."""

    stretch: Float[Array, " n"]
    stretch_rate: Float[Array, " n"]
    free: Float[Array, " n"]
    tension: Float[Array, "n k"]
    rest: Float[Array, " n"]
    rest_rate: Float[Array, " n"]


class CableSet(Element):
    """Set of n elastic cables over guides of the same kinds. `ways` has one list of guides per
    cable.

    - `law`: `ElasticCables` (tension from stretch and its rate) or `StrainLaw` (tension from the
      strain of the free part);
    - `rest` (n,) [m] or a `Reference` of it, `windings` (names of drum coordinates, one tuple per
      cable; with drums at both ends, first the drum at the first end) and `radius` (n, w) [m]: as
      for `RigidCable`. A single drum may be at either end (`drums.locate`);
    - `friction` mu: capstan friction coefficient, one for all guides or (n, k - 1).

    With friction, the tension grows along the cable by a factor `exp(mu theta tanh(s/slip_width))`
    at each guide. Here theta is the angle by which the cable turns at the guide, and s [m/s] is its
    sliding speed over the guide towards its last end. Below `slip_width` the cable sticks: it
    creeps at the speed at which the factor balances the load. The tensions of the segments are
    scaled so that their mean, weighted by length, follows the law.

    Guides of type `Wrap` touch the cable only where it bends round them. A set with w of them has
    four more outputs, each prefixed with the name of the set: the `length` (n,) [m];
    `wrap_angle` (n, w) [rad], by which a cable turns on each surface;
    `tangent_points` (n, w, 2, 3) [m], where the cable meets and leaves each surface; and
    `contact_force` (n, w, 3) [N], which the cable exerts on each surface."""

    routes: Route
    law: ElasticCables | StrainLaw
    rest: Reference = eqx.field(metadata={"unit": "m"})
    radius: Float[Array, "n w"] = eqx.field(metadata={"unit": "m"})
    friction: Float[Array, "..."]
    slip_width: Float[Array, ""]
    bodies: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    windings: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    slides: bool = eqx.field(static=True)

    def __init__(
        self,
        ways: Sequence[Sequence[Guide]],
        law: ElasticCables | StrainLaw,
        rest,
        windings=(),
        radius=None,
        *,
        friction=None,
        slip_width=1e-3,
        name: str = "cable",
    ):
        self.routes, self.bodies = stacked_routes(ways)
        n = len(self.bodies)
        listed = isinstance(windings, (tuple, list)) and all(map(_are_names, windings))
        require(listed, "windings", windings, "names of drums for each cable")
        self.windings = tuple(as_names(w) for w in windings) or ((),) * n
        require(len(self.windings) == n, "windings", self.windings, f"{n} of them")
        counts = {len(w) for w in self.windings}
        require(len(counts) == 1, "windings", self.windings, "as many drums for each cable")
        self.radius = _radii(radius, n, counts.pop())
        require(hasattr(law, "check_count"), "law", law, "ElasticCables or StrainLaw")
        require(isinstance(name, str) and name != "", "name", name, "a name")
        self.law, self.rest = law, as_reference(rest)
        law.check_count(n)
        require_shape("rest", self.rest.position(0.0), (), (n,))
        self.slides = friction is not None
        inner = len(self.routes.guides) - 2
        friction = 0.0 if friction is None else friction
        self.friction = as_float_array(friction, "friction")
        self.slip_width = as_float_array(slip_width, "slip_width")
        require_shape("friction", self.friction, (), (n, inner))
        self.name = name

    def __check_init__(self):
        require_finite("radius", self.radius)
        require_positive("friction", self.friction, zero_allowed=True)
        require_positive("slip_width", self.slip_width)

    @property
    def output_names(self):
        quantities = ("tension", "stretch", "free")
        if self.routes.surfaces:
            quantities += ("length", "wrap_angle", "tangent_points", "contact_force")
        return tuple(f"{self.name}_{quantity}" for quantity in quantities)

    def check(self, tree: Tree):
        for names in self.bodies:
            for body in names:
                tree.body(body, f"{self.name}: body")
        for names in self.windings:
            tree.scalars(names, f"{self.name}: windings")

    def carriers(self, tree: Tree) -> np.ndarray:
        """Indices (n, k + 1) of the bodies that carry the guides."""
        return carriers(tree, self.bodies)

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether the first and the last guide are pulleys."""
        return drums.pulley_ends(self.routes.guides)

    def drums(self, tree: Tree) -> drums.Drums:
        """Ends of the cables at which drums and a prescribed `rest` length pay out cable."""
        return drums.locate(tree, self.bodies, self.windings, self.ends)

    @property
    def paid_out(self) -> Float[Array, "n w"]:
        """Length paid out per radian [m]; zero for drums whose arc is part of the routes."""
        both = zip(self.bodies, self.windings, strict=True)
        by_route = [drums.turned_by_carrier(*names, self.ends) for names in both]
        return jnp.where(np.stack(by_route), 0.0, self.radius)

    def lengths(self, at: Instant) -> Float[Array, " n"]:
        """Lengths of the cable paths from end to end [m]."""
        return route_lengths(self.routes, self.carriers(at.tree), at)

    def state(self, at: Instant) -> CableSetState:
        """Lengths and tensions of the cables at an instant."""
        bodies, drums = self.carriers(at.tree), self.drums(at.tree)
        poses, dtype = at.motions.poses, at.q.dtype
        R, p = with_ground(poses.R, poses.p)
        V = jnp.concatenate([at.motions.V, jnp.zeros((1, 6), dtype)])
        t, one = jnp.asarray(at.t, dtype), jnp.ones((), dtype)

        def of_one(route, R, p, V):
            return rates(lambda R, p: jnp.concatenate(route.at(R, p)), R, p, V)

        carried = (take(x, bodies) for x in (R, p, V))
        values, speeds = materialise(jax.vmap(of_one)(self.routes, *carried))
        k = len(self.routes.guides) - 1
        parts, straight, wrap = values[:, :k], values[:, k : 2 * k], values[:, 2 * k :]
        rest, rest_rate = jax.jvp(self.rest.position, (t,), (one,))
        given = rest + jnp.sum(self.paid_out * take(at.q, drums.q), axis=1)
        drum_rate = self.paid_out * take(at.v, drums.v)
        given_rate = rest_rate + jnp.sum(drum_rate, axis=1)
        stretch = jnp.sum(parts, axis=1) - given
        stretch_rate = jnp.sum(speeds[:, :k], axis=1) - given_rate
        free, free_rate = jnp.sum(straight, axis=1), jnp.sum(speeds[:, k : 2 * k], axis=1)
        if isinstance(self.law, StrainLaw):
            mean = self.law.tension(stretch, stretch_rate, free, free_rate)
            own, own_rate = free - stretch, free_rate - stretch_rate
        else:
            mean = self.law.tension(stretch, stretch_rate)
            own, own_rate = given, given_rate
        if not self.slides:
            tension = jnp.broadcast_to(mean[:, None], (mean.shape[0], k))
        else:
            # speed of the cable over a guide: rate of pay-out at the first end, plus the stretch
            # rate of the parts before the guide for uniform strain, minus their rate of length
            even = jnp.cumsum(straight[:, : k - 1], axis=1) / free[:, None]
            first = jnp.where(drums.rest_last, 0.0, rest_rate)
            first = first + jnp.sum(jnp.where(drums.last, 0.0, drum_rate), axis=1)
            given_so_far = first[:, None] + even * stretch_rate[:, None]
            passing = given_so_far - jnp.cumsum(speeds[:, : k - 1], axis=1)
            share = jnp.tanh(passing / self.slip_width)
            growth = jnp.cumsum(self.friction * jnp.maximum(wrap, 0.0) * share, axis=1)
            factor = jnp.exp(jnp.concatenate([jnp.zeros_like(mean)[:, None], growth], axis=1))
            tension = mean[:, None] * factor * free[:, None]
            tension = tension / jnp.sum(straight * factor, axis=1, keepdims=True)
        return CableSetState(stretch, stretch_rate, free, tension, own, own_rate)

    def effort(self, at, u):
        bodies, drums = self.carriers(at.tree), self.drums(at.tree)
        tension = materialise(self.state(at).tension)
        wrenches = pulled(self.routes, bodies, at, tension)
        joint = None
        if drums.v.size:
            # the tension of the segment next to a drum acts on the drum
            pulling = jnp.where(drums.last, tension[:, -1:], tension[:, :1])
            torque = (pulling * self.paid_out).reshape(-1)
            joint = spread(drums.v.reshape(-1), at.tree.n_v, torque)
        return Effort(joint, wrenches)

    def strains(self, at: Instant):
        """Strain, strain rate [1/s], stretch rate [m/s] and E A [N] of the cables, shape (n,)
        each."""
        free_of_it = "none, as a programme takes one tension for a cable"
        require(not self.slides, f"{self.name}: friction", "capstan friction", free_of_it)
        cable = self.state(at)
        strain = cable.stretch / cable.rest
        rate = (cable.stretch_rate - strain * cable.rest_rate) / cable.rest
        stiffness = self.law.stiffness
        if not isinstance(self.law, StrainLaw):
            stiffness = stiffness * cable.rest
        return strain, rate, cable.stretch_rate, jnp.broadcast_to(stiffness, strain.shape)

    def energy(self, at):
        cable = self.state(at)
        if isinstance(self.law, StrainLaw):
            return jnp.sum(self.law.energy(cable.stretch, cable.free))
        return jnp.sum(self.law.energy(cable.stretch))

    def outputs(self, at, u):
        cable = self.state(at)
        values = cable.tension, cable.stretch, cable.free
        if self.routes.surfaces:
            values += self.contacts(at, cable.tension)
        return dict(zip(self.output_names, values, strict=True))

    def contacts(self, at: Instant, tension):
        """Lengths and contacts of the cables with the w surfaces on their paths, at tensions
        (n, k) [N] of the segments.

        Returns the lengths (n,) [m], the wrap angles (n, w) [rad], the points (n, w, 2, 3) [m]
        where the cables meet and leave the surfaces, and the forces (n, w, 3) [N] on the surfaces
        in world axes."""
        bodies, where = self.carriers(at.tree), np.array(self.routes.surfaces)
        R, p = with_ground(at.motions.poses.R, at.motions.poses.p)

        def of_one(route, R, p):
            passed = [route.passages(R, p)[i] for i in where]
            stack = lambda name: jnp.stack([getattr(s, name) for s in passed])
            along = jnp.stack([s.along() for s in passed])
            return jnp.sum(route.at(R, p).parts), stack("turn"), stack("points"), along

        carried = (take(x, bodies) for x in (R, p))
        length, angle, points, along = jax.vmap(of_one)(self.routes, *carried)
        into, out = tension[:, where - 1, None], tension[:, where, None]
        return length, angle, points, out * along[:, :, 1] - into * along[:, :, 0]


def stacked_routes(ways: Sequence[Sequence[Guide]]) -> tuple[Route, tuple[tuple[str, ...], ...]]:
    """Stack the paths of cables over guides of the same kinds into one `Route`; return it with the
    names of the bodies that carry the guides."""
    listed = lambda x: isinstance(x, (tuple, list))
    ok = listed(ways) and all(listed(w) and all(isinstance(g, Guide) for g in w) for w in ways)
    require(ok, "ways", ways, "for each cable a list of guides, such as Eyelet")
    routes = [Route(tuple(way)) for way in ways]
    require(len(routes) > 0, "ways", "none", "at least one cable")
    bare = [Route(tuple(dataclasses.replace(g, body=NAMELESS) for g in r.guides)) for r in routes]
    same = len({jax.tree.structure(r) for r in bare}) == 1
    require(same, "ways", "guides that differ in kind", "the same kinds of guides for all")
    return jax.tree.map(lambda *x: jnp.stack(x), *bare), tuple(r.bodies for r in routes)


def carriers(tree: Tree, bodies: Sequence[Sequence[str]]) -> np.ndarray:
    """Indices (n, g) of the bodies that carry the guides of n cables."""
    return np.array([[tree.body(b) for b in names] for names in bodies])


def route_lengths(routes: Route, bodies: np.ndarray, at: Instant) -> Float[Array, " n"]:
    """Lengths [m] of stacked `routes` whose guides are on `bodies` (n, g)."""
    R, p = with_ground(at.motions.poses.R, at.motions.poses.p)
    whole = lambda route, R, p: jnp.sum(route.at(R, p).parts)
    return jax.vmap(whole)(routes, take(R, bodies), take(p, bodies))


def pulled(routes: Route, bodies: np.ndarray, at: Instant, tension) -> Float[Array, "N 6"]:
    """Wrenches on the bodies of a mechanism from stacked `routes`, given the `tension` of each
    segment, shape (n, k) [N]. Each segment pulls along its direction on both of its ends."""
    R, p = with_ground(at.motions.poses.R, at.motions.poses.p)
    pull = -jax.vmap(lambda route, *at: by_twists(lambda R, p: route.at(R, p).parts, *at))(
        routes, take(R, bodies), take(p, bodies), tension
    )
    n = at.tree.n_bodies
    onto = jnp.asarray(np.eye(n + 1)[bodies.reshape(-1)][:, :n], at.q.dtype)
    return jnp.sum(onto[:, :, None] * pull.reshape(-1, 6)[:, None, :], axis=0)


def _are_names(x) -> bool:
    """Whether `x` is a name or a list of names."""
    return isinstance(x, str) or (
        isinstance(x, (tuple, list)) and all(isinstance(name, str) for name in x)
    )


def _radii(radius, n: int, drums: int) -> Float[Array, "n w"]:
    """Radii of the drums of n cables, from one value for all cables or one for each."""
    if radius is None:
        require(drums == 0, "radius", None, "that of the drums that `windings` names")
        return jnp.zeros((n, drums))
    radius = as_float_array(radius, "radius")
    require_finite("radius", radius)
    require_shape("radius", radius, (), (n, drums), *([(n,)] if drums == 1 else []))
    return jnp.broadcast_to(radius.reshape(n, -1) if radius.ndim else radius, (n, drums))


def wound_cables(loops: Sequence[Loop], elements: Sequence[Element]):
    """Guides, windings and radii (w,) of each cable that winds on a pulley."""
    for loop in loops:
        if isinstance(loop, RigidCable) and loop.windings and any(drums.pulley_ends(loop.guides)):
            yield loop.guides, loop.windings, loop.radius
    for element in elements:
        if isinstance(element, CableSet) and element.radius.size and any(element.ends):
            for i, names in enumerate(element.bodies):
                guides = jax.tree.map(operator.itemgetter(i), element.routes.guides)
                named = zip(guides, names, strict=True)
                guides = tuple(dataclasses.replace(g, body=name) for g, name in named)
                yield guides, element.windings[i], element.radius[i]


def strain_terms(instant, sets: Sequence[CableSet], t, q, v, q_rate) -> CableTerms:
    """Strain terms of all cables of `sets`. `instant(t, q, v)` returns the `Instant` at which they
    are evaluated; `q_rate` is dq/dt."""

    def measured(t, q, v):
        at = instant(t, q, v)
        return tuple(jnp.concatenate(x) for x in zip(*(s.strains(at) for s in sets), strict=True))

    strain, _, _, stiffness = measured(t, q, v)
    rates = lambda v: measured(t, q, v)[1:3]
    rows, columns = jax.jacrev(rates)(v)
    moved = lambda t, q: measured(t, q, v)[1]
    t = jnp.asarray(t, q.dtype)
    bias = jax.jvp(moved, (t, q), (jnp.ones_like(t), q_rate))[1]
    columns = jnp.where((strain > 0)[:, None], columns, 0.0).T
    return CableTerms(strain, stiffness, columns, rows, bias)
