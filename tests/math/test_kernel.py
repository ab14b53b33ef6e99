"""Steps taken apart into numbers, in one loop over a batch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import simulate, simulate_batch, timeloop
from cordax.math.kernel import in_lanes
from cordax.math.linalg import solve
from cordax.math.numbers import apart, count, evaluate
from cordax.systems import Neck

ROUTES = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [0.5, 0.0, 0.0]])


def mixed(x, k):
    """Something of everything that is taken apart."""
    A = ROUTES * x[:, None] + 3.0 * jnp.eye(3)
    y = solve(A, x[::-1]) + (A @ x)[jnp.array([2, 0, 1])]
    y = y.at[1].set(jnp.max(x))
    turned = jax.lax.cond(k > 2, lambda x: jnp.sin(x), lambda x: x**3 - jnp.sqrt(jnp.abs(x)), y)
    both = jnp.concatenate([turned, jnp.cumsum(x)[-1:], jnp.einsum("ij,kj->ki", A, A)[0]])
    low = jnp.where(jnp.any(both > 1.0) & jnp.isfinite(both[0]), jnp.prod(x), k % 3)
    return both[:3] / (1.0 + jnp.sum(both**2)) + 0.1 * low, jnp.where(low > 0, k + 1, k - 1)


def test_numbers_are_those_of_the_arrays():
    closed = jax.make_jaxpr(mixed)(jnp.zeros(3), jnp.int32(0))
    assert count(closed.jaxpr) is not None
    for x, k in (([0.3, -0.2, 0.9], 1), ([1.3, 0.7, 0.4], 5)):
        x, k = jnp.array(x), jnp.int32(k)
        found = evaluate(closed, [apart(x), apart(k)])  # known numbers: all are computed at once
        for a, b in zip(found, mixed(x, k), strict=True):
            np.testing.assert_allclose(np.array(a.tolist()), b, rtol=1e-14)


def test_sums_of_nothing():
    def nothing(x):
        return jnp.sum(x[:0]) + jnp.prod(x[:0]) + jnp.dot(x[:0], x[:0]) + x[0]

    (found,) = evaluate(jax.make_jaxpr(nothing)(jnp.zeros(2)), [apart(jnp.array([3.0, 4.0]))])
    assert found[()] == nothing(jnp.array([3.0, 4.0])) == 4.0


def test_numbers_that_nothing_is_done_with():
    """XLA refuses fusions with arguments that are not used."""

    def run(x, y):
        step, begin, together = in_lanes(lambda c, i: (c[0] + 1.0, 2.0 * c[0]), (x, y), 0)
        return together(jax.lax.fori_loop(0, 3, lambda i, c: step(c, i), begin))

    x, y = jax.jit(jax.vmap(run))(jnp.arange(4.0), jnp.full(4, jnp.inf))
    np.testing.assert_array_equal(x, jnp.arange(4.0) + 3.0)
    np.testing.assert_array_equal(y, 2.0 * (jnp.arange(4.0) + 2.0))


def test_a_loop_in_lanes_is_the_loop():
    x, k = jnp.array(np.random.default_rng(0).normal(size=(5, 3))), jnp.arange(5, dtype=jnp.int32)
    weight = jnp.linspace(0.5, 1.5, 5)

    def run(x, k, weight, lanes):
        def step(carry, i):
            x, k = mixed(carry[0] * weight, carry[1])
            return x + 0.01 * i, k

        carry, together = (x, k), lambda carry: carry
        body = lambda i, carry: step(carry, i)
        if lanes:
            found = in_lanes(step, carry, 2)
            assert found is not None
            inside, carry, together = found
            body = lambda i, carry: inside(carry, i)
        return together(jax.lax.fori_loop(2, 6, body, carry))

    plain, fused = (
        jax.jit(jax.vmap(lambda *xs, lanes=lanes: run(*xs, lanes)))(x, k, weight)
        for lanes in (False, True)
    )
    np.testing.assert_allclose(fused[0], plain[0], rtol=1e-13)
    np.testing.assert_array_equal(fused[1], plain[1])
    assert fused[1].dtype == plain[1].dtype


@pytest.mark.parametrize(
    "step",
    [
        lambda x, i: jax.lax.fori_loop(0, 3, lambda _, x: jnp.cos(x), x),
        lambda x, i: jnp.linalg.svd(x.reshape(1, 1))[1] + i,
        lambda x, i: x[jnp.clip(i, 0, 0)[None]],  # where depends on a number
    ],
)
def test_what_cannot_be_taken_apart_is_left_alone(step):
    assert in_lanes(step, jnp.ones(1), 0) is None


def test_a_batch_of_necks(monkeypatch):
    used = []
    spy = lambda *given: used.append(in_lanes(*given)) or used[-1]
    monkeypatch.setattr(timeloop, "in_lanes", spy)
    neck = Neck.default(2)
    start = neck.default_state()
    pull = jnp.array([-0.03, -0.01, -0.02])
    options = {"dt": 2e-3, "duration": 0.04, "save_every": 10, "control": pull}

    def build(k):
        return eqx.tree_at(lambda n: n.tendon.stiffness, neck, k), start

    stiffness = jnp.array([3e4, 1e5, 2e5])
    batch = simulate_batch(build, stiffness, **options)
    assert len(used) >= 1 and all(x is not None for x in used)
    for i, k in enumerate(stiffness):
        run = simulate(*build(k), **options)
        np.testing.assert_allclose(batch.q[i], run.q, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(batch["tension"][i], run["tension"], rtol=1e-8)
    assert np.all(batch.succeeded)
