"""Linear systems along ropes in space: nodes are eliminated from the roots to the ends.

A joint and the segment below it, nodes i - 2 to i, form an element: a 9 by 9 matrix. Nodes are
eliminated as in `math.chain`, but all ropes side by side, and the end remains: each rope is
condensed to `S x_end = g`, S 3 by 3. The cost is O(s), with no matrix larger than 9 by 9.

Ropes are the last axis, nodes the first."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...._jax.materialise import materialise
from .segments import Ropes, Segments, Vectors, forces

Blocks = Float[Array, "s 9 9 m"]


def multiply(A, B):
    """Product of matrices (a, b, m) and (b, c, m)."""
    return jnp.sum(A[:, :, None] * B[None], axis=1)


def apply(A, x):
    """Product of matrices (a, b, m) and vectors (b, m)."""
    return jnp.sum(A * x[None], axis=1)


def inverse(A: Float[Array, "3 3 m"]) -> Float[Array, "3 3 m"]:
    """Inverse by elimination, not by cofactors: the stiffness along a rope is up to a million times
    that across it, and cofactors would lose twice as many digits."""
    W = jnp.concatenate([A, jnp.broadcast_to(jnp.eye(3, dtype=A.dtype)[..., None], A.shape)], 1)
    for k in range(3):
        row = W[k] / W[k, k]
        rows = [row if i == k else W[i] - W[i, k] * row for i in range(3)]
        W = jnp.stack(rows)
    return W[:, 3:]


def mass_elements(r: Ropes, d) -> Blocks:
    """Elements of the mass matrix, with segments `d` (3, s, m) [m]."""
    l2 = d[0] ** 2 + d[1] ** 2 + d[2] ** 2
    l = jnp.sqrt(l2)
    first = r.mass * r.arm
    across = (2.0 * first * r.arm + r.spin) / l2 - 2.0 * first / l
    eye = jnp.eye(3, dtype=d.dtype)[..., None, None]
    segment = across * (eye - d[:, None] * d[None] / l2)
    return _elements(r, jnp.moveaxis(jnp.pad(segment, ((3, 0), (3, 0), (0, 0), (0, 0))), 2, 0))


def motion_elements(r: Ropes, s: Segments, h, h2) -> Blocks:
    """Elements of `M - h D - h2 K`: the forces of segments differentiated along a motion z that
    changes second derivatives by z, rates by h z and positions by h2 z."""
    shape = s.below.shape

    def response(e):
        x, y = (jnp.broadcast_to(part[:, None, None], shape) for part in (e[:3], e[3:]))
        along = Segments(h2 * x, h * x, h2 * y, h * y, y)
        return jnp.concatenate(jax.jvp(lambda s: forces(r, s), (s,), (along,))[1])

    columns = jax.vmap(response, out_axes=1)(jnp.eye(6, dtype=s.below.dtype))  # (6, 6, s, m)
    return _elements(r, jnp.moveaxis(columns, 2, 0))


def _elements(r: Ropes, H: Float[Array, "s 6 6 m"]) -> Blocks:
    """Elements from derivatives of forces by segments: the segment above the joint spans nodes A
    and B, the one below B and C."""
    H = materialise(H)
    p, pd, dp, d = H[:, :3, :3], H[:, :3, 3:], H[:, 3:, :3], H[:, 3:, 3:]
    carried = r.mass * jnp.eye(3, dtype=H.dtype)[..., None]
    rows = [
        [p, pd - p, -pd],
        [dp - p, p - dp - pd + d + carried, pd - d],
        [-dp, dp - d, d + carried],
    ]
    return jnp.concatenate([jnp.concatenate(row, axis=2) for row in rows], axis=1)


class ChainFactor(NamedTuple):
    """Factor of a rope. For each of the k = s - 1 nodes above the end: the inverse of its block at
    its elimination, its response to the next two nodes (`follow`), and their coupling to it
    (`behind`); S of the end."""

    inverse: Float[Array, "k 3 3 m"]
    follow: Float[Array, "k 3 6 m"]
    behind: Float[Array, "k 6 3 m"]
    end: Float[Array, "3 3 m"]


def factorise(elements: Blocks) -> ChainFactor:
    elements = materialise(elements)
    # roots, and the directions of ropes there, are given: the first two elements keep only what
    # touches nodes 1 and 2
    first = jnp.pad(elements[0, 6:, 6:], ((0, 3), (0, 3), (0, 0)))
    if elements.shape[0] > 1:
        first = first + elements[1, 3:, 3:]
    later = jnp.concatenate([elements[2:], jnp.zeros_like(elements[:1])])[: len(elements) - 1]

    def eliminate(rest, element):
        front = materialise(element + jnp.pad(rest, ((0, 3), (0, 3), (0, 0))))
        own = materialise(inverse(front[:3, :3]))
        behind = front[3:, :3]
        follow = materialise(multiply(own, front[:3, 3:]))
        rest = front[3:, 3:] - multiply(behind, follow)
        return materialise(rest), (own, follow, behind)

    rest, parts = lax.scan(eliminate, first, later)
    return ChainFactor(*parts, rest[:3, :3])


def condense(f: ChainFactor, b: Vectors):
    """Forward pass of right-hand sides (3, s, m): the solution of the nodes above the ends with the
    later nodes fixed, (k, 3, m), and g of the ends, (3, m)."""
    b = jnp.moveaxis(b, 1, 0)

    def down(carry, node):
        own, behind, b = node
        x = apply(own, b + carry[:3])
        rest = jnp.concatenate([carry[3:], jnp.zeros_like(x)]) - apply(behind, x)
        return materialise((rest, x))

    start = jnp.zeros((6, b.shape[2]), b.dtype)
    rest, alone = lax.scan(down, start, (f.inverse, f.behind, b[:-1]))
    return alone, b[-1] + rest[:3]


def substitute(f: ChainFactor, alone, end: Float[Array, "3 m"]) -> Vectors:
    """Solution for all nodes (3, s, m), from that of their ends."""

    def up(carry, node):
        follow, x = node
        x = x - apply(follow, carry)
        return materialise((jnp.concatenate([x, carry[:3]]), x))

    start = jnp.concatenate([end, jnp.zeros_like(end)])
    _, x = lax.scan(up, start, (f.follow, alone), reverse=True)
    return jnp.moveaxis(jnp.concatenate([x, end[None]]), 0, 1)
