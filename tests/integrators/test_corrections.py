"""Generalised-alpha with a fixed number of Newton's corrections in every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cordax
from cordax import Result, State, simulate
from cordax.systems import Pendulum
from helpers.machines import Bead

ONCE = cordax.GeneralisedAlpha(corrections=1)


def push(t, state):
    return jnp.sin(3.0 * t)[None]


def end(machine, dt, integrator, start=None):
    options = {"dt": dt, "duration": 0.4, "control": push, "integrator": integrator}
    return simulate(machine, start, save_every=round(0.4 / dt), **options)


def rate(t, y):
    """The default `Bead`, driven by sin(3 t)."""
    (x, v), A = y, 0.8
    force = A**2 * np.cos(x) * np.sin(x) * v**2 - 9.81 * A * np.cos(x) - 0.3 * v + np.sin(3 * t)
    return [v, force / (1.0 + (A * np.cos(x)) ** 2)]


def test_order_and_how_near_it_is_to_solved_steps():
    bead = Bead()
    start = bead.default_state()
    y0 = np.concatenate([start.q, start.v])
    exact = solve_ivp(rate, (0.0, 0.4), y0, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    errors, gaps = [], []
    for dt in (8e-3, 4e-3, 2e-3):
        once, solved = end(bead, dt, ONCE), end(bead, dt, cordax.GeneralisedAlpha())
        errors.append(np.linalg.norm(np.concatenate([once.q[-1], once.v[-1]]) - exact))
        gaps.append(float(jnp.abs(once.q[-1] - solved.q[-1])[0]))
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2.0, atol=0.1)
    # what one correction leaves is of higher order than the method
    assert gaps[0] / gaps[1] > 8.0 and gaps[0] < 0.05 * errors[0]
    twice = end(bead, 8e-3, cordax.GeneralisedAlpha(corrections=2))
    solved = end(bead, 8e-3, cordax.GeneralisedAlpha())
    assert 0.0 < float(jnp.abs(twice.q[-1] - solved.q[-1])[0]) < 1e-3 * gaps[0]


def test_a_step_that_one_correction_does_not_solve_ends_the_run():
    fast = State(np.array([1.0]), np.array([20.0]))
    options = {"dt": 0.2, "duration": 1.0, "throw": False}
    machine = Pendulum(length=0.1)
    run = simulate(machine, fast, integrator=ONCE, **options)
    assert run.result == Result.NEWTON_NOT_CONVERGED
    run = simulate(machine, fast, integrator=ONCE, accuracy=1e-2, **options)
    assert run.result == Result.SUCCESSFUL


def test_derivatives_are_those_of_the_steps():
    def last(x):
        run = end(Bead(mass=x[0], damping=x[1]), 2e-2, ONCE, State(x[1:], x[:1]))
        return jnp.concatenate([run.q[-1], run.v[-1]])

    x, h = jnp.array([0.9, 0.3]), 1e-5
    run = jax.jit(jax.vmap(last))
    up, down = run(jnp.concatenate([x + h * jnp.eye(2), x - h * jnp.eye(2)])).reshape(2, 2, 2)
    forward, reverse = (jax.jit(mode(last))(x) for mode in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, ((up - down) / (2 * h)).T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="corrections"):
        cordax.GeneralisedAlpha(corrections=0)
