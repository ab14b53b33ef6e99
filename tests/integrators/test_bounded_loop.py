"""A loop whose number of passes is data, differentiated."""

import jax
import jax.numpy as jnp
import numpy as np

from cordax.integrators.bounded_loop import while_recorded


def grown(x, rate):
    """`x` multiplied by `1 + rate x / 10` until it exceeds 3; the number of passes depends on x."""
    going = lambda now: now[0] < 3.0
    go = lambda now: (now[0] * (1.0 + rate * now[0] / 10.0), now[1] + 1)
    return while_recorded(going, go, (x, jnp.int32(0)), 40)


def test_both_modes_batches_and_second_derivatives():
    value = lambda x, rate: grown(x, rate)[0]
    x, rate, h = jnp.array([0.9, 1.7, 3.5]), jnp.asarray(1.3), 1e-5
    _, count = jax.vmap(grown, (0, None))(x, rate)
    assert count[0] > count[1] > count[2] == 0
    for by in (0, 1):
        up, down = ((x + s, rate) if by == 0 else (x, rate + s) for s in (h, -h))
        batch = lambda f: jax.jit(jax.vmap(f, (0, None)))
        central = (batch(value)(*up) - batch(value)(*down)) / (2 * h)
        forward, reverse = jax.jacfwd(value, by), jax.grad(value, by)
        np.testing.assert_allclose(batch(forward)(x, rate), central, rtol=1e-8)
        np.testing.assert_allclose(batch(reverse)(x, rate), central, rtol=1e-8)
        second = (batch(reverse)(*up) - batch(reverse)(*down)) / (2 * h)
        np.testing.assert_allclose(batch(jax.jacfwd(reverse, by))(x, rate), second, rtol=1e-7)
