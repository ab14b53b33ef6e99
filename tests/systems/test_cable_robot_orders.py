"""All formulations and integrators on one motion of the cable robot: pushed sideways for 0.32 s."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import (
    RK4,
    Baumgarte,
    Dynamics,
    GeneralisedAlpha,
    Index3,
    LinearlyImplicitEuler,
    Penalty,
    Projected,
    State,
    UdwadiaKalaba,
    simulate,
)
from cordax.mechanics import Delegate, Presentation
from helpers.cable_robot_reference import robot_of

END = 0.32
ROBOT = robot_of("imp_m1")
PUSH = jnp.zeros(ROBOT.n_u).at[-6:-4].set(jnp.array([20.0, 30.0]))


class Silent(Delegate):
    """The robot without outputs: they would be compiled with every method."""

    def outputs(self, t, q, v, u, multipliers):
        return {}

    def presentation(self):
        return Presentation()

    def structure(self):
        return self.inner.structure()


def march(formulation, integrator, steps: int):
    """State, tensions and largest drift at the end."""
    how = {"integrator": integrator, "formulation": formulation, "control": PUSH}
    run = simulate(Silent(ROBOT), dt=END / steps, duration=END, **how)
    state = State(run.q[-1], run.v[-1])
    return state, tension_at_end(formulation, state), np.max(run.drift())


@eqx.filter_jit
def tension_at_end(formulation, state):
    end, dynamics = jnp.asarray(END), Dynamics(ROBOT, formulation)
    multipliers = dynamics.multipliers(end, state.q, state.v, PUSH)
    return ROBOT.multiplier_forces(end, state.q, multipliers)[-4:]


@pytest.fixture(scope="module")
def fine():
    state, tension, drift = march(Baumgarte(), RK4(), 640)
    assert drift < 1e-11
    assert np.linalg.norm(state.q - ROBOT.default_state().q) > 0.05, "it should have moved"
    return state, tension


def errors(formulation, integrator, fine, counts):
    """Of positions, tensions and constraints, for each number of steps."""
    rows = []
    for n in counts:
        state, tension, drift = march(formulation, integrator, n)
        off = [np.max(np.abs(a - b)) for a, b in ((state.q, fine[0].q), (tension, fine[1]))]
        rows.append([*off, float(drift)])
    return np.array(rows).T


@pytest.mark.parametrize("formulation", [Baumgarte(), UdwadiaKalaba(), Projected()])
def test_order_4_under_rk4(formulation, fine):
    position, tension, _ = errors(formulation, RK4(), fine, (32, 64))
    for error in (position, tension):
        np.testing.assert_allclose(np.log2(error[-2] / error[-1]), 4.0, atol=0.4)


@pytest.mark.parametrize("method, order", [(GeneralisedAlpha(), 2), (LinearlyImplicitEuler(), 1)])
def test_orders_of_the_index_3_integrators(method, order, fine):
    position, tension, drift = errors(Index3(), method, fine, (64, 128, 256))
    np.testing.assert_allclose(np.log2(position[:-1] / position[1:]), order, atol=0.15)
    np.testing.assert_allclose(np.log2(tension[:-1] / tension[1:]), order, atol=0.3)
    if order == 2:
        assert np.max(drift) < 1e-13


def test_the_penalty_form_comes_closer_with_its_factor(fine):
    """At least in proportion; the push sets in at once and leaves small oscillations."""
    strong, weak = (errors(Penalty(factor), RK4(), fine, (3200,)) for factor in (3e3, 3e2))
    for error in (0, 2):
        assert strong[error] < 0.11 * weak[error]
