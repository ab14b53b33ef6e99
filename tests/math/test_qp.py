"""Quadratic programmes: optimality, trusted solvers, derivatives, and what has no solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from cordax.math.qp import INFEASIBLE, NOT_CONVEX, SOLVED, UNFINISHED, solve_qp
from helpers.stored import stored

batched = jax.jit(jax.vmap(solve_qp))


def kkt_residual(P, q, A, b, lower, upper, C, found):
    """Largest violation of the conditions of optimality: they are sufficient as P is convex."""
    values, z = C @ found.x, found.bounds
    slack = np.where(z > 0, values - lower, np.where(z < 0, values - upper, 0.0))
    below = np.maximum(lower - values, 0.0)
    above = np.maximum(values - upper, 0.0)
    stationary = P @ found.x + q - A.T @ found.equality - C.T @ z
    parts = (stationary, A @ found.x - b, below, above, z * slack)
    return max(np.max(np.abs(part), initial=0.0) for part in parts)


def problems(kind: str, count: int):
    """Feasible random programmes, a batch: `bounds` on the unknowns with P of rank n/2, or `rows`
    with a general C and one equation."""
    rng = np.random.default_rng(7)
    out = []
    for _ in range(count):
        if kind == "bounds":
            n, m = 8, 6
            root = rng.normal(size=(n // 2, n))
            P, C = root.T @ root, np.eye(n)
        else:
            n, m = 5, 1
            root = rng.normal(size=(n, n))
            P, C = root.T @ root + 0.1 * np.eye(n), rng.normal(size=(9, n))
        A, q, inside = rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=n)
        width = rng.exponential(size=(2, C.shape[0])) * 0.3
        lower, upper = C @ inside - width[0], C @ inside + width[1]
        lower[0], upper[1] = -np.inf, np.inf
        out.append((P, q, A, A @ inside, lower, upper, C))
    return tuple(np.stack(x) for x in zip(*out, strict=True))


def member(tree, i):
    return jax.tree.map(lambda x: np.asarray(x)[i], tree)


@pytest.mark.parametrize("kind", ["bounds", "rows"])
def test_random_programmes_are_optimal_and_those_of_a_trusted_solver(kind):
    given = problems(kind, 200)
    found = batched(*given)
    assert np.all(found.status == SOLVED)
    residuals = [kkt_residual(*member(given, i), member(found, i)) for i in range(200)]
    assert max(residuals) < 1e-8
    acting = np.sum(np.asarray(found.bounds) != 0, axis=1)
    assert acting.min() < acting.max() >= 2, "different numbers of bounds should act"
    for i in range(20):
        np.testing.assert_allclose(found.x[i], trusted(*member(given, i)), atol=1e-6)


def trusted(P, q, A, b, lower, upper, C):
    """By sequential quadratic programming in SciPy."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    sides = [
        {"type": "eq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
        {"type": "ineq", "fun": lambda x: (C @ x - lower)[low], "jac": lambda x: C[low]},
        {"type": "ineq", "fun": lambda x: (upper - C @ x)[high], "jac": lambda x: -C[high]},
    ]
    return minimize(
        lambda x: 0.5 * x @ P @ x + q @ x,
        np.zeros(len(q)),
        jac=lambda x: P @ x + q,
        constraints=sides,
        options={"ftol": 1e-15, "maxiter": 500},
    ).x


@pytest.mark.parametrize("first", [0, 1])
def test_stored_programmes(first):
    """One or three free directions, of which half carry no cost; bounds on some."""
    data = stored("quadratic_programmes")
    for j in range(first, 8, 2):
        A, b, x, lower, upper = (data[f"qp_{j}_{name}"] for name in ("Aeq", "beq", "x", "lo", "hi"))
        n = x.shape[0]
        P = np.diag(np.where(np.arange(n) < data[f"qp_{j}_nu"], 1.0, 0.0))
        found = one(P, np.zeros(n), A, b, lower, upper)
        assert found.status == SOLVED
        np.testing.assert_allclose(found.x, x, rtol=1e-6, atol=1e-6)
        given = P, np.zeros(n), A, b, lower, upper, np.eye(n)
        assert kkt_residual(*given, found) < 1e-8


one = jax.jit(solve_qp)


def test_torques_of_a_strut_on_cables_without_scaling():
    """Strains of 1e-3 beside torques of 5 N m: coefficients span seven decades."""
    data = stored("quadratic_programmes")
    P = np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    for i in range(3):
        least = data["strut_qp_emin"][i] - data["strut_eps"][i]
        lower = np.concatenate([np.full(3, -np.inf), least])
        A, b = (data[f"strut_qp_{x}"][i] for x in ("Aeq", "beq"))
        found = one(P, np.zeros(6), A, b, lower, np.full(6, np.inf))
        assert found.status == SOLVED
        np.testing.assert_allclose(found.x[:3], data["strut_qp_u"][i], rtol=1e-6)
        np.testing.assert_allclose(found.x[3:], data["strut_qp_deps"][i], rtol=1e-6)


