"""Linear complementarity against all subsets of rows."""

import itertools

import jax
import numpy as np
import pytest

from cordax.math.complementarity import active_set, masked_solve


def brute_force(A, b, one_sided, candidates):
    """The acting rows: x >= 0 there, w = A x - b >= 0 on the candidates that do not act."""
    m = len(b)
    may = np.flatnonzero(one_sided & candidates)
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(may, k) for k in range(len(may) + 1)
    ):
        acting = ~one_sided
        acting[list(chosen)] = True
        rows = np.flatnonzero(acting)
        x = np.zeros(m)
        x[rows] = np.linalg.solve(A[np.ix_(rows, rows)], b[rows])
        w = A @ x - b
        idle = one_sided & candidates & ~acting
        if np.all(x[list(chosen)] >= 0) and np.all(w[idle] >= 0):
            return acting.astype(float)
    raise AssertionError("no solution")


find = jax.jit(active_set)


def test_random_problems():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        m = 6
        G = rng.normal(size=(m, m + 1)) * 10 ** rng.uniform(-2, 2, (m, 1))  # rows of any scale
        A, b = G @ G.T, rng.normal(size=m) * np.linalg.norm(G, axis=1)
        one_sided, candidates = rng.random(m) < 0.7, rng.random(m) < 0.8
        expected = brute_force(A, b, one_sided, candidates)
        np.testing.assert_array_equal(find(A, b, one_sided, candidates), expected)
        seen.add(int(expected.sum()))
    assert len(seen) >= 5  # few and many acting rows


def test_a_problem_on_which_naive_pivoting_cycles():
    """Switching all wrong rows at once goes round in circles here (a P-matrix close to one that is
    not); the least index does not."""
    A = np.array([[1.0, 0.0, 2.0], [2.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
    A = A @ A.T
    b = np.array([1.0, 1.0, 1.0])
    everything = np.ones(3, bool)
    expected = brute_force(A, b, everything, everything)
    np.testing.assert_array_equal(find(A, b, everything, everything), expected)


def test_masked_solve_leaves_rows_out():
    A, b = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([8.0, 5.0])
    np.testing.assert_allclose(masked_solve(A, b, np.array([1.0, 0.0])), [2.0, 0.0])
    np.testing.assert_allclose(masked_solve(A, b, np.ones(2)), np.linalg.solve(A, b))


@pytest.mark.parametrize("rows", [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
def test_redundant_acting_rows_are_not_a_number(rows):
    A = np.ones((3, 3)) + np.diag([0.0, 0.0, 1.0])
    assert not np.all(np.isfinite(masked_solve(A, np.ones(3), np.array(rows))))
