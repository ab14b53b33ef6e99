"""Accelerations of ropes whose elongations are constant plus linear along them: O(s), with one
scalar pivot per segment.

The force that the part of a rope below a node needs for an acceleration A of that node is the
derivative of Gauss's function

    Z = A^T S A / 2 + A^T P y + y^T K y / 2,    y = (1, c'', pull)

with the second derivatives of the two elongations c and the pull at the end. Segment by segment
from end to root, Z is minimised over the second derivative of the angle; at the root A is zero,
dZ/dc = 0, and dZ/dpull is the acceleration of the end."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import inverse2
from .forward import AtEnd, sym, sym_inverse
from .segments import Motion, Segments, dot


def shapes(count: int) -> np.ndarray:
    """Elongation shapes of the segments, constant and linear: (s, 2)."""
    x = np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)
    return np.stack([np.ones(count), x], axis=1)


class Swept(NamedTuple):
    """Data of each segment for back-substitution, segments first: response of its angle to the node
    above and to y, and motion of its end with y; and for each rope c'' = -(by_pull pull +
    alone)."""

    follow: Float[Array, "s 2 m"]
    share: Float[Array, "s 5 m"]
    lever: Float[Array, "s 2 m"]
    shift: Float[Array, "s 2 5 m"]
    by_pull: Float[Array, "2 2 m"]
    alone: Float[Array, "2 m"]


def sweep(seg: Segments, x: Motion, elastic, gravity) -> tuple[AtEnd, Swept]:
    """Condense ropes to their ends, for the generalised forces of deformation `elastic`
    (2, s, m)."""
    s, m = x.length.shape
    l, u, n = x.length, x.along, x.across
    m1, m2, a1, a2 = seg.upper_mass, seg.lower_mass, seg.upper_arm, seg.lower_arm
    spin2 = x.angle_rate**2
    turn = 2.0 * x.stretch_rate * x.angle_rate
    up = jnp.stack([0.0 * gravity, gravity])[:, None, None]
    B = jnp.asarray(shapes(s), l.dtype)
    none = jnp.zeros_like(l)
    # acceleration of the end of a segment relative to its beginning, by y
    shift = jnp.stack(
        [turn * n - (l * spin2) * u, u * B[:, :1], u * B[:, 1:], *(2 * [jnp.stack([none, none])])],
        axis=1,
    )
    lower = m2 * (a2 * spin2 * u + up)
    weight = lower + m1 * (up - a1 * spin2 * u)
    offset = m1 * a1 - m2 * a2
    twist = (l * m2 + offset) * gravity * n[1] - a2 * m2 * turn + elastic[1]
    own = m1 * a1**2 + m2 * a2 * (a2 - 2.0 * l) + seg.spin
    first = lambda y: jnp.moveaxis(jnp.broadcast_to(y, (*y.shape[:-2], s, m)), -2, 0)
    rows = (l * n, n, shift, weight, twist, own, offset, m1, m2)
    rows = materialise(tuple(first(y) for y in rows))

    def condense(carry, row):
        S, P = carry
        lever, n, shift, weight, twist, own, offset, m1, m2 = row
        T = S + m2 * _ONE[:, None]
        Tl = sym(T, lever)
        X = jnp.stack([T[0] * shift[0] + T[1] * shift[1], T[1] * shift[0] + T[2] * shift[1]]) + P
        r = lever[0] * X[0] + lever[1] * X[1]
        r = jnp.concatenate([(r[0] + twist)[None], r[1:]])
        by_node = Tl + offset * n
        pivot = 1.0 / (dot(lever, Tl) + own)
        follow, share = by_node * pivot, r * pivot
        outer = jnp.stack([by_node[0] * follow[0], by_node[0] * follow[1], by_node[1] * follow[1]])
        new = X - by_node[:, None] * share
        new = jnp.concatenate([(new[:, 0] + weight)[:, None], new[:, 1:]], axis=1)
        S = T + m1 * _ONE[:, None] - outer
        return materialise((S, new)), (X, P, r, follow, share)

    end = jnp.zeros((2, 5, m), l.dtype).at[0, 3].set(1.0).at[1, 4].set(1.0)
    start = jnp.zeros((3, m), l.dtype), end
    _, (X, P, r, follow, share) = lax.scan(condense, start, rows, reverse=True)
    X, P, r, share = materialise((X, P, r, share))
    c, pull = slice(1, 3), slice(3, 5)
    move = rows[2]
    shape = B[:, :, None]
    along = lambda y: u[0][:, None] * y[:, 0] + u[1][:, None] * y[:, 1]  # (s, columns, m)
    # rows of K: of elongations by all columns, of pulls by the first and each other
    swung = move[:, 0, :1] * P[:, 0, 1:] + move[:, 1, :1] * P[:, 1, 1:]
    swung = jnp.sum(swung - r[:, 1:] * share[:, :1], axis=0)
    X0 = along(X[:, :, :1]) + (dot(u, lower) + elastic[0])[:, None]
    alone = swung[:2] + jnp.sum(shape * X0, axis=0)
    K = shape[:, :, None] * along(X[:, :, 1:])[:, None] - r[:, c, None] * share[:, None, 1:]
    K = jnp.sum(K, axis=0)
    K = K.at[:, :2].add(jnp.sum(along(P[:, :, c])[:, :, None] * shape[:, None], axis=0))
    ends = swung[2:]
    give = -jnp.sum(r[:, pull, None] * share[:, None, pull], axis=0)  # (2, 2, m)
    inverse, back = inverse2(K[:, :2]), K[:, 2:]  # (c, pull, m): symmetric
    by_pull = jnp.sum(inverse[:, :, None] * back, axis=1)
    alone = jnp.sum(inverse * alone, axis=1)
    compliance = -(give - jnp.sum(back[:, :, None] * by_pull[:, None], axis=0))
    ends = ends - jnp.sum(back * alone[:, None], axis=0)
    stiff = sym_inverse(jnp.stack([compliance[0, 0], compliance[0, 1], compliance[1, 1]]))
    return AtEnd(stiff, sym(stiff, ends)), Swept(follow, share, rows[0], move, by_pull, alone)


_ONE = np.array([1.0, 0.0, 1.0])


def substitute(w: Swept, pull: Float[Array, "2 m"]):
    """Second derivatives of angles (s, m) and of elongations (2, m) for pulls at the ends."""
    c = -(jnp.sum(w.by_pull * pull, axis=1) + w.alone)
    y = jnp.concatenate([jnp.ones_like(c[:1]), c, pull])
    own, moved = materialise((jnp.sum(w.share * y, axis=1), jnp.sum(w.shift * y, axis=2)))

    def node(A, row):
        follow, own, lever, moved = row
        angle = -(dot(follow, A) + own)
        return A + lever * angle + moved, angle

    _, angles = lax.scan(node, jnp.zeros_like(pull), (w.follow, own, w.lever, moved))
    return angles, c
