"""Optimisation against problems with known solutions."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Constraint, Parameter
from cordax.control import Hermite
from cordax.systems import Oscillator


class Pushed(cordax.Controller):
    """A force that goes through values at given times."""

    path: Hermite

    def __call__(self, t, state, memory):
        return self.path.position(t), memory


TIMES = np.linspace(0.0, 1.0, 5)
CART = cordax.Experiment(
    Oscillator(mass=2.0, stiffness=1e-9, damping=0.0),
    cordax.State(jnp.zeros(1), jnp.zeros(1)),
    Pushed(Hermite(TIMES, np.zeros((5, 1)), np.zeros((5, 1)))),
    duration=1.0,
    dt=0.02,
    integrator="rk4",
)
FORCES = ["control.path.values", "control.path.slopes"]


def effort(run):
    return 0.02 * jnp.sum(run.u**2) - 0.01 * (run.u[0, 0] ** 2 + run.u[-1, 0] ** 2)


ARRIVES = Constraint(lambda run: jnp.stack([run.q[-1, 0] - 1.0, run.v[-1, 0]]), 0.0, 0.0, "arrives")


@pytest.fixture(scope="module")
def moved():
    return cordax.optimise(CART, FORCES, effort, [ARRIVES], tolerance=1e-12)


def test_least_effort_from_rest_to_rest(moved):
    """Least integral of f^2 that moves a mass by d in T: x = d (3 - 2 t/T) (t/T)^2, which costs 12
    m^2 d^2/T^3; its force is a straight line, which the path contains."""
    assert moved.succeeded, moved.summary()
    assert moved.cost == pytest.approx(12.0 * 4.0, rel=1e-3)
    t = np.asarray(moved.trajectory.t)
    np.testing.assert_allclose(moved.trajectory["x"], (3.0 - 2.0 * t) * t**2, atol=1e-3)
    assert abs(moved.trajectory["x"][-1] - 1.0) < 1e-5
    assert moved.violations["arrives"] == 0.0
    # the cost is 48 d^2, so that moving less by a unit saves 96
    assert abs(moved.multipliers["arrives"][0, 0]) == pytest.approx(96.0, rel=1e-2)
    assert "optimum found" in moved.summary()


def test_bounds_on_the_way_are_kept():
    strong = Constraint(lambda run: run.u[::5, 0], -9.0, 9.0, name="force")
    found = cordax.optimise(CART, FORCES, effort, [ARRIVES, strong])
    assert found.succeeded, found.summary()
    assert np.abs(found.trajectory.u[::5]).max() <= 9.0 + 1e-5
    assert found.cost > 48.5  # costs more than without
    assert np.abs(found.multipliers["force"]).max() > 0


def test_what_cannot_be_kept_is_said():
    weak = Constraint("x", high=0.5)
    with pytest.warns(UserWarning, match="contradict"):
        found = cordax.optimise(CART, FORCES, effort, [ARRIVES, weak], max_steps=15)
    assert not found.succeeded and max(found.violations.values()) > 0.01


SPRING = cordax.Experiment(
    Oscillator(mass=1.0, stiffness=30.0, damping=1.0),
    cordax.State(jnp.ones(1), jnp.zeros(1)),
    duration=1.0,
    dt=0.02,
    integrator="rk4",
)


def squares(run):
    return jnp.sum(run["x"] ** 2)


def test_a_design_within_bounds_and_over_scenarios():
    damping = Parameter("damping", bounds=(0.1, 4.0))
    alone = cordax.optimise(SPRING, [damping], squares)
    assert alone.values["damping"] == pytest.approx(4.0)  # the bound itself can be reached
    stiff = {"stiffness": [10.0, 30.0, 90.0]}
    worst = cordax.optimise(SPRING, [damping], squares, scenarios=stiff, combine="worst")
    assert worst.costs.shape == (3,) and worst.cost == pytest.approx(worst.costs.max())
    one = cordax.simulate(cordax.parameters.varied(worst.experiment, {"stiffness": 10.0}))
    assert float(squares(one)) == pytest.approx(worst.costs[0], rel=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_cost_does_not_matter(unit):
    """Damping that leaves the least of a vibration, by a constraint of its own unit."""
    damping = Parameter("damping", bounds=(0.1, 4.0))
    limit = Constraint(lambda run: run.system.damping, high=3.0, name="damper")
    cost = lambda run: unit * squares(run)
    found = cordax.optimise(SPRING, [damping], cost, [limit])
    assert found.succeeded, found.summary()
    assert found.values["damping"] == pytest.approx(3.0, abs=1e-5)
    slope = (squares_at(3.001) - squares_at(2.999)) / 0.002
    assert found.multipliers["damper"].item() == pytest.approx(-unit * slope, rel=1e-3)


def squares_at(damping):
    system = Oscillator(mass=1.0, stiffness=30.0, damping=damping)
    return float(squares(cordax.simulate(SPRING.replace(system=system))))


def test_many_starts_find_the_better_valley():
    """Where the motion ends at a given time has many valleys over the stiffness."""
    away = lambda run: (run["x"][-1] + 0.9) ** 2
    stiffness = Parameter("stiffness", bounds=(5.0, 60.0))
    far = SPRING.replace(system=Oscillator(mass=1.0, stiffness=45.0, damping=0.1))
    one = cordax.optimise(far, [stiffness], away)
    many = cordax.optimise(far, [stiffness], away, starts=16)
    assert many.cost <= one.cost + 1e-9
    assert many.cost < 1e-4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": ["stifness"]}, "stifness"),
        ({"cost": 3}, "cost"),
        ({"cost": lambda run: run["x"]}, "one number"),
        ({"constraints": ["tension"]}, "constraints"),
        ({"combine": "median"}, "median"),
        ({"starts": 4}, "bounds"),
        ({"scenarios": {"stifness": [1.0]}}, "stifness"),
        ({"scenarios": {"stiffness": [1.0, 2.0], "mass": [1.0]}}, "one length"),
        ({"scenarios": {"stiffness": 1.0}}, "one length"),
        ({"experiment": cordax.Experiment(Oscillator())}, "duration"),
    ],
)
def test_bad_input_is_named(change, words):
    given = {"experiment": SPRING, "parameters": ["damping"], "cost": squares} | change
    with pytest.raises(ValueError, match=words):
        cordax.optimise(**given)


def test_constraints_are_checked():
    with pytest.raises(ValueError, match="low <= high"):
        Constraint("x", low=2.0, high=1.0)
    with pytest.raises(ValueError, match="low or high"):
        Constraint("x")
