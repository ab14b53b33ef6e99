"""Elimination along a chain of overlapping elements."""

import jax
import numpy as np
import pytest

from cordax.math.chain import factor_chain, small_inverse


def assembled(elements, m):
    """The dense matrix."""
    n, size, _ = elements.shape
    A = np.zeros((n * m + size - m,) * 2)
    for e in range(n):
        A[e * m : e * m + size, e * m : e * m + size] += elements[e]
    assert np.all(A[n * m :] == 0.0)
    assert np.all(A[:, n * m :] == 0.0)
    return A[: n * m, : n * m]


def chain(n, k, m, seed):
    """Elements with a dominant diagonal, not symmetric, that end with the chain."""
    rng = np.random.default_rng(seed)
    elements = 0.2 * rng.standard_normal((n, k * m, k * m)) + 2.0 * np.eye(k * m)
    for e in range(max(0, n - k + 1), n):
        elements[e, (n - e) * m :] = 0.0
        elements[e, :, (n - e) * m :] = 0.0
    return elements


@pytest.mark.parametrize(("n", "k", "m"), [(9, 4, 4), (5, 2, 3), (2, 4, 1), (4, 3, 2)])
def test_against_a_dense_solve(n, k, m):
    elements = chain(n, k, m, seed=n)
    A = assembled(elements, m)
    b = np.random.default_rng(1).standard_normal((n, m))

    @jax.jit
    def both(elements, b):
        factor = factor_chain(elements, m)
        return factor.solve(b), factor.transposed().solve(b)

    found, turned = both(elements, b)
    dense = lambda A: np.linalg.solve(A, b.reshape(-1)).reshape(n, m)
    np.testing.assert_allclose(found, dense(A), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(turned, dense(A.T), rtol=1e-12, atol=1e-13)


def test_batches():
    elements = np.stack([chain(6, 4, 2, seed) for seed in range(3)])
    b = np.random.default_rng(2).standard_normal((3, 6, 2))
    solve = jax.jit(lambda e, b: factor_chain(e, 2).solve(b))
    for together, e, one in zip(jax.jit(jax.vmap(solve))(elements, b), elements, b, strict=True):
        np.testing.assert_allclose(together, solve(e, one), rtol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_small_inverse(m):
    A = np.random.default_rng(m).standard_normal((m, m)) + 3.0 * np.eye(m)
    np.testing.assert_allclose(jax.jit(small_inverse)(A), np.linalg.inv(A), rtol=1e-12)
