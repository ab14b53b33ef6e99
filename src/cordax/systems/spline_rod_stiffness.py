"""The stiffness matrix of a spline rod, assembled span by span, and solves along its band.

A span touches four control points. With Gauss points inside of spans the stiffness is a sum of
16 x 16 span matrices, and has 12 numbers on each side of the 4 x 4 diagonal blocks."""

from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..math import bsplines
from ..math.linalg import solve
from ..math.materialise import materialise
from ..mechanics import Linearisation
from .spline_rod_energy import Local, Stiffness, gradients, local, points
from .spline_rod_layout import Layout


class RodLinearisation(Linearisation):
    """About a state, with the stiffness by spans: `spans` (4, 4, 4, 4, spans), second derivatives
    of the energy; `densities` (4,) times h, which the Gram matrix multiplies."""

    f: Float[Array, " n"]
    spans: Float[Array, "4 4 4 4 s"]
    densities: Float[Array, " 4"]
    layout: Layout = eqx.field(static=True)

    def stiffness(self, x):
        zero = jnp.zeros(4, x.dtype)
        P = self.layout.join(x, zero, zero, zero, zero)
        total = self.spans.shape[-1]
        moved = jnp.stack([P[:, k : k + total] for k in range(4)])  # (k, d, spans)
        forces = jnp.sum(self.spans * moved.transpose(1, 0, 2)[None, :, None], axis=(1, 3))
        rows = [jnp.pad(forces[:, i], ((0, 0), (i, 3 - i))) for i in range(4)]
        return -self.layout.split(sum(rows))

    def inertia(self, x):
        zero = jnp.zeros(4, x.dtype)
        P = self.layout.join(x, zero, zero, zero, zero)
        return self.layout.split(self.densities[:, None] * (P @ bsplines.gram(self.layout.n)))

    def implicit_solve(self, h, b):
        n = self.layout.n
        if n >= BANDED:
            return self._solve_band(h, b)
        M, K, _ = self.matrices()
        return solve(*materialise((M - h * h * K, b)))

    def _solve_band(self, h, b):
        n = self.layout.n
        zero = jnp.zeros(4, b.dtype)
        free = self.layout.mask.T  # (n, 4)
        band = h * h * block_rows(self.spans, n)
        gram = _gram_band(n)[:, :, None, None] * jnp.diag(self.densities)
        # held numbers are equations of their own, x = 0
        neighbours = np.stack([_shifted(free, o) for o in range(-3, 4)], axis=1)  # (n, 7, 4)
        keep = free[:, None, :, None] * neighbours[:, :, None, :]
        band = (band + gram) * keep
        band = band.at[:, 3].add((1.0 - free)[:, :, None] * np.eye(4))
        x = solve_band(band, self.layout.join(b, zero, zero, zero, zero).T)
        return self.layout.split(x.T)

    def matrices(self):
        n, free = self.layout.n, np.flatnonzero(self.layout.mask.reshape(-1))
        K = -dense(self.spans, n).reshape(4 * n, 4 * n)[np.ix_(free, free)]
        M = jnp.kron(jnp.diag(self.densities), bsplines.gram(n))[np.ix_(free, free)]
        return M, K, jnp.zeros_like(M)


def _shifted(free, offset):
    """Row i holds what `free` (n, 4) says of control point i + offset, 0 beyond the ends."""
    out = np.zeros_like(free)
    n = free.shape[0]
    i = np.arange(max(0, -offset), min(n, n - offset))
    out[i] = free[i + offset]
    return out


@lru_cache
def _gram_band(n: int) -> np.ndarray:
    """Gram matrix by rows and offsets from -3 to 3, (n, 7)."""
    G = np.pad(bsplines.gram(n), ((0, 0), (3, 3)))
    return np.stack([G[i, i : i + 7] for i in range(n)])


def with_springs(spans, springs):
    """Add end springs (2, 3) [N/m] to the span matrices of both ends."""
    corner = jnp.zeros_like(spans)
    for c in range(3):
        corner = corner.at[c, c, 0, 0, 0].set(springs[0, c])
        corner = corner.at[c, c, 3, 3, -1].add(springs[1, c])
    return spans + corner


#: control points from which the block elimination beats a dense factorisation
BANDED = 24


class SpanBasis(NamedTuple):
    """First to third derivatives of the four functions of each span at its points, (3, 4, points),
    and weights (points,)."""

    derivatives: np.ndarray
    weights: np.ndarray


@lru_cache
def span_basis(n: int, per_span: int) -> SpanBasis:
    x, w = bsplines.gauss(n, per_span)
    B = bsplines.basis(n, x)[1:].reshape(3, n - 3, per_span, n)
    own = np.arange(n - 3)[:, None] + np.arange(4)
    picked = np.stack([B[:, e][:, :, own[e]] for e in range(n - 3)], axis=1)
    return SpanBasis(picked.reshape(3, -1, 4).swapaxes(1, 2), w)


