"""LAPACK in batches: the same numbers, one call per matrix, and nothing that waits for ever."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math.lapack import cholesky_or_nan, lu, lu_or_nan
from cordax.math.linalg import inverse, singular_pivot, solve
from cordax.simulation.batch import _BATCHED

N, K = 24, 3
LEAST = singular_pivot(jnp.float64)
RANDOM = np.random.default_rng(4)
A = RANDOM.normal(size=(5, N, N)) + 6.0 * np.eye(N)
SPD = A @ A.swapaxes(1, 2)
B = RANDOM.normal(size=(5, N, K))


@pytest.mark.parametrize("how", [lu, lu_or_nan(LEAST), cholesky_or_nan(LEAST)])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_batches_are_what_single_systems_are(how, axes):
    given = [x if axis == 0 else x[0] for x, axis in zip((SPD, B), axes, strict=True)]
    found = jax.jit(jax.vmap(how, axes))(*given)
    np.testing.assert_allclose(found, np.linalg.solve(*given), rtol=1e-9, atol=1e-12)


def test_batches_of_batches():
    sides = RANDOM.normal(size=(4, 5, N, K))
    found = jax.jit(jax.vmap(jax.vmap(lu), (None, 0)))(A, sides)
    np.testing.assert_allclose(found, np.linalg.solve(A, sides), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("how", [lu_or_nan(LEAST), cholesky_or_nan(LEAST)])
def test_one_singular_member_is_nan_and_others_are_not(how):
    lost = SPD.copy()
    lost[2, :, 3] = lost[2, 3, :] = 0.0
    found = np.asarray(jax.vmap(how)(lost, B))
    assert np.isnan(found).any(axis=(1, 2)).tolist() == [False, False, True, False, False]


def test_no_call_is_for_a_batch():
    text = lambda f, *x: jax.jit(f).lower(*x).as_text()
    b = B[..., 0]
    for f in (solve, lambda A, b: solve(A, b, spd=True), lambda A, b: solve(A, b, pivoted=True)):
        single, slopes = text(jax.vmap(f), SPD, b), text(jax.jacfwd(f, 1), SPD[0], b[0])
        assert "@lapack_" in single and not _BATCHED.search(single)
        assert "@lapack_" in slopes and not _BATCHED.search(slopes)
    assert not _BATCHED.search(text(jax.vmap(inverse), SPD))
    assert _BATCHED.search(text(jax.vmap(jnp.linalg.solve), SPD, B))


def test_gradients_of_a_batch():
    b = B[..., 0]
    own = lambda A: jnp.sum(jax.vmap(solve)(A, b) ** 2)
    known = lambda A: jnp.sum(jnp.linalg.solve(A, b[..., None]) ** 2)
    np.testing.assert_allclose(jax.grad(own)(A), jax.grad(known)(A), rtol=1e-8, atol=1e-12)
    along = lambda f: jax.jvp(f, (A,), (SPD,))[1]
    np.testing.assert_allclose(along(own), along(known), rtol=1e-8)


@pytest.mark.parametrize("twice", [jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))])
def test_second_derivatives_of_a_batch(twice):
    b = B[..., 0]
    own = lambda x: jnp.sum(jax.vmap(solve)(A + x[0] * SPD, b + x[1]) ** 2)
    known = lambda x: jnp.sum(jnp.linalg.solve(A + x[0] * SPD, b[..., None] + x[1]) ** 2)
    at = jnp.array([0.1, 0.2])
    np.testing.assert_allclose(twice(own)(at), twice(known)(at), rtol=1e-7)


def test_an_inverse_in_batches_and_its_derivative():
    own, known = jax.vmap(inverse), jnp.linalg.inv
    np.testing.assert_allclose(own(A), known(A), rtol=1e-9, atol=1e-12)
    slope = lambda f: jax.grad(lambda A: jnp.sum(f(A) ** 2))(A)
    np.testing.assert_allclose(slope(own), slope(known), rtol=1e-8, atol=1e-12)


def test_batches_do_not_wait_for_each_other():
    """On two threads a program with several calls of LAPACK for batches stands still for ever."""
    code = """
import cordax, jax, jax.numpy as jnp
from cordax.math.linalg import solve
cordax.enable_x64()
A = 5.0 * jnp.eye(24) + 0.1 * jax.random.normal(jax.random.key(0), (200, 24, 24))
f = lambda A, x: sum(jax.vmap(solve)(A + k * jnp.eye(24), x) for k in range(8))
run = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, x: f(A + 1e-9 * x[:, None], x), x))
print(run(jnp.ones((200, 24))).block_until_ready().shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PJRT_NPROC": "2"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.strip() == "(200, 24)"
