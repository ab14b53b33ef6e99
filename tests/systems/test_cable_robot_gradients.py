"""Derivatives of the pose of a robot 1 s after the start of the impulse case, both modes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import simulate
from helpers.cable_robot_reference import parameters, pulses_of, robot_of

DT = 5e-3
WANTED = np.array([0.02, 0.26, 0.35])
PARAMETERS = ("mass", "inertia", "exits", "radius", "lengths")


def final_error(x):
    """Squared distance of the last pose to a wanted one. Cable lengths are those of the start pose
    moved by `lengths` along z, so that every start is consistent."""
    robot = robot_of("imp_m2")
    robot = eqx.tree_at(
        lambda r: (r.platform.mass, r.platform.inertia, r.exits.points.value, r.exits.radius),
        robot,
        (x["mass"], x["inertia"] * robot.platform.inertia, x["exits"], x["radius"]),
    )
    start = robot.position + x["lengths"] * jnp.array([0.0, 0.0, 1.0])
    lengths = robot.lengths(start, robot.rotation)
    robot = eqx.tree_at(lambda r: r.drives.lengths.value, robot, lengths)
    run = simulate(
        robot,
        robot.state_at(start),
        dt=DT,
        duration=1.0,
        save_every=200,
        control=pulses_of("imp_m2", robot, DT),
        throw=False,
    )
    turn = run["quaternion"][-1, 1:]
    return jnp.sum((run["position"][-1] - WANTED) ** 2) + jnp.sum(turn**2)


# NumPy numbers: all calls below share one type, and with it one compiled function
AT = {
    "mass": np.asarray(6.24),
    "inertia": np.asarray(1.0),
    "exits": np.asarray(parameters("imp_m2").d),
    "radius": np.asarray(0.05),
    "lengths": np.asarray(0.0),
}


@pytest.fixture(scope="module")
def reverse():
    return jax.jit(jax.value_and_grad(final_error))


@pytest.mark.parametrize("name", PARAMETERS)
def test_reverse_mode(reverse, name):
    """Against central differences of fourth order, along a direction where there are many
    numbers."""
    rng = np.random.default_rng(1)
    size = float(np.max(np.abs(AT[name]))) or 1.0
    direction = np.asarray(rng.normal(size=AT[name].shape))
    value = lambda s: float(reverse(AT | {name: AT[name] + s * direction})[0])
    h = 1e-3 * size
    central = (8 * (value(h) - value(-h)) - value(2 * h) + value(-2 * h)) / (12 * h)
    found = float(jnp.sum(reverse(AT)[1][name] * direction))
    assert found == pytest.approx(central, rel=1e-6)


def test_forward_mode_agrees(reverse):
    ones = jax.tree.map(jnp.ones_like, AT)
    forward = jax.jit(lambda x: jax.jvp(final_error, (x,), (ones,))[1])(AT)
    total = sum(jnp.sum(g) for g in reverse(AT)[1].values())
    assert float(forward) == pytest.approx(float(total), rel=1e-10)
