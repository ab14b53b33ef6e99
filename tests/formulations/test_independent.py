"""A slider-crank by its crank and by its slider, which does not determine the crank at a dead
centre."""

import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Result, SimulationError, State, System, simulate, simulate_batch
from cordax.formulations import IndependentCoordinates

CRANK, ROD = 0.3, 1.0  # lengths [m]


class SliderCrank(System):
    """Angles of crank and rod [rad] and the place of the slider [m], with a weight on the crank."""

    coordinate_names = ("crank", "rod", "slider")

    def mass_matrix(self, q):
        return jnp.diag(jnp.array([0.1, 0.05, 1.0]))

    def force(self, t, q, v, u):
        return jnp.stack([-3.0 * jnp.cos(q[0]), 0.0, 0.0])

    def potential_energy(self, t, q):
        return 3.0 * jnp.sin(q[0])

    def constraint(self, t, q):
        crank, rod, slider = q
        across = CRANK * jnp.sin(crank) + ROD * jnp.sin(rod)
        return jnp.stack([CRANK * jnp.cos(crank) + ROD * jnp.cos(rod) - slider, across])

    def default_state(self):
        crank, rate = 1.5, 6.0
        rod = np.arcsin(-CRANK * np.sin(crank) / ROD)
        rod_rate = -CRANK * np.cos(crank) * rate / (ROD * np.cos(rod))
        speed = -CRANK * np.sin(crank) * rate - ROD * np.sin(rod) * rod_rate
        place = CRANK * np.cos(crank) + ROD * np.cos(rod)
        return State(jnp.array([crank, rod, place]), jnp.array([rate, rod_rate, speed]))


def run(independent, method, dt, **how):
    formulation = IndependentCoordinates((independent,))
    given = {"integrator": method, "formulation": formulation, "throw": False} | how
    return simulate(SliderCrank(), dt=dt, duration=1.2, **given)


@pytest.fixture(scope="module")
def turning():
    return run("crank", "rk4", 1e-3)


def test_the_crank_turns_through_all_dead_centres(turning):
    assert turning.result == Result.SUCCESSFUL
    assert float(turning.q[-1, 0]) > 1.5 + 2 * np.pi
    np.testing.assert_allclose(turning.energy()["total"], turning.energy()["total"][0], atol=1e-7)


@pytest.mark.parametrize("method", ["rk4", "symplectic_euler", "rosenbrock_2"])
def test_a_run_ends_at_a_dead_centre_of_its_independent_coordinates(method, turning):
    dead_centre = float(turning.t[np.argmax(np.asarray(turning.q[:, 0]) > np.pi)])
    for dt in (1e-3, 1e-2):
        found = run("slider", method, dt)
        assert found.result == Result.DEAD_CENTRE
        assert float(found.failure_time) == pytest.approx(dead_centre, abs=2e-3 + 1.5 * dt)


def test_the_message_names_what_to_do():
    with pytest.raises(SimulationError, match=r"dead centre.*Choose other independent coordinates"):
        run("slider", "rk4", 1e-2, throw=True)


def test_members_of_a_batch_are_single_runs(turning):
    """To round-off: a batch closes the loops with as many iterations as a single run."""
    start = SliderCrank().default_state()
    build = lambda factor: (SliderCrank(), State(start.q, factor * start.v))
    formulation = IndependentCoordinates(("crank",))
    how = {"integrator": "rk4", "formulation": formulation, "dt": 1e-3, "duration": 1.2}
    batch = simulate_batch(build, np.array([1.0, 0.9]), **how)
    np.testing.assert_allclose(batch.q[0], turning.q, rtol=0, atol=1e-12)
