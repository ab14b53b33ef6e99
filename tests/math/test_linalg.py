"""Small dense algebra against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math import linalg
from cordax.math.linalg import UNROLLED, solve

SIZES = (1, 3, 7, 20, 30)


def problem(n, spd):
    """A well-conditioned matrix with positive definite symmetric part, and a right-hand side."""
    rng = np.random.default_rng(n)
    B = rng.normal(size=(n, n))
    A = B @ B.T / n + np.eye(n)
    return (A if spd else A + 0.3 * (B - B.T)), rng.normal(size=n)


def test_sizes_lie_on_both_sides_of_the_switch():
    assert min(SIZES) <= UNROLLED < max(SIZES) and UNROLLED in SIZES


# The unrolled elimination takes no notice of `spd`, so it is tried with it at one size only.
@pytest.mark.parametrize(("n", "spd"), [*((n, False) for n in SIZES), (3, True), (30, True)])
def test_solve_and_its_derivatives(n, spd):
    """x = A^-1 b, dx = A^-1 (db - dA x); reverse mode is the transpose of forward mode."""
    A, b = problem(n, spd)
    rng = np.random.default_rng(1)
    dA, db, w = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
    dA = dA + dA.T if spd else dA

    @jax.jit
    def everything(A, b):
        f = lambda A, b: solve(A, b, spd=spd)
        x, push = jax.linearize(f, A, b)
        return x, push(dA, db), jax.linear_transpose(push, A, b)(jnp.asarray(w))

    x, dx, (wA, wb) = everything(A, b)
    exact = np.linalg.solve(A, b)
    np.testing.assert_allclose(x, exact, rtol=1e-10, atol=1e-12)
    slope = np.linalg.solve(A, db - dA @ exact)
    np.testing.assert_allclose(dx, slope, rtol=1e-9, atol=1e-11)
    adjoint = np.linalg.solve(A.T, w)
    np.testing.assert_allclose(wb, adjoint, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(wA, -np.outer(adjoint, exact), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [3, 30])
def test_second_derivative_of_solve(n):
    """d^2/ds^2 of (A + s B)^-1 b at 0 is 2 A^-1 B A^-1 B A^-1 b."""
    A, b = problem(n, False)
    B = np.random.default_rng(2).normal(size=(n, n))
    x = lambda s: solve(A + s * B, jnp.asarray(b))
    inverse = np.linalg.inv(A)
    exact = 2.0 * inverse @ B @ inverse @ B @ inverse @ b
    np.testing.assert_allclose(jax.jit(jax.jacfwd(jax.jacrev(x)))(0.0), exact, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [3, 30])
def test_solve_in_a_batch(n):
    A, b = (np.stack(x) for x in zip(problem(n, True), problem(n, False), strict=True))
    got = jax.jit(jax.vmap(solve))(A, b)
    np.testing.assert_allclose(got, np.linalg.solve(A, b[..., None])[..., 0], rtol=1e-9, atol=1e-12)


def test_small_solves_call_no_library():
    text = lambda n: jax.jit(solve).lower(*problem(n, False)).compile().as_text()
    assert "custom-call" not in text(7)
    assert "custom-call" in text(30)


def test_singular_matrix_gives_nonfinite_values():
    assert not np.any(np.isfinite(jax.jit(solve)(np.zeros((2, 2)), np.ones(2))))


def test_a_pivot_is_never_taken_from_a_row_twice():
    """Two equal rows leave nothing but zeros, whichever of them was taken first."""
    A = np.array([[1.0, 0.02], [1.0, 0.02]])
    both = lambda A: (solve(A, jnp.ones(2), pivoted=True), linalg.pivoted(A, jnp.eye(2)))
    one, other = jax.jit(both)(A)
    assert not np.any(np.isfinite(one)) and not np.any(np.isfinite(other))


@pytest.mark.parametrize("k", [3, 50])
def test_products(k):
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(k, k + 2)), rng.normal(size=(k, 4))
    C, x, y = rng.normal(size=(k + 2, 3)), rng.normal(size=k + 2), rng.normal(size=k)

    @jax.jit
    def products(A, B, C, x, y):
        return linalg.matvec(A, x), linalg.vecmat(y, A), linalg.matmul(A, C), linalg.gram(A, B)

    exact = A @ x, A.T @ y, A @ C, A.T @ B
    for found, wanted in zip(products(A, B, C, x, y), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_pseudo_inverse_of_a_matrix_without_full_rank():
    """Against NumPy, and its derivative along changes that keep the rank against differences."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(5, 3)), rng.normal(size=(3, 4))
    d_left, d_right = rng.normal(size=(5, 3)), rng.normal(size=(3, 4))
    of = jax.jit(lambda s: linalg.pseudo_inverse((left + s * d_left) @ (right + s * d_right), 1e-9))
    np.testing.assert_allclose(of(0.0), np.linalg.pinv(left @ right, rcond=1e-9), atol=1e-12)
    h = 1e-5
    slope = (of(h) - of(-h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(of))(0.0), slope, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(jax.jit(jax.jacrev(of))(0.0), slope, rtol=1e-7, atol=1e-8)
    # a tolerance above the smallest singular value lowers the rank
    s = np.linalg.svd(left @ right, compute_uv=False)
    low = jax.jit(linalg.pseudo_inverse)(left @ right, 1.01 * s[2] / s[0])
    assert np.linalg.matrix_rank(low) == 2
