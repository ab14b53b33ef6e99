"""Derivatives of a rod's motion, at and away from straight states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import simulate
from cordax.systems import End, SplineRod

PARAMETERS = {
    "young": lambda r: r.young,
    "shear": lambda r: r.shear,
    "density": lambda r: r.density,
    "diameter": lambda r: r.diameter,
    "rest_strain": lambda r: r.rest_strain,
    "end": lambda r: r.right.point.value,
}


def soft_rod():
    right = End.pinned(point=[2.0, 0.0, 0.0])
    return SplineRod(young=2.5e6, shear=jnp.asarray(1e6), right=right, rest_strain=(1e-3, 0.1, 0.2))


@eqx.filter_jit
def final(rod, numbers, bent):
    """A number that depends on everything after 20 steps from a straight or a bent start."""
    for name, get in PARAMETERS.items():
        rod = eqx.tree_at(get, rod, numbers[name])
    start = rod.default_state()
    if bent:
        shape = lambda u: jnp.stack([u, 0.05 * jnp.sin(2 * u) ** 2, -0.1 * u * (2 - u)], axis=1)
        start = rod.state_of(shape, lambda u: 0.3 * u * (2 - u))
    method = "implicit_midpoint" if bent else "stormer_verlet"
    run = simulate(
        rod, start, dt=1e-3, duration=0.02, integrator=method, save_every=20, throw=False
    )
    weights = jnp.arange(1.0, 37.0).reshape(9, 4) % 5.0
    return jnp.sum(weights * run["control"][-1])


@pytest.mark.parametrize("bent", [False, True])
def test_derivatives_in_both_modes(bent):
    rod = soft_rod()
    numbers = {name: get(rod) for name, get in PARAMETERS.items()}
    value = lambda x: final(rod, x, bent)
    reverse = eqx.filter_jit(jax.grad(value))(numbers)
    forward = eqx.filter_jit(lambda x, dx: jax.jvp(value, (x,), (dx,))[1])
    for name, x in numbers.items():
        flat = np.atleast_1d(np.asarray(x)).ravel()
        for i in range(flat.size):
            direction = {n: jnp.zeros_like(y) for n, y in numbers.items()}
            one = np.zeros(flat.size)
            one[i] = 1.0
            direction[name] = jnp.asarray(one.reshape(np.shape(x)))
            size = 2e-5 * abs(flat[i]) if flat[i] else 1e-5
            move = lambda s, d=direction: {n: y + s * d[n] for n, y in numbers.items()}
            central = float(value(move(size)) - value(move(-size))) / (2 * size)
            ahead = float(forward(numbers, direction))
            back = float(np.atleast_1d(np.asarray(reverse[name])).ravel()[i])
            # round-off of the two values that are subtracted
            floor = 4e-15 * abs(float(value(numbers))) / size
            assert ahead == pytest.approx(central, rel=2e-6, abs=floor), (name, i)
            assert back == pytest.approx(ahead, rel=1e-8, abs=1e-12), (name, i)


def test_second_derivatives_are_finite_when_straight():
    rod = soft_rod()
    at = rod.default_state()
    force = lambda q: rod.force(jnp.zeros(()), q, at.v, jnp.zeros(0))
    along = lambda q: jax.jvp(force, (q,), (q,))[1]

    @jax.jit
    def derivatives(q):
        return jax.jacfwd(force)(q), jax.jvp(along, (q,), (q,))[1]

    for found in derivatives(at.q):
        assert np.all(np.isfinite(found))


def test_gradients_through_feedback_within_implicit_steps():
    """The inputs look at the state inside of a step, which the rod's own linearisation does not
    know of: derivatives are right only if Newton's matrix is another one then."""
    rod = SplineRod(young=2.5e6, control_points=5, loads=(0.5,))

    @jax.jit
    def height(gain):
        pull = lambda t, state: gain * jnp.stack([0.0 * t, 0.0 * t, -state.v[7]])
        options = {"dt": 2e-2, "duration": 0.1, "integrator": "implicit_midpoint"}
        return simulate(rod, control=pull, throw=False, **options)["centre"][-1, 2]

    gain, step = 0.05, 1e-5
    slope = (height(gain + step) - height(gain - step)) / (2 * step)
    assert abs(slope) > 1e-3, "the gain should matter"
    np.testing.assert_allclose(jax.grad(height)(gain), slope, rtol=1e-6)