def test_the_method_for_larger_programmes_agrees():
    given = problems("rows", 20)
    small = batched(*given)
    interior = jax.jit(jax.vmap(lambda *x: solve_qp(*x, method="interior")))
    large = interior(*given)
    assert np.all(large.status == SOLVED)
    np.testing.assert_allclose(large.x, small.x, atol=1e-9)
    np.testing.assert_allclose(large.bounds, small.bounds, atol=1e-7)
    *_, lower, upper, C = given
    lower[:, 2], upper[:, 2] = 1.0, 0.0
    none = interior(*given[:4], lower, upper, C)
    assert np.all(none.status == INFEASIBLE)


def test_derivatives_in_both_modes():
    """Of the solution and its multipliers by everything the programme is made of, first and second
    order, against central differences; two bounds act."""
    P, q, A, b, lower, upper, C = (x[3] for x in problems("rows", 4))
    rng = np.random.default_rng(1)
    some = jax.tree.map(lambda x: rng.normal(size=x.shape), (P, q, A, b, C))

    def along(s):
        R, dq, dA, db, dC = jax.tree.map(lambda x: s * x, some)
        found = solve_qp(P + 0.1 * (R + R.T), q + dq, A + dA, b + db, lower + s, upper, C + dC)
        return jnp.sum(jnp.sin(found.x)) + found.bounds @ jnp.arange(9.0) + found.equality[0]

    value = jax.jit(along)
    assert np.sum(np.asarray(one(P, q, A, b, lower, upper, C).bounds) != 0) >= 2
    h = 1e-4
    at = [float(value(k * h)) for k in (-2, -1, 0, 1, 2)]
    first = (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * h)
    second = (16 * (at[3] + at[1]) - (at[4] + at[0]) - 30 * at[2]) / (12 * h * h)
    assert jax.jit(jax.jacfwd(along))(0.0) == pytest.approx(first, rel=1e-8)
    assert jax.jit(jax.grad(along))(0.0) == pytest.approx(first, rel=1e-8)
    assert jax.jit(jax.jacfwd(jax.grad(along)))(0.0) == pytest.approx(second, rel=1e-5)


def test_equations_that_depend_on_one_another():
    """The same row twice is one row; twice with different right sides is none."""
    A = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    solve = jax.jit(lambda b: solve_qp(jnp.eye(3), jnp.zeros(3), A, b, jnp.zeros(3), jnp.ones(3)))
    found = solve(np.array([1.4, 2.8]))
    assert found.status == SOLVED
    np.testing.assert_allclose(found.x, [0.1, 0.2, 0.3], atol=1e-12)
    assert solve(np.array([1.4, 3.0])).status == INFEASIBLE
    assert solve(np.array([7.0, 14.0])).status == INFEASIBLE, "beyond the bounds"
    moved = jax.jit(jax.jacfwd(lambda s: solve(s * np.array([1.4, 2.8])).x))(1.0)
    np.testing.assert_allclose(moved, [0.1, 0.2, 0.3], atol=1e-12)


def test_what_has_no_solution_is_said_and_finite():
    flat = jax.jit(lambda: solve_qp(jnp.zeros((2, 2)), jnp.ones(2), lower=0.0))()
    assert flat.status == NOT_CONVEX
    crossed = jax.jit(lambda: solve_qp(jnp.eye(2), jnp.zeros(2), lower=1.0, upper=0.0))()
    assert crossed.status == INFEASIBLE
    given = [x[0] for x in problems("rows", 1)]
    short = jax.jit(lambda *given: solve_qp(*given, max_iterations=1))(*given)
    assert short.status == UNFINISHED
    for found in (flat, crossed, short):
        assert not found.solved
        assert np.all(np.isfinite(found.x))


def test_it_is_compiled_into_the_loop_around_it():
    from cordax._jax.xla_flags import unhoisted_loops

    P, q, A, b, lower, upper, C = (x[0] for x in problems("rows", 1))

    def march(q):
        again = lambda i, q: q + 0.1 * solve_qp(P, q, A, b, lower, upper, C).x
        return jax.lax.fori_loop(0, 10, again, q)

    text = jax.jit(march).lower(q).compile().as_text()
    assert unhoisted_loops(text) == 0 and "custom-call" not in text


def test_equations_with_targets_next_to_zero_are_met():
    """To the round-off of the others, not relative to their own size."""
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(100, 4, 6)), np.array([1.0, -2.0, 1e-13, 1e-20])
    P, q = jnp.eye(6), jnp.zeros(6)
    found = jax.jit(jax.vmap(lambda A: solve_qp(P, q, A, jnp.asarray(b), -1e3)))(jnp.asarray(A))
    assert np.all(found.solved)
    np.testing.assert_allclose(
        np.einsum("ijk,ik->ij", A, found.x), np.tile(b, (100, 1)), atol=1e-12
    )
