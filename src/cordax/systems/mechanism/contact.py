"""Contact between bodies, and between bodies and obstacles."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_instance
from ..._base.fields import name_field, part_field
from ..._jax.constant_gather import take
from ...mechanics.contacts import Contacts, spread_law
from ...mechanics.parts.contact_geometry import Pose, Touch, candidates
from ...mechanics.parts.contact_law import ContactLaw
from ...mechanics.parts.shapes import HeightField, Shape
from .body import WORLD
from .elements import Effort, Element, Instant
from .kinematics import cross
from .tree import Tree

#: penetration, relative to half of the smallest size of a shape, above which a run warns
_DEEP = 0.5


class ContactState(NamedTuple):
    """All candidate contacts: `touch` with k points, and for each point the bodies of its first and
    second surface (k,) and the index of its pair (k,)."""

    touch: Touch
    first: np.ndarray
    second: np.ndarray
    pair: np.ndarray

    def relative(self, V) -> tuple[Float[Array, "k 3"], Float[Array, "k 3"]]:
        """Velocity [m/s] at the contact points, and angular velocity [rad/s], of the first surfaces
        relative to the second ones, from spatial velocities (N + 1, 6)."""
        V = take(V, self.first) - take(V, self.second)
        return V[:, 3:] + cross(V[:, :3], self.touch.point), V[:, :3]


class Contact(Element):
    """Contact of the shapes of bodies with obstacles and with each other, with one `law`.

    - `shapes`: mapping from the name of a body to its `Shape` or several, in body axes; those of
      "world" are obstacles;
    - `obstacles`: shapes that do not move; every shape of a body is paired with each of them;
    - `law`: `ContactLaw`, with the stiffness [N/m] per contact point;
    - `pairs`: bodies that may touch each other, as pairs of names of bodies or of `groups`; a group
      paired with itself stands for all pairs within it;
    - `groups`: mapping from a group name to names of bodies;
    - `shape_pairs`: replaces the pairs from obstacles and `pairs` by pairs of indices in the list
      of all shapes, in the order of `shapes` and `obstacles`; the fields of the `law` may then have
      one value per pair, shape (pairs,);
    - `name`: prefix of the outputs. `contact_gap` (pairs,) [m]; `contact_point` (k, 3) [m],
      `contact_force` (k, 3) [N] on the first body of the pair and `contact_slip` (k,) [m/s] of all
      candidate contacts; `pair_names` lists the pairs.

    Each combination of materials needs its own `Contact`."""

    bodies: tuple[str, ...] = eqx.field(static=True)
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    shapes: tuple[Shape, ...] = part_field()
    law: ContactLaw = part_field()
    name: str = name_field()

    def __init__(
        self,
        shapes: Mapping[str, Shape | Sequence[Shape]],
        obstacles: Shape | Sequence[Shape] = (),
        law: ContactLaw | None = None,
        *,
        pairs: Sequence[tuple[str, str]] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
        shape_pairs: Sequence[tuple[int, int]] | None = None,
        name: str = "contact",
    ):
        require(isinstance(shapes, Mapping), "shapes", shapes, "names of bodies with their shapes")
        placed = [(body, shape) for body, some in shapes.items() for shape in _several(some)]
        placed += [(WORLD, shape) for shape in _several(obstacles, "obstacles")]
        self.bodies = tuple(body for body, _ in placed)
        self.shapes = tuple(shape for _, shape in placed)
        self.law = ContactLaw() if law is None else law
        self.name = name
        groups = {} if groups is None else groups
        listed = isinstance(groups, Mapping) and all(
            isinstance(some, (tuple, list)) for some in groups.values()
        )
        require(listed, "groups", groups, "names with lists of names of bodies")
        require(isinstance(pairs, (tuple, list)), "pairs", pairs, "a list of pairs of names")
        if shape_pairs is None:
            self.pairs = _pairs(self.bodies, pairs, dict(groups))
        else:
            self.pairs = tuple((int(i), int(j)) for i, j in shape_pairs)
            inside = all(0 <= k < len(placed) for pair in self.pairs for k in pair)
            require(inside, "shape_pairs", shape_pairs, f"places from 0 to {len(placed) - 1}")
        for i, j in self.pairs:
            _check_pair(self.shapes[i], self.shapes[j])
        count = None if shape_pairs is None else len(self.pairs)
        for x in jax.tree.leaves(self.law):
            require(jnp.shape(x) in ((), (count,)), "law", jnp.shape(x), "numbers, or one per pair")

    @staticmethod
    def can_touch(first: Shape, second: Shape) -> bool:
        """Whether contact between shapes of these kinds is supported."""
        try:
            _check_pair(first, second)
        except ValueError:
            return False
        return True

    @property
    def output_names(self):
        return tuple(f"{self.name}_{x}" for x in ("gap", "point", "force", "slip"))

    @property
    def pair_names(self) -> tuple[tuple[str, str], ...]:
        """Names of the bodies of each pair."""
        return tuple((self.bodies[i], self.bodies[j]) for i, j in self.pairs)

    def check(self, tree: Tree):
        for body in self.bodies:
            tree.body(body, "Contact: shapes")

    def state(self, at: Instant) -> ContactState:
        """Candidate contact points of all pairs at an instant."""
        R, p = at.motions.poses.R, at.motions.poses.p
        R = jnp.concatenate([R, jnp.eye(3, dtype=R.dtype)[None]])
        p = jnp.concatenate([p, jnp.zeros((1, 3), p.dtype)])
        index = np.array([at.tree.body(name) for name in self.bodies])
        touches, firsts, seconds, numbers = [], [], [], []
        for narrow, a, b, members, swap in self._kinds():
            i, j = index[[k for k, _ in members]], index[[k for _, k in members]]
            pose = lambda bodies: Pose(take(R, bodies), take(p, bodies))
            axes = 0, 0, None if isinstance(b, HeightField) else 0, 0
            touch = jax.vmap(narrow, in_axes=axes)(a, pose(i), b, pose(j))
            count = touch.gap.shape[1]
            touch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), touch)
            if swap:
                touch, i, j = touch.swapped(), j, i
                members = [(k, m) for m, k in members]
            touches.append(touch)
            firsts.append(np.repeat(i, count))
            seconds.append(np.repeat(j, count))
            numbers.append(np.repeat([self.pairs.index(pair) for pair in members], count))
        touch = jax.tree.map(lambda *x: jnp.concatenate(x), *touches)
        return ContactState(touch, *(np.concatenate(x) for x in (firsts, seconds, numbers)))

    def _kinds(self):
        """Yield the pairs of each kind: their contact function, the stacked first and second
        shapes, the pairs of indices in `shapes` in that order, and whether the order is reversed
        relative to `pairs`."""
        kinds: dict[Any, list[tuple[int, int]]] = {}
        for i, j in self.pairs:
            for swap, narrow in candidates(type(self.shapes[i]), type(self.shapes[j])):
                pair = (j, i) if swap else (i, j)
                key = narrow, swap, *(self._kind(k) for k in pair)
                kinds.setdefault(key, []).append(pair)
        for (narrow, swap, *_), members in kinds.items():
            stack = lambda places: jax.tree.map(
                lambda *x: jnp.stack(x), *(self.shapes[k] for k in places)
            )
            fields = isinstance(self.shapes[members[0][1]], HeightField)
            second = self.shapes[members[0][1]] if fields else stack([j for _, j in members])
            yield narrow, stack([i for i, _ in members]), second, members, swap

    def _kind(self, k: int):
        """Key that must be equal for shapes to be stacked."""
        shape = self.shapes[k]
        leaves, structure = jax.tree.flatten(shape)
        own = k if isinstance(shape, HeightField) else None
        return type(shape), structure, tuple(jnp.shape(x) for x in leaves), own

    def effort(self, at, u):
        if not self.pairs:
            return Effort()
        state = self.state(at)
        force, moment = self._forces(at, state)
        each = jnp.concatenate([cross(state.touch.point, force) + moment, force], axis=1)
        n, k = at.tree.n_bodies, len(state.pair)
        onto = np.zeros((n + 1, k))
        onto[state.first, np.arange(k)] += 1.0
        onto[state.second, np.arange(k)] -= 1.0
        onto = jnp.asarray(onto[:-1], each.dtype)
        return Effort(wrenches=jnp.sum(onto[:, :, None] * each[None], axis=1))

    def _forces(self, at: Instant, state: ContactState):
        """Forces and moments (k, 3) on the first surfaces."""
        touch = state.touch
        velocity, spin = state.relative(_with_ground(at.motions.V))

        def at_point(law: ContactLaw, gap, normal, velocity, spin):
            force = law.surface_force(-gap, normal, velocity)
            return force, law.moment(jnp.sum(force * normal), normal, spin)

        laws = self._laws(state)
        force, moment = jax.vmap(at_point)(laws, touch.gap, touch.normal, velocity, spin)
        return force, jnp.zeros_like(force) if moment is None else moment

    def _laws(self, state: ContactState) -> ContactLaw:
        """Contact law of each point, with fields of shape (k,)."""
        pick = lambda x: take(x, state.pair) if jnp.ndim(x) else x
        return spread_law(jax.tree.map(pick, self.law), len(state.pair))

    def energy(self, at):
        if not self.pairs:
            return jnp.zeros((), at.q.dtype)
        state = self.state(at)
        return jnp.sum(self._laws(state).elastic_energy(-state.touch.gap))

    def gaps(self, state: ContactState) -> Float[Array, " pairs"]:
        """Smallest gap [m] of each pair."""
        return jax.ops.segment_min(state.touch.gap, state.pair, len(self.pairs))

    def outputs(self, at, u):
        if not self.pairs:
            return {}
        state = self.state(at)
        velocity, _ = state.relative(_with_ground(at.motions.V))
        return {
            f"{self.name}_gap": self.gaps(state),
            f"{self.name}_point": state.touch.point,
            f"{self.name}_force": self._forces(at, state)[0],
            f"{self.name}_slip": self.law.slip(state.touch.normal, velocity),
        }

    def warnings(self, outputs):
        gap = outputs.get(f"{self.name}_gap")
        return {} if gap is None else {f"{self.name}_deep": self._deep(gap)}

    def alarms(self, at):
        return self.warnings({f"{self.name}_gap": self.gaps(self.state(at))}) if self.pairs else {}

    def _deep(self, gap):
        thick = [shape.thickness() for shape in self.shapes]
        least = jnp.stack([jnp.minimum(thick[i], thick[j]) for i, j in self.pairs])
        return gap < -_DEEP * least

    def contacts(self, at: Instant) -> Contacts:
        """Contacts for a velocity-level solver; `pairs` must not be empty."""
        state = self.state(at)
        S, touch = at.motions.poses.S, state.touch
        moves = at.tree.moves[state.first] - at.tree.moves[state.second]
        moves = jnp.asarray(moves, S.dtype)[:, :, None]
        linear = moves * (S[None, :, 3:] + cross(S[None, :, :3], touch.point[:, None, :]))
        spin = None if self.law.rolling is None else (moves * S[None, :, :3]).swapaxes(1, 2)
        law = self._laws(state)
        return Contacts(touch.gap, touch.normal, linear.swapaxes(1, 2), spin, law)


def _with_ground(V):
    return jnp.concatenate([V, jnp.zeros((1, 6), V.dtype)])


def _several(given, field: str = "shapes") -> tuple[Shape, ...]:
    if not isinstance(given, (tuple, list)):
        given = (given,)
    shapes = tuple(given)
    for shape in shapes:
        require_instance(field, shape, Shape)
    return shapes


def _check_pair(first: Shape, second: Shape) -> None:
    kinds = f"{type(first).__name__} and {type(second).__name__}"
    require(first.bounded or second.bounded, "pairs", kinds, "at least one of finite size")
    for swap, _ in candidates(type(first), type(second)):
        shape = second if swap else first
        kind = f"an endless {type(shape).__name__}"
        require(shape.bounded, "pairs", kind, "a shape of finite size")


def _pairs(bodies, named, groups) -> tuple[tuple[int, int], ...]:
    """Index pairs of shapes that can touch: each shape of a body with each shape of the world, and
    the pairs given by name."""
    places: dict[str, list[int]] = {}
    for k, body in enumerate(bodies):
        places.setdefault(body, []).append(k)
    ground = places.get(WORLD, [])
    found = [(i, j) for body, own in places.items() if body != WORLD for i in own for j in ground]
    members = lambda name: tuple(groups.get(name, (name,)))
    for pair in named:
        two = isinstance(pair, (tuple, list)) and len(pair) == 2
        require(two and all(isinstance(x, str) for x in pair), "pairs", pair, "two names")
        for first in members(pair[0]):
            for second in members(pair[1]):
                for body in (first, second):
                    known = ", ".join((*places, *groups))
                    require(body in places, "pairs", repr(body), f"one of {known}")
                if first == second:
                    alone = pair[0] == pair[1] and pair[0] in groups
                    require(alone, "pairs", pair, "two different bodies")
                    continue
                more = [(i, j) for i in places[first] for j in places[second]]
                found += [(i, j) for i, j in more if (i, j) not in found and (j, i) not in found]
    return tuple(found)
