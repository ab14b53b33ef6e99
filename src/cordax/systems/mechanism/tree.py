"""Topology of a tree of bodies: parents, and sums along branches and over subtrees.

Sums towards the root use pointer doubling (each body adds the value of its parent, then of its
grandparent, then of the body four levels up, ...). This takes log2(depth) batched operations for
any tree, instead of one per body or level, so compile time does not grow with the number of bodies.
Sums over subtrees are the transposes of these operations."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..._base.checks import require
from ..._jax.constant_gather import add_at, take
from .body import WORLD, Body
from .joints import Joint


class Tree:
    """Static topology of N bodies with n_q coordinates and n_v velocities, as NumPy arrays."""

    def __init__(self, names: Sequence[str], parents: Sequence[str], kinds: Sequence[type[Joint]]):
        _check_names(names, parents)
        self.names, self.kinds = tuple(names), tuple(kinds)
        self.index = {name: i for i, name in enumerate(self.names)}
        n = len(self.names)
        #: parent of each body; n is the ground
        self.parent = np.array([self.index.get(p, n) for p in parents], int)
        q_sizes = [len(kind.coordinates) for kind in kinds]
        v_sizes = [len(kind.velocities) for kind in kinds]
        self.coordinate_names = _full_names(self.names, [kind.coordinates for kind in kinds])
        self.velocity_names = _full_names(self.names, [kind.velocities for kind in kinds])
        units = [unit for kind in kinds for unit in kind.units or ("",) * len(kind.coordinates)]
        named = zip(self.coordinate_names, units, strict=True)
        self.units = {name: unit for name, unit in named if unit}
        self.q_start = np.concatenate([[0], np.cumsum(q_sizes)]).astype(int)
        self.v_start = np.concatenate([[0], np.cumsum(v_sizes)]).astype(int)
        #: body whose joint owns each velocity, shape (n_v,)
        self.owner = np.repeat(np.arange(n), v_sizes)
        self.jumps = _jumps(self.parent)
        #: below[i, k]: whether body k is body i or a descendant of it; shape (N, N)
        self.below = _below(self.parent)
        #: moves[k, j]: whether velocity j moves body k, the ground last; shape (N + 1, n_v)
        self.moves = np.concatenate([self.below.T[:, self.owner], np.zeros((1, len(self.owner)))])
        #: pairs of velocities (j, k) with an entry in the mass matrix, j on the path from k to the
        #: root, and the index (n_v, n_v) of each entry in their list, the list's length if absent
        self.pairs = _pairs(self.below[np.ix_(self.owner, self.owner)])

    @property
    def n_bodies(self) -> int:
        return len(self.names)

    @property
    def n_q(self) -> int:
        return int(self.q_start[-1])

    @property
    def n_v(self) -> int:
        return int(self.v_start[-1])

    def body(self, name: str, field: str = "body") -> int:
        """Index of a body by name; the ground has the last index."""
        if name == WORLD:
            return self.n_bodies
        require(name in self.index, field, repr(name), "one of " + ", ".join((*self.names, WORLD)))
        return self.index[name]

    def coordinates(self, name: str) -> slice:
        i = self.body(name)
        return slice(self.q_start[i], self.q_start[i + 1])

    def velocities(self, name: str) -> slice:
        i = self.body(name)
        return slice(self.v_start[i], self.v_start[i + 1])

    def scalars(self, names: Sequence[str], field: str) -> tuple[np.ndarray, np.ndarray]:
        """Indices in q and v of named scalar coordinates and of the velocities that are their
        rates."""
        both = set(self.coordinate_names) & set(self.velocity_names)
        for name in names:
            require(name in both, field, repr(name), "one of " + ", ".join(sorted(both)))
        q = [self.coordinate_names.index(name) for name in names]
        v = [self.velocity_names.index(name) for name in names]
        return np.array(q, int), np.array(v, int)

    def speeds(self, names: Sequence[str], field: str) -> np.ndarray:
        """Indices in v of named velocities."""
        for name in names:
            known = name in self.velocity_names
            require(known, field, repr(name), "one of " + ", ".join(self.velocity_names))
        return np.array([self.velocity_names.index(name) for name in names], int)

    def towards_root(self, x):
        """Sum of `x` over each body and all its ancestors, shape (N, k)."""
        for step in self.jumps:
            x = x + picked(x, step)
        return x

    def compose(self, R, p):
        """World poses (N, 3, 3), (N, 3) from poses in the parents."""
        for step in self.jumps:
            outside = (step == self.n_bodies)[:, None, None]
            R_up = picked(R, step) + np.where(outside, np.eye(3), 0.0).astype(R.dtype)
            p_up = picked(p, step)
            p = p_up + jnp.sum(R_up * p[:, None, :], axis=2)
            R = jnp.sum(R_up[:, :, :, None] * R[:, None, :, :], axis=2)
        return R, p

    def below_sum(self, x):
        """Sum of `x` over each body and all its descendants, shape (N, k)."""
        for step in self.jumps:
            x = x + add_at(x, step, self.n_bodies)
        return x


def picked(x, index):
    """Rows of `x` (N, ...) at `index` (k,); zero where the index is N, the ground."""
    n = x.shape[0]
    if n == 0:
        return jnp.zeros((len(index), *x.shape[1:]), x.dtype)
    found = take(x, np.minimum(index, n - 1))
    if np.all(index < n):
        return found
    there = (np.asarray(index) < n).reshape(-1, *(1,) * (x.ndim - 1))
    return jnp.where(there, found, 0.0)


class Pairs(NamedTuple):
    """Pairs of velocities with an entry in the mass matrix: `first` (p,), `second` (p,), and
    `place` (n_v, n_v), the index of each entry in this list."""

    first: np.ndarray
    second: np.ndarray
    place: np.ndarray


def _pairs(on_the_way) -> Pairs:
    n = len(on_the_way)
    first, second = np.nonzero(on_the_way * np.triu(np.ones((n, n))) > 0)
    # bodies come after their parents, so ancestors have the smaller index
    place = np.full((n, n), len(first))
    place[first, second] = place[second, first] = np.arange(len(first))
    return Pairs(first, second, place)


def _jumps(parent) -> list[np.ndarray]:
    """Ancestor of each body for each doubling step: 1, 2, 4, ... levels up, or the ground."""
    n = len(parent)
    ancestor, jumps = np.append(parent, n), []
    while np.any(ancestor[:n] < n):
        jumps.append(ancestor[:n].copy())
        ancestor = ancestor[ancestor]
    return jumps


def _below(parent) -> np.ndarray:
    n = len(parent)
    below = np.zeros((n, n))
    for k in range(n):
        i = k
        while i < n:
            below[i, k] = 1.0
            i = parent[i]
    return below


def _full_names(names, parts) -> tuple[str, ...]:
    """Full names of coordinates: a joint with one coordinate has the name of its body, others
    append the name of the coordinate."""
    full = lambda name, own: (name,) if len(own) == 1 else tuple(f"{name}_{x}" for x in own)
    return tuple(x for name, own in zip(names, parts, strict=True) for x in full(name, own))


def _check_names(names: Sequence[str], parents: Sequence[str]) -> None:
    require(len(names) > 0, "bodies", "none", "at least one body")
    seen: set[str] = {WORLD}
    for name, parent in zip(names, parents, strict=True):
        require(name not in seen, "bodies", f"two named {name!r}", "names that differ")
        expected = "'world' or a body listed before it"
        require(parent in seen, f"body {name!r}: parent", repr(parent), expected)
        seen.add(name)


def tree_of(bodies: Sequence[Body]) -> Tree:
    """Topology of a list of bodies."""
    return _tree(tuple((b.name, b.parent, type(b.joint)) for b in bodies))


@functools.cache
def _tree(signature) -> Tree:
    return Tree(*zip(*signature, strict=True)) if signature else Tree((), (), ())
