"""Entries at known places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax._jax.constant_gather import add_at, entries, take

X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_places_along_an_axis(axis, monkeypatch):
    """Like NumPy's `take`, whatever the shape of the places; derivatives in both modes."""
    for index in (np.array([2, 0, 0]), np.array([[1, 2], [0, 1]]), np.arange(X.shape[axis])):
        wanted = np.take(np.asarray(X), index, axis)
        np.testing.assert_array_equal(take(X, index, axis), wanted)
    monkeypatch.setenv("CORDAX_CONSTANT_GATHER", "0")
    np.testing.assert_array_equal(take(X, index, axis), wanted)
    assert "mode=GatherScatterMode.FILL" in str(jax.make_jaxpr(lambda x: take(x, index, axis))(X))
    monkeypatch.delenv("CORDAX_CONSTANT_GATHER")
    pick = lambda x: take(x, np.array([1, 0, 1]), axis)
    forward, reverse = jax.jacfwd(pick)(X), jax.jacrev(pick)(X)
    np.testing.assert_array_equal(forward, reverse)
    assert float(jnp.sum(forward)) == 3 * X.size / X.shape[axis]


def test_entries_of_a_matrix():
    i, j = np.array([[0], [3]]), np.array([[1, 4, 2]])
    np.testing.assert_array_equal(entries(X[:, :, 0], i, j), np.asarray(X[:, :, 0])[i, j])


def test_sums_at_places(monkeypatch):
    """Like NumPy's `add.at` for groups of no, one, some and many rows, under `vmap` and in both
    modes of differentiation, without a scatter operation; the last group is dropped."""
    random = np.random.default_rng(1)
    index = np.repeat([3, 0, 7, 5, 9], [1, 4, 90, 40, 6])[random.permutation(141)]
    x = random.normal(size=(2, 141, 3))
    wanted = np.zeros((2, 10, 3))
    for one, rows in zip(wanted, x, strict=True):
        np.add.at(one, index, rows)
    total = lambda rows: add_at(rows, index, 9)
    np.testing.assert_allclose(jax.vmap(total)(x), wanted[:, :9], atol=1e-13)
    forward, reverse = jax.jacfwd(total)(x[0]), jax.jacrev(total)(x[0])
    np.testing.assert_array_equal(forward, reverse)
    assert float(jnp.sum(forward)) == 3 * (141 - 6)
    program = jax.jit(jax.grad(lambda rows: jnp.sum(jnp.sin(take(rows, index)))))
    assert "scatter" not in program.lower(x[0]).as_text()
    monkeypatch.setenv("CORDAX_CONSTANT_GATHER", "0")
    np.testing.assert_allclose(total(x[0]), wanted[0, :9], atol=1e-13)


def test_places_that_are_not_there_are_refused():
    for places in ([0, 4], [-1, 2]):
        with pytest.raises(IndexError, match=f"places {places[0]} to {places[1]} of 4"):
            take(X, np.array(places))
