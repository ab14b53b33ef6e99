"""Forward dynamics: accelerations from forces by eliminating node after node, from the roots to the
ends, in O(s) and with no matrix larger than 2 by 2.

The increments of stretch and angle of a segment follow from the motion of its end relative to its
beginning, so nodes can serve as coordinates. In these the mass matrix is tridiagonal with 2 by 2
blocks, and blocks off the diagonal have rank one. Each rope is condensed to its end,
`S a_end = g - pull`. The platform, or another support, completes the equations."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from .segments import Field, Motion, Segments, Vectors, dot


class AtEnd(NamedTuple):
    """Equations of ropes condensed to their ends, `S a_end = g - pull`: S (3, m) as xx, xz, zz and
    g."""

    stiff: Float[Array, "3 m"]
    push: Float[Array, "2 m"]


class Condensed(NamedTuple):
    """Result of the elimination: pivots (3, s, m) as inverses, xx, xz, zz; right-hand sides
    (2, s, m); and the coupling (s, m) [kg] of each node to the one above, along its `across`.
    `stiff` (3, m) and `push` (2, m): S and g of the ends."""

    inverse: Float[Array, "3 s m"]
    right: Vectors
    coupling: Field
    stiff: Float[Array, "3 m"]
    push: Float[Array, "2 m"]


def sym(S, x):
    """Compute `S x` for S = xx, xz, zz and x (2, ...)."""
    return jnp.stack([S[0] * x[0] + S[1] * x[1], S[1] * x[0] + S[2] * x[1]])


def sym_inverse(S):
    d = 1.0 / (S[0] * S[2] - S[1] * S[1])
    return jnp.stack([S[2] * d, -S[1] * d, S[0] * d])


def _outer(n):
    """Outer products of unit vectors (2, ...): xx, xz, zz."""
    return jnp.stack([n[0] * n[0], n[0] * n[1], n[1] * n[1]])


_ONE = np.array([1.0, 0.0, 1.0])


def condense(seg: Segments, x: Motion, Q, gravity) -> Condensed:
    """Eliminate all nodes except the ends. `Q` (2, s, m): generalised forces on stretches and
    angles, without weight and inertia."""
    l, u, n = x.length, x.along, x.across
    m1, m2, J = seg.upper_mass, seg.lower_mass, seg.spin / l**2
    e1, e2 = seg.upper_arm / l, seg.lower_arm / l
    first = m1 * (1.0 - e1) ** 2 + m2 * e2**2 + J
    last = m1 * e1**2 + m2 * (1.0 - e2) ** 2 + J
    coupling = m1 * e1 * (1.0 - e1) + m2 * e2 * (1.0 - e2) - J
    # motion of the rods while all nodes are at rest, and the forces for it, weight included
    turn = 2.0 * x.stretch_rate * x.angle_rate / l
    swing = turn * n + x.angle_rate**2 * u
    down = jnp.stack([0.0 * gravity, gravity])[:, None, None]
    upper, lower = m1 * (down - seg.upper_arm * swing), m2 * (down + seg.lower_arm * swing)
    twist = seg.upper_arm * dot(n, upper) - seg.lower_arm * dot(n, lower) - seg.spin * turn
    pull = Q[0] * u + ((Q[1] - twist) / l) * n
    at_first, at_last = -pull - upper, pull - lower
    one = _ONE[:, None, None].astype(l.dtype)
    nn = _outer(n)
    block = lambda mass, k: mass * one + (k - mass) * nn
    above, below = block(m2, last), block(m1, first)
    # nodes belong to the segment above and, except for the ends, to the one below
    shift = lambda y: jnp.concatenate([y[:, 1:], jnp.zeros_like(y[:, :1])], axis=1)
    diagonal, right = above + shift(below), at_last + shift(at_first)
    # the first segment hangs from a node at rest, which need not be eliminated
    free = jnp.concatenate([jnp.zeros_like(coupling[:1]), coupling[1:]])
    rows = materialise((diagonal, right, free, n, nn))
    rows = [jnp.moveaxis(y, -2, 0) for y in rows]

    def eliminate(carry, row):
        inverse, g = carry  # of the node above, with its right-hand side
        diagonal, right, k, n, nn = row
        S = diagonal - (k * k * dot(n, sym(inverse, n))) * nn
        g = right - (k * dot(n, sym(inverse, g))) * n
        inverse = sym_inverse(S)
        return materialise((inverse, g)), (inverse, g, S)

    start = (jnp.zeros_like(rows[0][0]), jnp.zeros_like(rows[1][0]))
    _, (inverse, g, S) = lax.scan(eliminate, start, tuple(rows))
    back = lambda y: jnp.moveaxis(y, 0, -2)
    return Condensed(back(inverse), back(g), coupling, S[-1], g[-1])


def substitute(seg: Segments, x: Motion, c: Condensed, end: Float[Array, "2 m"]):
    """Second derivatives (2, s, m) of stretches and angles for given accelerations of the ends."""
    n = x.across

    def node(below, row):
        inverse, g, k, n = row  # of a node, and of the segment below it
        a = sym(inverse, g - k * dot(n, below) * n)
        return a, a

    rows = (c.inverse[:, :-1], c.right[:, :-1], c.coupling[1:], n[:, 1:])
    rows = tuple(jnp.moveaxis(y, -2, 0) for y in rows)
    _, a = lax.scan(node, end, rows, reverse=True)
    nodes = jnp.concatenate([jnp.zeros_like(end)[None], a, end[None]])
    d = jnp.moveaxis(nodes[1:] - nodes[:-1], 0, -2)
    stretch = dot(x.along, d) + x.length * x.angle_rate**2
    angle = (dot(n, d) - 2.0 * x.stretch_rate * x.angle_rate) / x.length
    return jnp.stack([stretch, angle])
