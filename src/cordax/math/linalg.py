"""Small dense linear algebra for use inside a time loop.

A LAPACK call costs about a microsecond before any arithmetic and prevents XLA from compiling the
loop into one function. Up to `UNROLLED` unknowns, systems are therefore solved by an elimination in
plain array operations. Times in microseconds (`benchmarks/solves.py`):

| unknowns | 3 | 7 | 12 | 17 | 20 |
|---|---|---|---|---|---|
| elimination | 0.16 | 0.26 | 1.2 | 2.1 | 3.2 |
| LAPACK | 1.3 | 1.7 | 3.7 | 4.8 | 5.3 |

With more unknowns the compile time grows faster than the time saved (24 unknowns: 2.2 s against
0.2 s). Products of small matrices are written as broadcast and sum for the same reason.

Derivatives use the rule of the linear solve; the factorisation is never differentiated.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._jax.materialise import materialise
from .lapack import cholesky_or_nan, lu, lu_or_nan

UNROLLED = 20
#: largest number of unknowns for the pivoted elimination. It is about as fast as LAPACK there, and
#: LAPACK would prevent XLA from compiling the loop around it into one function
PIVOTED = 20
#: largest number of terms of a sum for which products are written out. Above about this number a
#: call of a matrix product is faster, although it prevents XLA from compiling the loop around it
#: into one function
PRODUCTS = 40


def matvec(A, x):
    """`A x` for a small matrix, shape (m, n) and (n,)."""
    return A @ x if A.shape[1] > PRODUCTS else jnp.sum(A * x, axis=1)


def vecmat(x, A):
    """`A^T x` for a small matrix, shape (m,) and (m, n)."""
    return x @ A if A.shape[0] > PRODUCTS else jnp.sum(A * x[:, None], axis=0)


def matmul(A, B):
    """`A B` for small matrices, shape (m, k) and (k, n)."""
    return A @ B if A.shape[1] > PRODUCTS else jnp.sum(A[:, :, None] * B[None], axis=1)


def gram(A, B):
    """`A^T B` for small matrices, shape (k, m) and (k, n)."""
    return A.T @ B if A.shape[0] > PRODUCTS else jnp.sum(A[:, :, None] * B[:, None, :], axis=0)


def solve(
    A,
    b,
    *,
    spd: bool = False,
    nan_if_singular: bool = False,
    unrolled: bool = True,
    pivoted: bool = False,
    symmetric: bool = False,
):
    """Solve `A x = b` for one right-hand side.

    **Arguments:**

    - `A`: shape (n, n); `b`: shape (n,).
    - `spd`: whether `A` is symmetric positive definite (used above `UNROLLED` unknowns and in
      reverse mode).
    - `nan_if_singular`: return NaN instead of round-off where `A` has lost rank (a pivot below
      `singular_pivot` times its diagonal entry). `A` must then be symmetric positive semidefinite.
    - `unrolled=False`: eliminate in a loop, for systems that are rarely solved. This is slower but
      compiles very quickly.
    - `pivoted`: pivot, for matrices that are not definite, such as those of saddle points; NaN
      where `A` is singular.
    - `symmetric`: whether `A` is symmetric, if it is not `spd`.

    Without `pivoted` the elimination does not pivot. Two kinds of matrices do not need pivots: mass
    matrices, and the matrices `M - dt D - dt^2 K` of implicit steps, whose symmetric part is
    positive definite for every useful time step. A vanishing pivot gives a non-finite state, which
    `simulate` reports."""

    def factor_solve(A, r):
        A = lax.stop_gradient(A)
        if pivoted:
            return _pivoted(A, r)
        eliminate = _factor_solve if unrolled else _eliminate_in_a_loop
        return eliminate(A, r, spd, nan_if_singular)

    return lax.custom_linear_solve(
        lambda x: matvec(A, x),
        b,
        lambda _, r: factor_solve(A, r),
        lambda _, r: factor_solve(A.T, r),
        symmetric=spd or symmetric,
    )


def inverse3(A):
    """Inverse of a 3 x 3 matrix by cross products of its columns, without a LAPACK call."""
    a, b, c = A.T
    rows = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)])
    return rows / jnp.sum(a * rows[0])


def inverse2(A):
    """Inverse of 2 x 2 matrices, shape (2, 2, ...) with rows and columns first."""
    (a, b), (c, d) = A
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]]).reshape(2, 2, *(1,) * (A.ndim - 2))
    return A[::-1, ::-1].swapaxes(0, 1) * (sign.astype(A.dtype) / (a * d - b * c))


@jax.custom_jvp
def inverse(A):
    """Inverse of a small matrix (n, n). Up to `PIVOTED` rows by pivoted elimination without a
    LAPACK call, which gives NaN for a singular matrix."""
    n = A.shape[0]
    if n > PIVOTED:
        return lu(A, jnp.eye(n, dtype=A.dtype))
    return _pivoted(A, jnp.eye(n, dtype=A.dtype))


@inverse.defjvp
def _inverse_jvp(primals, tangents):
    X = inverse(*primals)
    return X, -matmul(X, matmul(tangents[0], X))


@jax.custom_jvp
def pseudo_inverse(A, tolerance):
    """Moore-Penrose inverse of a matrix (m, n).

    Singular values below `tolerance` times the largest one count as zero. The tolerance may be
    traced; its derivative is zero. Derivatives are valid as long as the rank does not change."""
    if A.shape[0] == 0:
        return A.T
    U, s, Vt = jnp.linalg.svd(A, full_matrices=False)
    kept = s > tolerance * s[0]
    return (Vt.T * jnp.where(kept, 1.0 / jnp.where(kept, s, 1.0), 0.0)) @ U.T


@pseudo_inverse.defjvp
def _pseudo_inverse_jvp(primals, tangents):
    A, tolerance = primals
    P, dA = pseudo_inverse(A, tolerance), tangents[0]
    # Golub and Pereyra (1973): rotation of column and row spaces, and change within them
    columns = P @ (P.T @ (dA.T - (dA.T @ A) @ P))
    rows = (dA.T - P @ (A @ dA.T)) @ P.T @ P
    return P, columns + rows - P @ dA @ P


def singular_pivot(dtype) -> float:
    """Pivot, relative to its diagonal entry, below which it is round-off."""
    return 1e3 * float(jnp.finfo(dtype).eps)


def smallest_pivot(A):
    """Smallest pivot of the elimination of a symmetric positive semidefinite matrix, shape (n, n).

    The matrix has full rank if the pivot is well above round-off. This is used to explain failures,
    also in batches, so that there is no LAPACK call."""

    def eliminate(k, carry):
        W, least = carry
        pivot = W[k, k]
        column = W[:, k] / jnp.where(pivot == 0, 1.0, pivot)
        return W - column[:, None] * W[k], jnp.minimum(least, pivot)

    return lax.fori_loop(0, A.shape[0], eliminate, (A, jnp.asarray(jnp.inf, A.dtype)))[1]


def _factor_solve(A, b, spd, nan_if_singular):
    if b.shape[0] <= UNROLLED:
        return _eliminate(A, b, nan_if_singular)
    least = singular_pivot(A.dtype) if nan_if_singular else None
    return (cholesky_or_nan(least) if spd else lu)(A, b[:, None])[:, 0]


def _pivoted(A, b, largest: int = PIVOTED):
    """Solve by Gauss-Jordan elimination with partial pivoting, after rows and columns have been
    scaled to 1. One right-hand side (n,), or several (n, k).

    The elimination is a loop, because unrolled it is hardly faster and takes four to ten times as
    long to compile (12 unknowns: 1.8 microseconds, unrolled 1.6, LAPACK 4.1; 20: 6.5 and 5.2; 24:
    10.5 and 6.5; `benchmarks/solves.py`)."""
    n = b.shape[0]
    rows = _reciprocal(jnp.max(jnp.abs(A), axis=1))
    columns = _reciprocal(jnp.max(jnp.abs(A) * rows[:, None], axis=0))
    sides = b[:, None] if b.ndim == 1 else b
    A, sides = A * rows[:, None] * columns, sides * rows[:, None]
    if n > largest:
        x = lu_or_nan(singular_pivot(A.dtype))(A, sides) * columns[:, None]
        return x[:, 0] if b.ndim == 1 else x
    index = jnp.arange(n)

    def eliminate(k, carry):
        W, left, where = carry
        column = lax.dynamic_index_in_dim(W, k, 1, keepdims=False)
        size = jnp.abs(column) * left
        p = jnp.argmax(size)
        # size counts remaining rows only: if all of them are zero, p may be any row
        pivot = jnp.where(size[p] > singular_pivot(A.dtype), column[p], jnp.nan)
        row = lax.dynamic_index_in_dim(W, p, 0, keepdims=False) / pivot
        here = index == p
        W = jnp.where(here[:, None], row, W - column[:, None] * row)
        return W, jnp.where(here, 0.0, left), where.at[k].set(p.astype(jnp.int32))

    W = materialise(jnp.concatenate([A, sides], axis=1))
    start = W, jnp.ones_like(W[:, 0]), jnp.zeros(n, jnp.int32)
    W, _, where = lax.fori_loop(0, n, eliminate, start)
    x = W[where, n:] * columns[:, None]
    return x[:, 0] if b.ndim == 1 else x


def pivoted(A, b):
    """Solve `A x = b` for right-hand sides (n,) or (n, k) by pivoted elimination.

    There is no LAPACK call, whatever the size. Intended for systems that are rarely solved inside a
    time loop. No derivatives; NaN where `A` is singular."""
    return _pivoted(A, b, A.shape[0])


def _reciprocal(x):
    """1/x; 1 where x is zero, so that an empty row gives a vanishing pivot."""
    return 1.0 / jnp.where(x > 0, x, 1.0)


def _eliminate_in_a_loop(A, b, spd, nan_if_singular):
    """Solve by Gauss-Jordan elimination in a loop, one pivot per iteration."""
    least = singular_pivot(A.dtype) * jnp.diagonal(A)

    def eliminate(k, W):
        pivot = W[k, k]
        if nan_if_singular:
            pivot = jnp.where(pivot > least[k], pivot, jnp.nan)
        row = W[k] / pivot
        return (W - W[:, k, None] * row).at[k].set(row)

    W = jnp.concatenate([A, b[:, None]], axis=1)
    return lax.fori_loop(0, b.shape[0], eliminate, W)[:, -1]


def _eliminate(A, b, nan_if_singular):
    """Solve by Gaussian elimination on a shrinking matrix, one materialised block per pivot, and
    back substitution."""
    n = b.shape[0]
    W = jnp.concatenate([A, b[:, None]], axis=1)
    rows = []
    for k in range(n):
        pivot = W[0, 0]
        if nan_if_singular:
            pivot = jnp.where(pivot > singular_pivot(A.dtype) * A[k, k], pivot, jnp.nan)
        row = W[0, 1:] / pivot
        rows.append(row)
        if k < n - 1:
            W = materialise(W[1:, 1:] - W[1:, :1] * row)
    x: list[jax.Array] = []
    for row in reversed(rows):
        value = row[-1]
        for j, xj in enumerate(reversed(x)):
            value = value - row[j] * xj
        x.append(value)
    return jnp.stack(x[::-1])
