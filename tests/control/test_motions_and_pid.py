"""Reference motions, and the sampled PID controller."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State
from cordax.control import PID, BSpline, InputPath, RaisedCosine, Sinusoid
from cordax.systems import Oscillator

A, W, PHASE, OFFSET = np.array([0.6, -0.8]), 1.7, 0.4, 0.2


@pytest.mark.parametrize("t", [0.0, 0.9, 5.0])
def test_raised_cosine(t):
    position, rate, acceleration = RaisedCosine(A, W, OFFSET)(t)
    np.testing.assert_allclose(position, OFFSET + A * (1 - np.cos(W * t)) / 2, atol=1e-14)
    np.testing.assert_allclose(rate, A * W * np.sin(W * t) / 2, atol=1e-14)
    np.testing.assert_allclose(acceleration, A * W**2 * np.cos(W * t) / 2, atol=1e-14)


@pytest.mark.parametrize("t", [0.0, 0.9, 5.0])
def test_sinusoid(t):
    frequency = np.array([W, 2 * W])
    position, rate, acceleration = Sinusoid(A, frequency, PHASE, OFFSET)(t)
    angle = frequency * t + PHASE
    np.testing.assert_allclose(position, OFFSET + A * np.sin(angle), atol=1e-14)
    np.testing.assert_allclose(rate, A * frequency * np.cos(angle), atol=1e-13)
    np.testing.assert_allclose(acceleration, -A * frequency**2 * np.sin(angle), atol=1e-13)


def constant(value):
    """A motion that stays at `value`."""
    return Sinusoid(amplitude=[0.0], offset=value)


def test_pid_law():
    pid = PID(constant(1.0), (1,), 0.05, K_p=2.0, K_i=3.0, K_d=0.5, bias=0.1)
    state = State([9.0, 0.4], [0.0, -2.0])
    memory = pid.init(state)
    assert pid.period == 0.05 and memory.shape == (1,)
    u, memory = pid(jnp.asarray(0.0), state, memory)
    np.testing.assert_allclose(u, [0.1 + 2.0 * 0.6 + 0.5 * 2.0])
    np.testing.assert_allclose(memory, [0.05 * 0.6])
    u, memory = pid(jnp.asarray(0.05), state, memory)
    np.testing.assert_allclose(u, [0.1 + 2.0 * 0.6 + 3.0 * 0.03 + 0.5 * 2.0])
    np.testing.assert_allclose(memory, [2 * 0.05 * 0.6])


def test_integral_removes_the_lasting_error():
    """On a spring of 1 N/m: K_p alone leaves 1/(1 + K_p) of the way, the integral nothing."""
    machine, start = Oscillator(damping=1.0), State([0.0], [0.0])
    for K_i, left in ((0.0, 1.0 / 5.0), (2.0, 0.0)):
        pid = PID(constant(1.0), (0,), 0.05, K_p=4.0, K_i=K_i, K_d=2.0)
        run = cordax.simulate(
            machine, start, dt=0.05, duration=40.0, control=pid, integrator="rk4", save_every=8
        )
        assert 1.0 - float(run["x"][-1]) == pytest.approx(left, abs=1e-6)


def test_bad_input():
    with pytest.raises(
        ValueError, match=r"coordinates: got .*, expected at least one index into q"
    ):
        PID(constant(1.0), (), 0.05)
    with pytest.raises(ValueError, match=r"period: got 0.0, expected a finite number > 0"):
        PID(constant(1.0), (0,), 0.0)


def test_splines_reproduce_polynomials_and_stay_within_their_values():
    """A uniform cubic B-spline of samples of a straight line is that line; its values bound it; its
    second derivative is continuous across knots."""
    line = BSpline([0.0, 2.0], np.arange(7.0)[:, None] * np.array([1.0, -2.0]))
    t = np.linspace(0.0, 2.0, 21)
    found = np.asarray(jax.jit(jax.vmap(line.position))(t))
    np.testing.assert_allclose(found, (1.0 + 2.0 * t)[:, None] * np.array([1.0, -2.0]), atol=1e-12)
    wild = BSpline([0.0, 1.0], np.random.default_rng(0).choice([-1.0, 1.0], 12))
    ts = np.linspace(-0.5, 1.5, 400)
    assert np.abs(jax.jit(jax.vmap(wild.position))(ts)).max() <= 1.0
    bend = jax.jit(jax.vmap(lambda t: wild(t)[2]))
    knots = np.arange(1, 9) / 9
    np.testing.assert_allclose(bend(knots - 1e-9), bend(knots + 1e-9), atol=1e-4)
    with pytest.raises(ValueError, match="k >= 4"):
        BSpline([0.0, 1.0], np.zeros(3))
    u, place = jax.jit(lambda t: (InputPath(line)(t, None, ())[0], line.position(t)))(0.5)
    np.testing.assert_allclose(u, place)
