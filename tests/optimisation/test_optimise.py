"""Optimisation against problems with known solutions."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Constraint, Parameter
from cordax.control import BSpline, Hermite, InputPath, RecordedInput
from cordax.optimisation import problem as problem_module
from cordax.optimisation._optimise import _segments
from cordax.optimisation.problem import Problem
from cordax.parameters.parameter import collect_box, varied
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


HELD = RecordedInput(np.linspace(0.0, 1.0, 11), np.zeros((11, 1)), "hold")


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
    assert moved.violations["arrives"] <= 1e-6
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
    assert "damping [N s/m]" in alone.summary()
    stiff = {"stiffness": [10.0, 30.0, 90.0]}
    worst = cordax.optimise(SPRING, [damping], squares, scenarios=stiff, combine="worst")
    assert worst.costs.shape == (3,) and worst.cost == pytest.approx(worst.costs.max())
    one = cordax.simulate(varied(worst.experiment, {"stiffness": 10.0}))
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


def test_numbers_that_are_not_finite_are_no_optimum():
    stiffness = Parameter("stiffness", bounds=(5.0, 60.0))
    with pytest.raises(ValueError, match="cost: got values at the start that are infinite or NaN"):
        cordax.optimise(SPRING, [stiffness], lambda run: jnp.sqrt(-1.0 - run["x"][-1] ** 2))
    with pytest.raises(ValueError, match="cost: got derivatives at the start"):
        cordax.optimise(SPRING, [stiffness], lambda run: jnp.sqrt(0.0 * run["x"][-1]))
    bad = Constraint(lambda run: jnp.log(-jnp.abs(run["x"][-1:])), low=0.0, name="log")
    with pytest.raises(ValueError, match="constraints: got values at the start"):
        cordax.optimise(SPRING, [stiffness], lambda run: run["x"][-1] ** 2, [bad])


def test_functions_that_jax_cannot_look_through_are_named():
    largest = lambda run: float(np.max(run["x"]))
    with pytest.raises(ValueError, match=r"cost: got a function that needs known.*jax\.numpy"):
        cordax.optimise(SPRING, ["stiffness"], largest)


def test_a_cost_that_nothing_changes_is_named():
    with pytest.warns(UserWarning, match="does not change with any of the numbers"):
        found = cordax.optimise(SPRING, ["stiffness"], lambda run: run["x"][0] ** 2)
    assert "does not change" in found.summary()


def test_several_searches_find_what_single_ones_do():
    """Both from the better of four starts; their work is counted together."""
    away = lambda run: (run["x"][-1] + 0.9) ** 2 + 1e-3 * run.system.stiffness
    stiffness = Parameter("stiffness", bounds=(5.0, 60.0))
    both = cordax.optimise(SPRING, [stiffness], away, starts=4, searches=2, tolerance=1e-9)
    alone = cordax.optimise(SPRING, [stiffness], away, start=both.start, tolerance=1e-9)
    assert both.values["stiffness"] == pytest.approx(alone.values["stiffness"], rel=1e-6)
    assert both.succeeded and len(both.history["cost"]) == len(alone.history["cost"])
    assert both.evaluations > alone.evaluations


def test_a_start_without_derivatives_does_not_end_the_others():
    """A square root of zero, at the stiffness where the search would begin."""
    begin = float(SPRING.system.stiffness)
    root = lambda k: 0.0 * jnp.sqrt((k - begin) ** 2)
    cost = lambda run: (run.system.stiffness / 20.0 - 1.0) ** 2 + root(run.system.stiffness)
    stiffness = Parameter("stiffness", bounds=(5.0, 60.0))
    with pytest.raises(ValueError, match="cost: got derivatives at the start"):
        cordax.optimise(SPRING, [stiffness], cost)
    found = cordax.optimise(SPRING, [stiffness], cost, starts=2, searches=3)
    assert found.values["stiffness"] == pytest.approx(20.0, rel=1e-3)


QUICK = CART.replace(
    control=InputPath(BSpline([0.0, 1.0], np.linspace(2.0, -2.0, 12)[:, None])), dt=0.05
)
PUSHES = Parameter("control.path.values", bounds=(-8.0, 8.0))
LASTS = Parameter("duration", bounds=(0.3, 3.0), tied=("control.path.times[1]",))


def test_least_time():
    """A mass is moved fastest by full force forth and back, in 2 sqrt(m d / F) = 1 s; a spline
    within the bounds cannot switch at once and takes a little longer."""
    found = cordax.optimise(QUICK, [PUSHES, LASTS], lambda run: run.t[-1], [ARRIVES])
    assert found.succeeded, found.summary()
    assert 1.0 < found.values["duration"] < 1.12 and found.cost == found.values["duration"]
    assert found.experiment.duration == found.values["duration"]
    assert found.experiment.control.path.times[1] == found.values["duration"]
    assert found.trajectory.t[-1] == pytest.approx(found.values["duration"])
    assert len(found.trajectory.t) == len(cordax.simulate(QUICK).t)  # as many steps
    assert np.abs(found.trajectory.u).max() <= 8.0 + 1e-9
    assert found.history["values"].shape == (len(found.history["cost"]), 13)


@pytest.fixture(scope="module")
def cut():
    return cordax.optimise(CART, FORCES, effort, [ARRIVES], segments=5, tolerance=1e-12)


def test_segments_meet_and_find_the_same(moved, cut):
    assert cut.succeeded, cut.summary()
    assert cut.cost == pytest.approx(moved.cost, rel=1e-6)
    for name in moved.values:
        # a cost within 1e-12 of its least leaves a millionth of forces of 48 N
        assert cut.values[name] == pytest.approx(moved.values[name], abs=1e-3)
    np.testing.assert_allclose(cut.multipliers["arrives"], moved.multipliers["arrives"], rtol=1e-3)
    # the pieces, end to end, are the run in one go
    np.testing.assert_allclose(cut.trajectory["x"], cordax.simulate(cut.experiment)["x"], atol=1e-6)


def test_segments_over_scenarios_and_their_derivatives():
    """Beside central differences, every unknown: forces, duration and nodes of two cases."""
    base = QUICK.replace(duration=0.6, save_every=2)
    parameters = collect_box(["control.path.values[2,0]", LASTS], base)
    rows = {"mass": jnp.array([2.0, 3.0])}
    slow = Constraint("d_x", high=1.0)
    problem = Problem(base, parameters, effort, (slow,), rows, "worst")
    problem = problem.cut(_segments(problem, np.zeros(2), 3, None))
    assert problem.size == 2 + 2 * 2 * 2
    y = jnp.asarray(np.random.default_rng(0).normal(scale=0.05, size=problem.size))
    _, slopes = problem_module.linearised(problem, y)
    h = 1e-6
    ys = jnp.concatenate([y + h * jnp.eye(len(y)), y - h * jnp.eye(len(y))])
    around = problem_module.tried(problem, ys)
    for name in ("cost", "rows", "gaps"):
        there, back = np.split(np.asarray(around[name]), 2)
        numeric = np.moveaxis((there - back) / (2 * h), 0, -1)
        assert np.abs(numeric).max() > 0.01
        np.testing.assert_allclose(slopes[name], numeric, rtol=1e-6, atol=1e-7)


class Upright(cordax.LagrangianSystem):
    """A pendulum that stands on its head."""

    @property
    def coordinate_names(self):
        return ("angle",)

    def inertial_coordinates(self, q):
        return jnp.stack([jnp.sin(q[0]), jnp.cos(q[0])])

    def inertial_weights(self):
        return jnp.ones(2)

    def potential_energy(self, t, q):
        return 25.0 * jnp.cos(q[0])

    @property
    def input_names(self):
        return ("torque",)

    def applied_force(self, t, q, v, u):
        return u


def test_segments_tame_what_is_unstable():
    """From a lean to upright without falling, over ten times what a deviation takes to grow by e:
    in one piece the end changes 20 000 times as much as the torque does."""
    lean = cordax.State(jnp.array([0.1]), jnp.zeros(1))
    path = InputPath(BSpline([0.0, 2.0], np.zeros((10, 1))))
    fall = cordax.Experiment(Upright(), lean, path, duration=2.0, dt=0.05, integrator="rk4")
    stands = Constraint(lambda run: jnp.concatenate([run.q[-1], run.v[-1]]), 0.0, 0.0, "stands")
    near = Constraint(lambda run: run.q[::5], -0.2, 0.2, "near")
    effort = lambda run: jnp.mean(run.u**2)
    inputs = ["control.path.values"]
    found = cordax.optimise(fall, inputs, effort, [stands, near], segments=8, tolerance=1e-8)
    assert found.succeeded, found.summary()
    assert np.abs(found.trajectory.q).max() < 0.21 and abs(found.trajectory.q[-1, 0]) < 1e-5
    # joined segments obey the equation of motion: v' = 25 sin(q) + u
    q, v, u, t = (np.asarray(getattr(found.trajectory, n)) for n in ("q", "v", "u", "t"))
    gained = np.trapezoid((25.0 * np.sin(q) + u)[:, 0], t)
    assert v[-1, 0] - v[0, 0] == pytest.approx(gained, abs=0.02)


def test_what_was_found_is_a_start(moved, cut):
    for given in (moved, moved.values, cut):
        again = cordax.optimise(CART, FORCES, effort, [ARRIVES], start=given, tolerance=1e-9)
        assert again.succeeded and len(again.history["cost"]) <= 4
        assert again.cost == pytest.approx(moved.cost, rel=1e-6)
    with pytest.raises(ValueError, match="start"):
        cordax.optimise(CART, FORCES, effort, start={"mass": 1.0})


def test_a_machine_alone():
    """A design without a motion: the stiffness that gives 2 Hz."""
    frequency = lambda machine: jnp.sqrt(machine.stiffness / machine.mass) / (2.0 * jnp.pi)
    light = Constraint(lambda machine: machine.mass, high=2.0, name="light")
    given = [Parameter("stiffness", bounds=(1.0, 1e3)), Parameter("mass", bounds=(0.5, 5.0))]
    away = lambda machine: (frequency(machine) - 2.0) ** 2
    found = cordax.optimise(Oscillator(mass=1.0, stiffness=10.0), given, away, [light])
    assert found.succeeded and found.trajectory is None
    assert frequency(found.experiment) == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(ValueError, match="function of the machine"):
        cordax.optimise(Oscillator(), given, away, [Constraint("x", low=0.0)])


def test_steep_starts_end_at_the_optimum():
    """Slopes at the start are up to 1e17 times those near the optimum; constants do not matter."""
    machine = Oscillator(mass=80.0, stiffness=50.0)
    k = Parameter("stiffness", bounds=(1.0, 66.0))
    cost = lambda x: jnp.exp(x) + (x - 0.5) ** 2 / 9.0
    best = float(np.min(cost(np.linspace(-3.0, 1.0, 400001))))
    for offset in (0.0, 1e4):
        steep = lambda m, c=offset: cost(m.stiffness - 10.0) + c
        found = cordax.optimise(machine, [k], steep, max_steps=300)
        assert found.succeeded, found.summary()
        assert found.cost - offset == pytest.approx(best, abs=1e-5)
        x = found.values["stiffness"] - 10.0
        slope = 65.0 * (np.exp(x) + (x - 0.5) * 2.0 / 9.0)  # the bounds are 65 apart
        assert found.optimality == pytest.approx(abs(slope), rel=1e-6, abs=1e-9)

    def valley(m):  # Rosenbrock's
        x, y = m.mass - 50.0, m.stiffness - 100.0
        return 1e2 * (y - x**2) ** 2 + (1.0 - x) ** 2

    found = cordax.optimise(machine, ["mass", "stiffness"], valley, max_steps=400)
    assert found.succeeded and found.cost < 1e-6, found.summary()
    with pytest.warns(UserWarning, match="still lowers the cost"):
        found = cordax.optimise(machine, [k], lambda m: cost(m.stiffness - 10.0), max_steps=3)
    assert not found.succeeded and "NOT found" in found.summary()


def test_violations_within_the_tolerance_are_reported():
    """Newton's step for mass^2 = 4 from 3 ends at 13/6; a scale of 1e7 counts that as kept."""
    four = Constraint(lambda m: m.mass**2, 4.0, 4.0, "four", scale=1e7)
    with pytest.warns(UserWarning, match="stopped before"):
        found = cordax.optimise(
            Oscillator(mass=3.0), ["mass"], lambda m: m.mass, [four], max_steps=1
        )
    assert found.violations["four"] == pytest.approx(abs(found.values["mass"] ** 2 - 4.0), rel=1e-6)
    assert found.violations["four"] > 0.1 and "four: kept (violation" in found.summary()


def test_numbers_that_go_together():
    twin = Parameter("damping", bounds=(0.1, 4.0), tied=("mass",))
    found = cordax.optimise(SPRING, [twin], squares, max_steps=3, tolerance=1.0)
    assert found.experiment.system.mass == found.experiment.system.damping
    with pytest.raises(ValueError, match="stifness"):
        cordax.optimise(SPRING, [Parameter("damping", tied=("stifness",))], squares)


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
        ({"segments": 7}, "segments"),
        ({"searches": 0}, "searches"),
        ({"experiment": CART.replace(control=HELD), "segments": 5}, "sampled"),
        ({"parameters": [Parameter("duration", bounds=(2.0, 3.0))]}, "duration"),
        ({"parameters": [Parameter("duration", tied=("control.path.values",))]}, "with parameters"),
        ({"parameters": [Parameter("damping", prior=(1.0, 0.1))]}, "damping: prior"),
        ({"parameters": [Parameter("damping", each=True)]}, "damping: each"),
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
