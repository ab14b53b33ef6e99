"""Entries at known places, and what is traced once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax._jax.constant_gather import entries, take
from cordax._jax.trace_memo import once

X = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_places_along_an_axis(axis):
    """Like NumPy's `take`, whatever the shape of the places; derivatives in both modes."""
    for index in (np.array([2, 0, 0]), np.array([[1, 2], [0, 1]]), np.arange(X.shape[axis])):
        wanted = np.take(np.asarray(X), index, axis)
        np.testing.assert_array_equal(take(X, index, axis), wanted)
    pick = lambda x: take(x, np.array([1, 0, 1]), axis)
    forward, reverse = jax.jacfwd(pick)(X), jax.jacrev(pick)(X)
    np.testing.assert_array_equal(forward, reverse)
    assert float(jnp.sum(forward)) == 3 * X.size / X.shape[axis]


def test_entries_of_a_matrix():
    i, j = np.array([[0], [3]]), np.array([[1, 4, 2]])
    np.testing.assert_array_equal(entries(X[:, :, 0], i, j), np.asarray(X[:, :, 0])[i, j])


def test_places_that_are_not_there_are_refused():
    for places in ([0, 4], [-1, 2]):
        with pytest.raises(IndexError, match=f"places {places[0]} to {places[1]} of 4"):
            take(X, np.array(places))


def test_the_same_numbers_are_traced_once_within_one_function():
    """Not across branches or derivatives, whose numbers must not leave them."""
    calls = []

    def square(x):
        calls.append(1)
        return x * x

    both = jax.jit(lambda x: once(square, x) + once(square, x))
    assert float(both(3.0)) == 18.0 and len(calls) == 1

    def branches(x):
        outside = once(square, x)
        return jax.lax.cond(x > 0, lambda: once(square, x) + 1.0, lambda: once(square, x) - outside)

    assert float(jax.jit(branches)(2.0)) == 5.0 and float(jax.jit(branches)(-2.0)) == 0.0
    slope = lambda x: jax.grad(lambda y: once(square, y))(x) + once(square, x)
    assert float(jax.jit(slope)(3.0)) == 15.0 and float(jax.grad(slope)(3.0)) == 8.0
    assert once(square, np.float64(2.0)) == 4.0
