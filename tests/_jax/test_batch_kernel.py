"""Steps taken apart into numbers, in one loop over a batch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import simulate, simulate_batch
from cordax._jax.batch_kernel import in_lanes
from cordax._jax.scalarise import apart, count, evaluate
from cordax.math.linalg import solve
from cordax.simulation import time_loop
from cordax.systems import Neck, Oscillator

ROUTES = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [0.5, 0.0, 0.0]])


def mixed(x, k):
    """Something of everything that is taken apart."""
    A = ROUTES * x[:, None] + 3.0 * jnp.eye(3)
    y = solve(A, x[::-1]) + (A @ x)[jnp.array([2, 0, 1])]
    y = y.at[1].set(jnp.max(x))
    turned = jax.lax.cond(k > 2, lambda x: jnp.sin(x), lambda x: x**3 - jnp.sqrt(jnp.abs(x)), y)
    last, passed = jax.lax.scan(lambda a, b: (a * b + y[0], a - b), x[0], y, reverse=True)
    turned = turned + last * passed
    both = jnp.concatenate([turned, jnp.cumsum(x)[-1:], jnp.einsum("ij,kj->ki", A, A)[0]])
    low = jnp.where(jnp.any(both > 1.0) & jnp.isfinite(both[0]), jnp.prod(x), k % 3)
    return both[:3] / (1.0 + jnp.sum(both**2)) + 0.1 * low, jnp.where(low > 0, k + 1, k - 1)


def test_numbers_are_those_of_the_arrays():
    closed = jax.make_jaxpr(mixed)(jnp.zeros(3), jnp.int32(0))
    assert count(closed.jaxpr) is not None
    for x, k in (([0.3, -0.2, 0.9], 1), ([1.3, 0.7, 0.4], 5)):
        x, k = jnp.array(x), jnp.int32(k)
        found = evaluate(closed, [apart(x), apart(k)])  # known numbers: all are computed at once
        for a, b in zip(found, jax.jit(mixed)(x, k), strict=True):
            np.testing.assert_allclose(np.array(a.tolist()), b, rtol=1e-14)


def test_sums_of_nothing():
    def nothing(x):
        return jnp.sum(x[:0]) + jnp.prod(x[:0]) + jnp.dot(x[:0], x[:0]) + x[0]

    (found,) = evaluate(jax.make_jaxpr(nothing)(jnp.zeros(2)), [apart(jnp.array([3.0, 4.0]))])
    assert found[()] == nothing(jnp.array([3.0, 4.0])) == 4.0


def test_repeated_and_empty_selections():
    """Rope robots repeat rows (`tile`), machines without joints of a kind select no entries."""

    def select(x):
        none = jax.lax.gather(
            x,
            np.zeros((0, 1), np.int32),
            jax.lax.GatherDimensionNumbers((), (0,), (0,)),
            (1,),
            mode="promise_in_bounds",
        )
        return jnp.concatenate([jnp.tile(x, 2), none])

    closed, x = jax.make_jaxpr(select)(jnp.zeros(2)), jnp.array([3.0, 4.0])
    assert count(closed.jaxpr) is not None
    (found,) = evaluate(closed, [apart(x)])
    assert found.tolist() == [3.0, 4.0, 3.0, 4.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_products_with_zero_are_not_finite_where_a_factor_is_not(bad):
    """As in the plain program: `0 x` is NaN there, also where it is selected or compared."""

    def step(x, i):
        y = ROUTES @ x
        return jnp.where(y[0] > 0.5, jnp.sin(y), 0.0 * x + jnp.maximum(y, 0.1))

    def run(x):
        inside, begin, together = in_lanes(step, x, 0)
        return together(jax.lax.fori_loop(0, 2, lambda i, c: inside(c, i), begin))

    x = jnp.array([[0.3, 0.2, 0.9], [0.3, bad, 0.9], [bad, 0.2, 0.1], [0.1, 0.2, bad]])
    plain = jax.jit(jax.vmap(lambda x: step(step(x, 0), 1)))(x)
    assert np.isnan(plain).any() and np.isfinite(plain[0]).all()
    np.testing.assert_allclose(jax.jit(jax.vmap(run))(x), plain, rtol=1e-14)


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
        lambda x, i: jax.lax.while_loop(lambda x: jnp.all(x > 0.8), jnp.cos, x),
        lambda x, i: jnp.linalg.svd(x.reshape(1, 1))[1] + i,
        lambda x, i: x[jnp.clip(i, 0, 0)[None]],  # where depends on a number
    ],
)
def test_what_cannot_be_taken_apart_is_left_alone(step):
    assert in_lanes(step, jnp.ones(1), 0) is None


@pytest.fixture
def used(monkeypatch):
    """What was asked for lanes, and got them or not."""
    found = []
    spy = lambda *given: found.append(in_lanes(*given)) or found[-1]
    monkeypatch.setattr(time_loop, "in_lanes", spy)
    return found


def test_a_batch_of_necks(used):
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


def test_what_is_kept_of_a_batch_in_lanes(used):
    """A member that diverges among others, each as if it were alone."""
    stiffness = jnp.array([10.0, 1e12, 40.0, 90.0])
    options = {"dt": 0.01, "duration": 0.2, "integrator": "rk4"}
    keep = lambda run: (run["x"], run.failure_time, run.system.stiffness)
    x, failed, known = simulate_batch(
        lambda k: Oscillator(stiffness=k), stiffness, keep=keep, chunk=3, **options
    )
    assert len(used) >= 1 and all(found is not None for found in used)
    np.testing.assert_array_equal(known, stiffness)
    for i, k in enumerate(stiffness):
        run = simulate(Oscillator(stiffness=k), throw=False, **options)
        np.testing.assert_allclose(x[i], run["x"], rtol=0, atol=1e-13)
        assert float(failed[i]) == float(run.failure_time)
    assert np.isfinite(failed).tolist() == [False, True, False, False]


@pytest.mark.parametrize("keep", [None, lambda run: run.q])
def test_derivatives_by_what_all_members_share(keep, used):
    """A number of a transformation that `build` refers to."""
    options = {"dt": 0.01, "duration": 0.2, "integrator": "rk4", "keep": keep}

    def total(k):
        run = simulate_batch(lambda m: Oscillator(mass=m, stiffness=k), jnp.ones(2), **options)
        return jnp.sum((run if keep else run.q)[:, -1])

    central = (total(50.0 + 1e-3) - total(50.0 - 1e-3)) / 2e-3
    assert used and used[0] is not None
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(total)(50.0), central, rtol=1e-7)
