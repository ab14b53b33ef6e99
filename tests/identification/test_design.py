"""Which experiment shows most, on an oscillator whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Parameter, Recording, State, identify
from cordax.control import Multisine
from cordax.identification import best_experiment, expected_errors
from cordax.identification.design import _linearised, _question
from cordax.systems import Oscillator

MACHINE = Oscillator(2.0, 50.0, 1.5)  # resonance at 0.79 Hz
NAMES = ["stiffness", "damping"]
SEEN = {"observe": ["x"], "noise": 1e-3}
LIMIT = 0.2  # [m]


@pytest.fixture(scope="module")
def slow():
    still = State(jnp.zeros(1), jnp.zeros(1))
    shake = Multisine([0.0], [0.3], [[2.0]])
    return Experiment(MACHINE, still, shake, dt=0.05, integrator="rk4", duration=8.0)


CHOOSE = [
    Parameter("control.frequency", bounds=(0.1, 2.0)),
    Parameter("control.amplitude", bounds=(0.1, 8.0)),
]


def test_expected_errors_are_those_of_a_fit(slow):
    run = cordax.simulate(slow)
    noise = 1e-3 * jax.random.normal(jax.random.key(0), run.t.shape)
    fit = identify(
        slow, Recording(run.t, {"x": run["x"] + noise}), NAMES, noise=1e-3, check_step=False
    )
    expected = expected_errors(slow, NAMES, **SEEN)
    errors = np.asarray(fit.standard_errors / fit.noise_scale)
    # the fit's are those at its own estimates, a few errors away
    assert np.allclose(list(expected.values()), errors, rtol=0.05)


def test_slopes_of_information_against_differences(slow):
    question = _question(slow, NAMES, CHOOSE, ["x"], 1e-3, {"x": (-LIMIT, LIMIT)}, {})
    (slope, room_slope), (_, room) = _linearised(question, question.chosen.origin)
    assert room.shape == (2,) and room_slope.shape == (2, 2)
    for i in range(2):
        h = jnp.zeros(2).at[i].set(1e-5)
        up, down = (_linearised(question, s * h)[1] for s in (1.0, -1.0))
        assert np.isclose(slope[i], (up[0] - down[0]) / 2e-5, rtol=1e-6)
        assert np.allclose(room_slope[:, i], (up[1] - down[1]) / 2e-5, rtol=1e-5, atol=1e-8)


def test_the_best_shake_is_near_resonance_and_within_its_limit(slow):
    limits = {"x": (-LIMIT, LIMIT)}
    found = best_experiment(slow, NAMES, CHOOSE, limits=limits, starts=60, **SEEN)
    assert np.all(found.errors < found.before / 3.0), found.summary()
    x = np.asarray(cordax.simulate(found.experiment)["x"])
    assert 0.9 * LIMIT < np.max(np.abs(x)) <= LIMIT  # it goes as far as it may
    # a scan of frequencies, each as strong as it may be, has its best between 0.7 and 0.9 Hz
    assert 0.65 < float(found.experiment.control.frequency[0]) < 0.95
    again = expected_errors(found.experiment, NAMES, **SEEN)
    assert np.allclose(list(again.values()), found.errors, rtol=1e-9)


def test_weights_shift_what_is_shown_best(slow):
    given = SEEN | {"limits": {"x": (-LIMIT, LIMIT)}, "starts": 60}
    found = [best_experiment(slow, NAMES, CHOOSE, weights={n: 20.0}, **given) for n in NAMES]
    first, second = (each.errors for each in found)
    assert first[0] < second[0] and second[1] < first[1]


def test_bad_words_are_named(slow):
    with pytest.raises(ValueError, match=r"weights.*mass.*names among"):
        best_experiment(slow, NAMES, CHOOSE, weights={"mass": 1.0}, **SEEN)
    with pytest.raises(ValueError, match=r"weights.*not all of them 0"):
        best_experiment(slow, NAMES, CHOOSE, weights=dict.fromkeys(NAMES, 0.0), **SEEN)
    with pytest.raises(ValueError, match=r"limits\['x'\].*low < high"):
        best_experiment(slow, NAMES, CHOOSE, limits={"x": (1.0, -1.0)}, **SEEN)
    with pytest.raises(ValueError, match=r"noise.*exactly x"):
        expected_errors(slow, NAMES, observe=["x"], noise={"y": 1.0})
