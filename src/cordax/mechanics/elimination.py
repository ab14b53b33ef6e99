"""Saddle-point solver for constrained machines with a selection of independent velocities.

With a selection, `J x = b` gives the dependent velocities by the inverse of J's dependent columns.
Loops that share no dependent velocity form separate blocks, and blocks of equal size are inverted
together: each cable of a tensegrity is a 3 x 3 block, however many there are. The reduced matrix
`M~ = G^T M G` has as many rows as there are degrees of freedom, and M may be singular."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._jax.batch_all import everywhere
from .._jax.constant_gather import entries, take
from .._jax.materialise import materialise
from ..math.linalg import gram, matmul, matvec, pivoted, solve, vecmat
from .saddle import SaddlePoint, whole_matrix

#: above this condition number of its blocks a selection is not used, but pivoted elimination
WORST_CONDITION = 1e7


class BlockGroup(NamedTuple):
    """Blocks of one size s: indices `rows` (k, s) of constraints and `columns` (k, s) of
    velocities."""

    rows: np.ndarray
    columns: np.ndarray


class Selection:
    """Static selection of velocities: indices `chosen` (d,) of the independent ones, and blocks of
    the dependent ones. `dependent` (m,) and `rows` (m,): indices of velocities and constraints in
    the order of the blocks."""

    def __init__(self, pattern: np.ndarray, chosen, mass: np.ndarray):
        self.chosen = np.asarray(chosen, int)
        rest = np.setdiff1d(np.arange(pattern.shape[1]), self.chosen)
        kinds: dict[int, list] = {}
        for rows, columns in _components(pattern[:, rest]):
            kinds.setdefault(len(rows), []).append((rows, rest[columns]))
        self.groups = [
            BlockGroup(*(np.array(x, int) for x in zip(*blocks, strict=True)))
            for blocks in kinds.values()
        ]
        join = lambda parts: np.concatenate([x.reshape(-1) for x in parts] or [np.zeros(0, int)])
        self.dependent = join([g.columns for g in self.groups])
        self.rows = join([g.rows for g in self.groups])
        #: permutation from (chosen, dependent) to the order of velocities
        self.order = np.argsort(np.concatenate([self.chosen, self.dependent]))
        #: columns of the nonzero entries in each row of the mass matrix, (n, w); None if many
        self.partners = _partners(mass)

    def in_order(self, chosen, dependent):
        """All velocities (n, ...) from the independent and the dependent ones."""
        return take(jnp.concatenate([chosen, dependent]), self.order)


def selection(structure, chosen) -> Selection:
    """Selection of the velocities `chosen` (d,) of a machine with this `Structure`."""
    patterns = (np.asarray(x, bool) for x in (structure.constraint_pattern, structure.mass_pattern))
    return _selection(tuple(map(int, chosen)), *((x.shape, x.tobytes()) for x in patterns))


@functools.cache
def _selection(chosen, constraints, mass) -> Selection:
    read = lambda shape, entries: np.frombuffer(entries, bool).reshape(shape)
    return Selection(read(*constraints), chosen, read(*mass))


def _partners(mass) -> np.ndarray | None:
    lists = [list(np.flatnonzero(row)) for row in mass]
    width = max(len(x) for x in lists)
    if 2 * width > len(lists):
        return None
    # padded with the index of a zero entry of the row
    spare = [int(np.flatnonzero(~row)[0]) for row in mass]
    return np.array([x + [z] * (width - len(x)) for x, z in zip(lists, spare, strict=True)], int)


def _components(pattern):
    """Rows and columns of the independent blocks of a pattern; one block with all rows and columns
    if they are not square."""
    m, n = pattern.shape
    links = pattern.astype(int)
    reach = (links @ links.T > 0) | np.eye(m, dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(m, 2)))))):
        reach = reach.astype(int) @ reach.astype(int) > 0
    blocks, seen = [], np.zeros(m, bool)
    for i in range(m):
        if not seen[i]:
            rows = np.flatnonzero(reach[i])
            seen[rows] = True
            blocks.append((rows, np.flatnonzero(pattern[rows].any(axis=0))))
    if (
        all(len(rows) == len(columns) for rows, columns in blocks)
        and sum(len(columns) for _, columns in blocks) == n
    ):
        return blocks
    return [(np.arange(m), np.arange(n))]


class DependentInverse(eqx.Module):
    """Inverses (k, s, s) of the blocks of J's dependent columns, for each block size, and the
    largest amplification of round-off (`condition`)."""

    blocks: tuple[Float[Array, "k s s"], ...]
    condition: Float[Array, ""]
    selection: Selection = eqx.field(static=True)

    @staticmethod
    def of(J, chosen: Selection) -> "DependentInverse":
        blocks, worst = [], [jnp.ones((), J.dtype)]
        for places, columns in chosen.groups:
            A = materialise(entries(J, places[:, :, None], columns[:, None, :]))
            X = _inverses(A)
            blocks.append(X)
            # independent of the units of rows and columns, at least 1
            spread = jnp.sum(jnp.abs(X * jnp.swapaxes(A, 1, 2)), axis=2)
            worst.append(jnp.max(lax.stop_gradient(spread)))
        blocks, condition = materialise((tuple(blocks), functools.reduce(jnp.maximum, worst)))
        return DependentInverse(blocks, condition, chosen)

    def determinant_sign(self, J) -> Float[Array, ""]:
        """Smallest sign, over the blocks, of the determinant of the dependent columns of another
        Jacobian `J` (m, n) relative to this one: -1 if a dead centre lies between the two."""
        signs = [jnp.ones((), J.dtype)]
        for X, (places, columns) in zip(self.blocks, self.selection.groups, strict=True):
            A = entries(J, places[:, :, None], columns[:, None, :])
            signs.append(jnp.min(_determinant_signs(jnp.sum(X[..., None] * A[:, None], axis=2))))
        return functools.reduce(jnp.minimum, lax.stop_gradient(signs))

    def times(self, x):
        """Product of the inverse with constraint values `x` (m, ...): dependent velocities
        (m, ...) in the order of the blocks."""
        flat = x if x.ndim == 2 else x[:, None]
        parts = [
            _times(X, take(flat, places)).reshape(-1, flat.shape[1])
            for X, (places, _) in zip(self.blocks, self.selection.groups, strict=True)
        ]
        found = jnp.concatenate([*parts, flat[:0]]) if len(parts) != 1 else parts[0]
        return found if x.ndim == 2 else found[:, 0]

    def transposed(self, y):
        """Product of the transposed inverse with `y` (m,), in the order of the blocks; the result
        (m,) is in the order of the constraints."""
        parts, start = [], 0
        for X, (places, _) in zip(self.blocks, self.selection.groups, strict=True):
            own = y[start : start + places.size].reshape(places.shape)
            start += places.size
            parts.append(jnp.sum(X * own[:, :, None], axis=1).reshape(-1))
        return take(jnp.concatenate([*parts, y[:0]]), np.argsort(self.selection.rows))


def _inverses(A):
    """Inverses of blocks (k, s, s)."""
    k, s, _ = A.shape
    if s == 1:
        return 1.0 / A
    if s == 3:
        a, b, c = (A[:, :, i] for i in range(3))
        rows = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], axis=1)
        return rows / jnp.sum(a * rows[:, 0], axis=1)[:, None, None]
    return _inverse(A[0])[None] if k == 1 else jax.vmap(_inverse)(A)


def _determinant_signs(A):
    """Signs of the determinants of blocks (k, s, s) near the identity, which need no pivoting."""
    sign = jnp.sign(A[:, 0, 0])
    while A.shape[1] > 1:
        A = A[:, 1:, 1:] - A[:, 1:, :1] * A[:, :1, 1:] / A[:, :1, :1]
        sign = sign * jnp.sign(A[:, 0, 0])
    return sign


@jax.custom_jvp
def _inverse(A):
    return pivoted(A, jnp.eye(A.shape[0], dtype=A.dtype))


@_inverse.defjvp
def _inverse_jvp(primals, tangents):
    X = _inverse(*primals)
    return X, -matmul(X, matmul(tangents[0], X))


def _times(X, x):
    return jnp.sum(X[:, :, :, None] * x[:, None], axis=2)


class Reduction(NamedTuple):
    """Reduced equations: `x = (y, C y + g)` in the order of the selection, with `mass` M~ (d, d)
    and `force` f~ (d,); `MG` (n, d) and `left` = f - M g (n,) in the order of velocities."""

    C: Float[Array, "m d"]
    g: Float[Array, " m"]
    mass: Float[Array, "d d"]
    force: Float[Array, " d"]
    MG: Float[Array, "n d"]
    left: Float[Array, " n"]


def reduction(M, J, inverse: DependentInverse, f, b) -> Reduction:
    """Reduce `M x + J^T lam = f`, `J x = b` to the independent velocities."""
    at = inverse.selection
    d = len(at.chosen)
    C, g = materialise((-inverse.times(take(J, at.chosen, axis=1)), inverse.times(b)))
    # G and g as columns of one matrix
    whole = jnp.concatenate(
        [jnp.eye(d, d + 1, dtype=f.dtype), jnp.concatenate([C, g[:, None]], axis=1)]
    )
    product = materialise(_mass_times(M, materialise(take(whole, at.order)), at.partners))
    MG, left = product[:, :d], f - product[:, d]
    free, held = at.chosen, at.dependent
    MG, left, held_MG, held_left = materialise((MG, left, take(MG, held), take(left, held)))
    mass = take(MG, free) + gram(C, held_MG)
    return Reduction(C, g, mass, take(left, free) + vecmat(held_left, C), MG, left)


def _mass_times(M, X, partners):
    """Product `M X` (n, k) with the nonzero entries of the sparse rows of M."""
    if partners is None:
        return matmul(M, X)
    there = materialise(entries(M, np.arange(len(partners))[:, None], partners))
    terms = (there[:, i, None] * take(X, partners[:, i]) for i in range(partners.shape[1]))
    return functools.reduce(jnp.add, terms)


class Eliminated(SaddlePoint):
    """Solution by a selection of independent velocities, or by pivoted elimination of the whole
    matrix if the selection is ill-conditioned (near a dead centre)."""

    M: Float[Array, "n n"]
    J: Float[Array, "m n"]
    selection: Selection = eqx.field(static=True)

    def solve(self, f, b):
        M, J = self.M, self.J
        f = jnp.zeros(M.shape[0], b.dtype) if f is None else f

        def product_with(z):
            x, lam = z
            return matvec(M, x) + vecmat(lam, J), matvec(J, x)

        fixed = lax.stop_gradient((M, J))
        find = lambda _, r: self._found(*fixed, *materialise(r))
        return lax.custom_linear_solve(product_with, (f, b), find, find, symmetric=True)

    def _found(self, M, J, f, b):
        inverse = DependentInverse.of(J, self.selection)
        well = everywhere(inverse.condition < WORST_CONDITION)
        return lax.cond(
            well,
            lambda: _by_selection(M, J, inverse, f, b),
            lambda: _whole(M, J, f, b),
        )


def _by_selection(M, J, inverse: DependentInverse, f, b):
    at = reduction(M, J, inverse, f, b)
    y = solve(*materialise((at.mass, at.force)), spd=True, nan_if_singular=True)
    x = inverse.selection.in_order(y, matvec(at.C, y) + at.g)
    held = inverse.selection.dependent
    return x, inverse.transposed(take(at.left - matvec(at.MG, y), held))


def _whole(M, J, f, b):
    x = pivoted(whole_matrix(M, J), jnp.concatenate([f, b]))
    return x[: f.shape[0]], x[f.shape[0] :]
