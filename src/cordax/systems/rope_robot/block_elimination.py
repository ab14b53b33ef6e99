"""Implicit steps of ropes in O(s): the matrix `A = M - h D - h2 K` is eliminated segment by segment
from the ends to the roots.

In stretches and angles A is full, because every segment moves everything that hangs from it. But
its rows come from one pass along the rope and back (`inverse`), differentiated along a motion z
that changes second derivatives by z, rates by h z and positions by h2 z. That pass couples a
segment to the part above it through three values: the change w of the acceleration of its node
(two components) and the change of its angle. It returns three values, a force and a moment. So the
part of a rope below a node is condensed to `(force, moment) = S (w, angle) - g` with S 3 by 3, and
each segment costs one 2 by 2 inverse. A is not symmetric because it contains velocity terms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import inverse2
from .inverse import Loads, Rope, before
from .segments import Motion, Segments, dot


class Rows(NamedTuple):
    """Small matrices of each segment, (..., s, m). An axis of length three refers to a node and its
    angle, or to the force and moment there; an axis of length two to stretch and angle of the
    segment."""

    end: Float[Array, "3 2 s m"]  #: motion of its end
    lever: Float[Array, "3 2 s m"]  #: effect on it of a force and a moment at its end
    lower: Float[Array, "3 3 s m"]  #: the lower rod, which moves with the end
    own: Float[Array, "2 2 s m"]  #: its gap, its rods and the joint above it
    by_node: Float[Array, "2 3 s m"]  #: upper rod and joint, which follow the node above,
    on_node: Float[Array, "3 2 s m"]  #: and push it;
    at_node: Float[Array, "3 3 s m"]  #: their contribution to that node


def rows(seg: Segments, rope: Rope, x: Motion, a, loads: Loads, h, h2) -> Rows:
    """Matrices at second derivatives `a` (2, s, m); these may be zero to neglect their terms."""
    l, u, n = x.length, x.along, x.across
    kept = 1.0 - h2 * x.angle_rate**2
    turned = h2 * a[1] + 2.0 * h * x.angle_rate
    by_stretch = kept * u + turned * n
    radial = -l * turned - 2.0 * h2 * x.stretch_rate * x.angle_rate
    tangential = l * kept + h2 * a[0] + 2.0 * h * x.stretch_rate
    by_angle = radial * u + tangential * n
    swing = kept * n - turned * u  # of a rod's arm, per angle
    first = seg.upper_mass * seg.upper_arm, seg.lower_mass * seg.lower_arm
    _, tension = jax.jvp(
        lambda e: rope.law.tension(rope.EA, e), (x.stretch / seg.rest,), (jnp.ones_like(l),)
    )
    bend = (x.angle - before(x.angle, rope.root_angle)) * seg.joint
    _, moment = jax.jvp(lambda k: rope.law.moment(rope.EI, k), (bend,), (jnp.ones_like(l),))
    axial = (h2 * tension + h * rope.axial_time * rope.EA) / seg.rest
    joint = (h2 * moment + h * rope.bending_time * rope.EI) * seg.joint
    inertia = seg.spin + kept * (first[0] * seg.upper_arm + first[1] * seg.lower_arm)
    tilt = seg.upper_arm * loads.upper - seg.lower_arm * loads.lower + l * loads.below
    mixed = h2 * dot(n, loads.below)
    angular = joint + inertia - h2 * dot(u, tilt)
    parts = (u, l * n, n, by_stretch, by_angle, swing, axial, angular, joint, mixed)
    u, lever, n, by_stretch, by_angle, swing, axial, angular, joint, mixed = materialise(parts)
    m1, m2, (f1, f2) = seg.upper_mass, seg.lower_mass, (y * n for y in first)
    s1, s2 = (y * swing for y in first)

    def matrix(*rows):
        spread = lambda y: jnp.broadcast_to(jnp.asarray(y, l.dtype), l.shape)
        return jnp.stack([jnp.stack([spread(y) for y in row]) for row in rows])

    return Rows(
        end=matrix((by_stretch[0], by_angle[0]), (by_stretch[1], by_angle[1]), (0.0, 1.0)),
        lever=matrix((u[0], lever[0]), (u[1], lever[1]), (0.0, 1.0)),
        lower=matrix((m2, 0.0, -s2[0]), (0.0, m2, -s2[1]), (-f2[0], -f2[1], 0.0)),
        own=matrix((axial, mixed), (mixed, angular)),
        by_node=matrix((0.0, 0.0, 0.0), (f1[0], f1[1], -joint)),
        on_node=matrix((0.0, s1[0]), (0.0, s1[1]), (0.0, -joint)),
        at_node=matrix((m1, 0.0, 0.0), (0.0, m1, 0.0), (0.0, 0.0, joint)),
    )


def with_root(r: Rows, block: Float[Array, "2 2 m"]) -> Rows:
    """Add a matrix that acts on stretch and angle of the first segments."""
    return r._replace(own=r.own.at[:, :, 0].add(block))


class Factor(NamedTuple):
    """Factor of each segment: `end` and `lever` as in `Rows`; the inverse of its 2 by 2 block; the
    response of its stretch and angle to the node and the angle above it (`follow`); the
    contribution of its right-hand side to the node above (`hand`). Segments first, cables last."""

    end: Float[Array, "s 3 2 m"]
    lever: Float[Array, "s 3 2 m"]
    inverse: Float[Array, "s 2 2 m"]
    follow: Float[Array, "s 2 3 m"]
    hand: Float[Array, "s 3 2 m"]


#: a segment's end moves with the node above it, but does not turn with it
_CARRIED = np.array([1.0, 1.0, 0.0])[:, None]


def _product(A, B):
    """Product of matrices (i, k, m) and (k, j, m), written out so that no entry is computed
    twice."""
    return sum(A[:, k, None] * B[None, k] for k in range(B.shape[0]))


def _times(A, x):
    """Product of matrices (i, k, m) and vectors (k, m)."""
    return sum(A[:, k] * x[k] for k in range(x.shape[0]))


def _turned(A):
    return A.swapaxes(0, 1)


def factorise(r: Rows) -> Factor:
    r = jax.tree.map(lambda y: jnp.moveaxis(y, -2, 0), materialise(r))
    carried = _CARRIED.astype(r.own.dtype)

    def condense(S, r: Rows):
        S = S + r.lower
        seen, pushed = materialise((_product(_turned(r.lever), S), _product(S, r.end)))
        inverse = materialise(inverse2(materialise(_product(seen, r.end) + r.own)))
        by_node = seen * carried + r.by_node
        on_node = pushed * carried[:, None] + r.on_node
        follow, hand = materialise((_product(inverse, by_node), _product(on_node, inverse)))
        at_node = S * (carried * carried[:, None]) + r.at_node
        return materialise(at_node - _product(on_node, follow)), (inverse, follow, hand)

    start = jnp.zeros((3, 3, r.own.shape[-1]), r.own.dtype)
    _, (inverse, follow, hand) = lax.scan(condense, start, r, reverse=True)
    return Factor(r.end, r.lever, inverse, follow, hand)


def substitute(f: Factor, b: Float[Array, "2 s m"]) -> Float[Array, "2 s m"]:
    """Compute `A^-1 b` for stretches and angles."""
    b = jnp.moveaxis(b, 1, 0)
    carried = _CARRIED.astype(b.dtype)

    def up(g, row):
        b, lever, inverse, hand = row
        b = b + _times(_turned(lever), g)
        return materialise((carried * g - _times(hand, b), _times(inverse, b)))

    def down(w, row):
        y, follow, end = row
        z = y - _times(follow, w)
        return materialise((carried * w + _times(end, z), z))

    start = jnp.zeros((3, b.shape[2]), b.dtype)
    _, y = lax.scan(up, start, (b, f.lever, f.inverse, f.hand), reverse=True)
    _, z = lax.scan(down, start, (y, f.follow, f.end))
    return jnp.moveaxis(z, 0, 1)
