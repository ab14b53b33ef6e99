"""Linear solves by LAPACK that treat the matrices of a batch one after the other.

A LAPACK call for a whole batch divides its work among XLA's threads and waits for it on one of
them. If as many such calls run at once as there are threads, they never return (jaxlib 0.10; two
calls are enough on two cores). A call for one matrix does not have this problem. One after the
other, 64 matrices take 1.6 times as long with 21 unknowns, 1.2 times with 30 and as long with 80
(`benchmarks/solves.py`), but chunks of a batch can then run in parallel."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.scipy import linalg as jsl


def _in_turn(solve):
    """Give `solve(A, B)`, with shapes (n, n) and (n, k), a rule for `vmap`.

    Several right-hand sides of one matrix share one factorisation. Several matrices are solved one
    after the other. The result cannot be differentiated."""
    called = custom_vmap(solve)

    @called.def_vmap
    def rule(size, batched, A, B):
        several, sides = batched
        if jax.default_backend() != "cpu":  # other backends have no such threads
            return jax.vmap(solve, [0 if x else None for x in batched])(A, B), True
        if not several:
            columns = jnp.moveaxis(B, 0, 1).reshape(B.shape[1], -1)
            return jnp.moveaxis(called(A, columns).reshape(-1, size, B.shape[2]), 1, 0), True
        if sides:
            return lax.map(lambda pair: called(*pair), (A, B)), True
        return lax.map(lambda A: called(A, B), A), True

    return called


@_in_turn
def lu(A, B):
    """Compute `A^-1 B`, shape (n, k)."""
    return jnp.linalg.solve(A, B)


def lu_or_nan(least: float):
    """Function that computes `A^-1 B`, shape (n, k); NaN if a pivot is below `least`."""

    @_in_turn
    def solve(A, B):
        factor, order = jsl.lu_factor(A)
        smallest = jnp.min(jnp.abs(jnp.diagonal(factor)))
        return jnp.where(smallest > least, jsl.lu_solve((factor, order), B), jnp.nan)

    return solve


def cholesky_or_nan(least: float | None):
    """Function that computes `A^-1 B`, shape (n, k), for symmetric positive definite A. If `least`
    is given: NaN if a pivot is below `least` times its diagonal entry."""

    @_in_turn
    def solve(A, B):
        factor = jsl.cho_factor(A, lower=True)
        x = jsl.cho_solve(factor, B)
        if least is None:
            return x
        return jnp.where(
            jnp.all(jnp.diagonal(factor[0]) ** 2 > least * jnp.diagonal(A)), x, jnp.nan
        )

    return solve
