"""Rectangular pulses held over steps."""

import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax.control import Pulses
from helpers.hung_ball import Ball

NONE = State(jnp.zeros(2), jnp.zeros(2))


def test_a_pulse_acts_in_the_steps_whose_middle_it_covers():
    pulses = Pulses([[0.51, 0.52], [0.515, 0.6]], [[1.0, 0.0], [0.0, 2.0]], period=0.005, base=0.1)
    at = lambda t: np.asarray(pulses(jnp.asarray(t), NONE, ())[0])
    np.testing.assert_allclose(at(0.505), [0.1, 0.1])
    np.testing.assert_allclose(at(0.51), [1.1, 0.1])
    np.testing.assert_allclose(at(0.515), [1.1, 2.1])
    np.testing.assert_allclose(at(0.52), [0.1, 2.1])
    np.testing.assert_allclose(at(0.6), [0.1, 0.1])
    assert pulses.period == 0.005


def test_the_impulse_is_exact():
    """A free ball: mass times velocity is force times duration, for edges on the grid; those
    between steps move to it."""
    ball = Ball(anchors=np.zeros((0, 2)), lengths=np.zeros(0), gravity=0.0)
    for begin, end, steps in ((0.03, 0.07, 4), (0.031, 0.072, 4), (0.026, 0.074, 4)):
        pulses = Pulses([[begin, end]], [[3.0, -1.0]], period=0.01)
        run = simulate(ball, NONE, dt=0.01, duration=0.1, control=pulses)
        np.testing.assert_allclose(
            ball.mass * run.v[-1], steps * 0.01 * np.array([3.0, -1.0]), rtol=1e-12
        )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"times": [[0.2, 0.1]]}, "times.*each pulse to end after it begins"),
        ({"times": [0.1, 0.2]}, r"times: got shape \(2,\), expected shape \(1, 2\)"),
        ({"inputs": [1.0, 2.0]}, r"inputs: got shape \(2,\), expected \(k, n_u\)"),
        ({"base": [1.0, 2.0, 3.0]}, r"base: got shape \(3,\), expected a scalar or shape \(2,\)"),
        ({"period": 0.0}, "period: got 0.0, expected a finite number > 0"),
    ],
)
def test_input_that_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Pulses(**({"times": [[0.1, 0.2]], "inputs": [[1.0, 2.0]], "period": 0.01} | options))
