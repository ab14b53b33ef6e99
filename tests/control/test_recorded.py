"""Recorded inputs between their samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import RecordedInput
from cordax.systems import Oscillator

H = 0.1
T = np.arange(21) * H


@eqx.filter_jit
def _at(control, t):
    return jax.vmap(lambda t: control(t, None, ())[0][0])(t)


def played(values, interpolation, t):
    control = RecordedInput(T, values[:, None], interpolation)
    return np.asarray(_at(control, jnp.asarray(t)))


def test_interpolation_is_exact_for_polynomials_of_its_degree():
    t = np.linspace(0.0, 2.0, 333)
    cubic = lambda t: 1.0 + t - 2.0 * t**2 + 0.7 * t**3
    assert np.allclose(played(cubic(T), "cubic", t), cubic(t), atol=1e-13)
    assert np.allclose(played(3.0 - 2.0 * T, "linear", t), 3.0 - 2.0 * t, atol=1e-13)
    steps = played(T, "hold", [0.0, 0.05, 0.0999, 0.1, 0.3, 0.35, 2.0])
    assert np.allclose(steps, [0.0, 0.0, 0.0, 0.1, 0.3, 0.3, 2.0])


def test_samples_may_come_as_they_like():
    at = np.sort(np.concatenate([T[:15] ** 1.3, [0.33, 0.333, 1.9]]))
    play = lambda values, how, t: np.asarray(
        _at(RecordedInput(at, values[:, None], how), jnp.asarray(t))
    )
    t = np.concatenate([np.linspace(0.0, at[-1], 333), at])
    cubic = lambda t: 1.0 + t - 2.0 * t**2 + 0.7 * t**3
    assert np.allclose(play(cubic(at), "cubic", t), cubic(t), atol=1e-11)
    rough = np.random.default_rng(0).normal(size=at.size)
    assert np.allclose(play(rough, "linear", t), np.interp(t, at, rough), atol=1e-11)
    assert np.allclose(play(np.exp(at), "cubic", [-1.0, 3.0]), np.exp(at[[0, -1]]))


def test_the_cubic_error_is_as_promised():
    t = np.linspace(0.2, 1.8, 1001)
    error = np.max(np.abs(played(np.sin(4.0 * T), "cubic", t) - np.sin(4.0 * t)))
    assert 0.01 * (4.0 * H) ** 4 < error < 0.0235 * (4.0 * H) ** 4


def test_outside_the_recording_the_ends_apply():
    for interpolation in ("cubic", "linear", "hold"):
        assert np.allclose(played(np.exp(T), interpolation, [-1.0, 3.0]), np.exp([0.0, 2.0]))


def test_held_inputs_are_constant_within_a_sample():
    """A force held from one sample to the next moves a free mass on exact parabolas."""
    mass = Oscillator(1.0, 1e-300, 0.0)
    force = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    control = RecordedInput(np.arange(5) * H, force[:, None], "hold")
    rest = cordax.State(jnp.zeros(1), jnp.zeros(1))
    run = cordax.simulate(mass, rest, dt=H / 2, duration=4 * H, integrator="rk4", control=control)
    assert np.allclose(run.v[::2, 0], np.concatenate([[0.0], np.cumsum(force[:4]) * H]), atol=1e-14)


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_samples_and_weights_agree_however_the_instants_are_rounded(interpolation):
    """On a coarse force, which shows every sample taken for its neighbour. Without optimisation
    XLA rounds the instant of a sample differently in the two places that use it."""
    t = np.arange(2001) * 1e-3
    control = RecordedInput(t, np.random.default_rng(0).normal(size=(2001, 1)), interpolation)
    rest = cordax.State(jnp.zeros(1), jnp.zeros(1))

    def velocity(stiffness):
        return cordax.simulate(
            Oscillator(1.0, stiffness), rest, dt=5e-4, duration=2.0, integrator="rosenbrock_2",
            control=control, throw=False,
        ).v  # fmt: skip

    plain = jax.jit(velocity, compiler_options={"xla_backend_optimization_level": 0})
    np.testing.assert_allclose(plain(100.0), velocity(jnp.array(100.0)), atol=1e-12)


@pytest.mark.parametrize(
    ("t", "values", "interpolation", "message"),
    [
        (T, np.ones((20, 1)), "cubic", r"values.*\(21, number of inputs\)"),
        (T[::-1], np.ones((21, 1)), "cubic", "increasing times"),
        (T**2, np.ones((21, 1)), "hold", "equal intervals, for inputs that are held"),
        (T[:3], np.ones((3, 1)), "cubic", "at least 4"),
        (T, np.full((21, 1), np.nan), "cubic", "finite values"),
        (T, np.ones((21, 1)), "spline", "one of cubic, linear, hold"),
    ],
)
def test_bad_recordings_are_named(t, values, interpolation, message):
    with pytest.raises(ValueError, match=message):
        RecordedInput(t, values, interpolation)


def test_made_within_jit():
    """Samples that are known stay so: a loss may build its own controller."""
    values = np.sin(T)[:, None]
    held = jax.jit(lambda t, k: k * RecordedInput(T, values)(t, None, ())[0])
    expected = RecordedInput(T, values)(jnp.asarray(0.3), None, ())[0]
    np.testing.assert_allclose(held(0.3, 2.0), 2.0 * expected, rtol=1e-14)