def span_matrices(P, n: int, rule, h, H: Stiffness, rest):
    """Second derivatives of the energy by the four control points of each span, shape (4, 4, 4, 4,
    spans): components c, d, then control points i, k."""
    at = local(P, points(n, rule), h)

    def gradient(x):
        g = gradients(Local(x[:3], x[3:6], x[6:9], x[9]), H, rest)
        return jnp.concatenate([g.a, g.b, g.c, g.twist[None]])

    x = jnp.concatenate([at.a, at.b, at.c, at.twist[None]])
    # the ten directions at all points at once: each point depends on its own numbers only
    push = lambda e: jax.jvp(gradient, (x,), (jnp.broadcast_to(e[:, None], x.shape),))[1]
    W = materialise(jax.vmap(push)(jnp.eye(10, dtype=x.dtype)))  # (in, out, points)
    basis, weights = span_basis(n, rule[1])
    B = [basis[p] / h ** (p + 1) for p in range(3)]  # (4, points) each
    weighted = [b * (h * weights) for b in B]
    # Sums over the three derivatives are written out: rows of points stay contiguous, and a sum
    # over a leading axis would not vectorise.
    inputs = [W[3 * p : 3 * p + 3] for p in range(3)]  # (d, out, points)
    half = sum(x[:, :, None] * w for x, w in zip(inputs, weighted, strict=True))
    half = materialise(half)  # (d, out, k, points)
    twist = materialise(W[9][:, None] * weighted[0])  # (out, k, points)
    both = jnp.concatenate([half, twist[None]])  # (d, out, k, points), d = x, y, z, theta
    position = sum(
        both[:, 3 * r : 3 * r + 3, None] * b[:, None] for r, b in enumerate(B)
    )  # (d, c, i, k, points)
    angle = both[:, 9:, None] * B[0][:, None]
    full = materialise(jnp.concatenate([position, angle], axis=1))
    full = jnp.sum(full.reshape(*full.shape[:4], n - 3, rule[1]), axis=-1)
    return full.swapaxes(0, 1)


def dense(spans, n: int):
    """The full matrix by (component, control point), shape (4, n, 4, n)."""
    blocks = block_rows(spans, n)  # (n, 7, c, d)
    wide = jnp.pad(blocks.transpose(2, 0, 3, 1), ((0, 0), (0, 0), (0, 0), (0, n - 1)))
    # row i begins 3 to the left of its diagonal: rows of length n + 6 read with one less shift it
    wide = wide.transpose(0, 2, 1, 3).reshape(4, 4, -1)[:, :, : n * (n + 5)]
    return wide.reshape(4, 4, n, n + 5)[:, :, :, 3 : n + 3].transpose(0, 2, 1, 3)


def block_rows(spans, n: int):
    """Blocks (n, 7, 4, 4) of the band: row i, offset k - i + 3, components c, d."""
    total = spans.shape[-1]
    spans = spans.transpose(2, 3, 4, 0, 1)
    rows = []
    for offset in range(-3, 4):
        pieces = [
            jnp.pad(spans[i, i + offset], ((i, n - total - i), (0, 0), (0, 0)))
            for i in range(4)
            if 0 <= i + offset < 4
        ]
        rows.append(sum(pieces))
    return jnp.stack(rows, axis=1)


def solve_band(band, b):
    """Solve a block-banded system: `band` (n, 7, 4, 4) as from `block_rows`, `b` (n, 4).

    Three control points at a time make it block tridiagonal with 12 x 12 blocks; block elimination
    in a loop."""
    n = b.shape[0]
    count = -(-n // 3)
    extra = 3 * count - n
    identity = jnp.zeros((extra, 7, 4, 4), band.dtype).at[:, 3].set(jnp.eye(4, dtype=band.dtype))
    band = jnp.concatenate([band, identity])
    b = jnp.concatenate([b, jnp.zeros((extra, 4), b.dtype)]).reshape(count, 12)
    band = band.reshape(count, 3, 7, 4, 4)

    def block(shift):
        """Coupling of group g to group g + shift, (count, 12, 12)."""
        rows = []
        for i in range(3):
            columns = []
            for k in range(3):
                offset = 3 * shift + k - i + 3
                inside = 0 <= offset < 7
                zero = jnp.zeros((count, 4, 4), band.dtype)
                columns.append(band[:, i, offset] if inside else zero)
            rows.append(jnp.concatenate(columns, axis=2))
        return jnp.concatenate(rows, axis=1)

    lower, middle, upper = block(-1), block(0), block(1)

    def forward(carry, row):
        reduced, x = carry
        low, mid, up, r = row
        mid, r = mid - low @ reduced, r - low @ x
        solved = jnp.linalg.solve(mid, jnp.concatenate([up, r[:, None]], axis=1))
        return (solved[:, :12], solved[:, 12]), (solved[:, :12], solved[:, 12])

    start = (jnp.zeros((12, 12), b.dtype), jnp.zeros(12, b.dtype))
    _, (ratios, values) = lax.scan(forward, start, (lower, middle, upper, b))

    def backward(x, row):
        ratio, value = row
        x = value - ratio @ x
        return x, x

    _, x = lax.scan(backward, jnp.zeros(12, b.dtype), (ratios, values), reverse=True)
    return x.reshape(-1, 4)[:n]
