"""Model-predictive control: a cart whose programme can be written down, bounds, and wrong use."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Constant, ModelPredictive
from cordax.systems import mechanism as parts

MASS, PERIOD, N = 2.0, 0.05, 6


@pytest.fixture(scope="module")
def cart():
    body = parts.Body("cart", parts.Prismatic("x"), solids=parts.cube(0.1, mass=MASS))
    return parts.Mechanism([body], elements=[parts.JointMotors("cart")])


def law(cart, goal, **options):
    weights = {"tracking": 3.0, "tracking_rate": 0.2, "effort": 1e-4}
    return ModelPredictive(
        cart, Constant([goal]), "cart", [0.3], period=PERIOD, horizon=N, **weights | options
    )


def test_a_cart_gets_the_least_squares_of_its_exact_motion(cart):
    """Positions and rates after periods of constant force, by hand."""
    q, v, goal = 0.4, -0.2, 0.1
    steps = np.arange(1, N + 1)
    rate = np.tril(np.full((N, N), PERIOD / MASS))
    place = np.array(
        [[PERIOD**2 / MASS * (k - j - 0.5) if j < k else 0.0 for j in range(N)] for k in steps]
    )
    rows = np.concatenate([np.sqrt(3.0) * place, np.sqrt(0.2) * rate, 1e-2 * np.eye(N)])
    right = np.concatenate(
        [np.sqrt(3.0) * (goal - q - v * PERIOD * steps), np.sqrt(0.2) * np.full(N, -v), np.zeros(N)]
    )
    expected = np.linalg.lstsq(rows, right, rcond=None)[0]
    state = cordax.State(jnp.array([q]), jnp.array([v]))
    u, solved = eqx.filter_jit(lambda c, s: c.solve(0.0, s, c.start))(law(cart, goal), state)
    assert solved
    np.testing.assert_allclose(u, expected[:1], rtol=1e-9)


def test_bounds_hold_at_the_instants_predicted(cart):
    """Weights that overshoot, until a bound forbids it."""
    options = {"duration": 1.5, "dt": PERIOD / 5, "save_every": 5}
    start = cordax.State(jnp.array([0.4]), jnp.zeros(1))
    runs = [
        cordax.simulate(cart, start, control=law(cart, 0.0, tracking_rate=1e-6, **bound), **options)
        for bound in ({}, {"bounded": "cart", "least": -1e-4})
    ]
    lowest = [float(run.q.min()) for run in runs]
    assert lowest[0] < -1e-3
    assert lowest[1] >= -1e-4 - 1e-12
    assert abs(float(runs[1].q[-1, 0])) < 1e-3


def test_wrong_use_is_named(cart):
    for options, message in (
        ({"bounded": "wheel"}, "bounded: got 'wheel'"),
        ({"effort": 0.0}, "effort"),
        ({"bounded": "cart", "least": [0.1, 0.2]}, "least"),
    ):
        with pytest.raises(ValueError, match=message):
            law(cart, 0.0, **options)
    with pytest.raises(ValueError, match="start"):
        ModelPredictive(cart, Constant([0.0]), "cart", [0.3, 0.1])
