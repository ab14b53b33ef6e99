"""Sensors between the simulation and a recording."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Parameter, Recording, Sensor, State
from cordax.identification._identify import problem_of
from cordax.systems import BodyPoint, DiscreteRod, Gripper, Oscillator, RodPoint, SplineRod
from cordax.systems import mechanism as mech

OMEGA, DELAY, TIME = 5.0, 0.013, 0.05
CART = Oscillator(2.0, 2.0 * OMEGA**2, 0.0)
START = State(jnp.array([0.3]), jnp.zeros(1))


def shown(t, offset=0.02, gain=1.1, drift=0.01):
    """The steady response to 0.3 cos(omega t), by hand."""
    size, angle = 1.0 / np.sqrt(1.0 + (OMEGA * TIME) ** 2), np.arctan(OMEGA * TIME)
    return gain * 0.3 * size * np.cos(OMEGA * (t - DELAY) - angle) + offset + drift * t


def experiment(**fields):
    return Experiment(CART, START, dt=0.01, integrator="rk4", sensors={"x": Sensor(**fields)})


def simulated(e, t, values):
    problem = problem_of([e], [Recording(t, values)], ["stiffness"])
    run = problem.run(problem.origin)
    return values["x"] - np.asarray(problem.differences(problem.origin, run)[0]["x"])


def test_a_sensor_shows_delay_low_pass_gain_offset_and_drift():
    t = 0.01 * np.arange(301)
    fields = {"offset": 0.02, "gain": 1.1, "drift": 0.01, "delay": DELAY, "time_constant": TIME}
    found = simulated(experiment(**fields), t, {"x": shown(t)})
    # the low-pass starts as on a ramp; inputs are linear between samples: (omega h)^2/12 0.33
    late = t > 8 * TIME
    assert np.allclose(found[late], shown(t)[late], atol=7e-5)
    odd = np.sort(np.random.default_rng(0).uniform(0.5, 3.0, 80))  # not on steps
    assert np.allclose(
        simulated(experiment(**fields), odd, {"x": shown(odd)}), shown(odd), atol=7e-5
    )


def test_all_parameters_of_a_sensor_are_identified_beside_the_machine():
    t = 0.01 * np.arange(301)
    noise = 1e-4
    x = shown(t) + noise * np.random.default_rng(1).normal(size=t.size)
    x[t < 0.4] = np.nan
    e = experiment(delay=0.0, time_constant=0.03)
    names = [
        "stiffness", "sensors.x.offset", "sensors.x.drift",
        Parameter("sensors.x.gain", prior=(1.1, 0.001)), "sensors.x.delay",
        Parameter("sensors.x.time_constant", prior=(TIME, 0.0005)),
    ]  # fmt: skip
    fit = cordax.identify(e, Recording(t, {"x": x}), names, noise=noise, check_step=False)
    truth = [CART.stiffness, 0.02, 0.01, 1.1, DELAY, TIME]
    errors = (np.asarray(fit.values) - np.array(truth, float)) / np.asarray(fit.standard_errors)
    assert bool(fit.succeeded) and np.max(np.abs(errors)) < 3.5
    assert np.asarray(fit.standard_errors)[4] < 1e-3  # delay [s]


def test_derivatives_by_the_delay_in_both_modes():
    t = 0.01 * np.arange(101)
    problem = problem_of(
        [experiment(delay=DELAY, time_constant=TIME)], [Recording(t, {"x": 0.0 * t})],
        [Parameter("sensors.x.delay", transform="linear"), "sensors.x.time_constant"],
    )  # fmt: skip
    f = lambda y: jnp.sum(problem.plain_residuals(y)[0] ** 2)
    y = jnp.zeros(2)
    reverse, forward = jax.jit(jax.grad(f))(y), jax.jit(jax.jacfwd(f))(y)
    value = jax.jit(f)
    steps = [1e-5 * np.eye(2)[i] for i in range(2)]
    central = [(value(y + h) - value(y - h)) / 2e-5 for h in steps]
    assert np.allclose(reverse, forward, rtol=1e-9) and np.allclose(reverse, central, rtol=1e-5)


def test_a_filtered_recording_is_compared_with_a_filtered_simulation():
    t = 0.01 * np.arange(201)
    raw = Recording(t, {"x": 0.3 * np.cos(OMEGA * t)})
    filtered = raw.filter(1.0)
    found = simulated(experiment(cutoff=1.0), t, {"x": filtered.values["x"]})
    assert np.allclose(found, filtered.values["x"], atol=1e-6)
    assert np.max(np.abs(filtered.values["x"] - raw.values["x"])) > 0.01


def test_points_of_bodies_and_rods():
    arm = mech.Body("arm", mech.Revolute("y"), solids=mech.rod(1.0, mass=1.0, centre=(0.5, 0, 0)))
    machine = mech.Mechanism(bodies=[arm])
    tip = BodyPoint("arm", (1.0, 0.0, 0.0))(machine, 0.0, jnp.array([0.3]), jnp.zeros(1))
    assert np.allclose(tip, [np.cos(0.3), 0.0, -np.sin(0.3)], atol=1e-12)
    with pytest.raises(ValueError, match="body: got 'leg'"):
        BodyPoint("leg")(machine, 0.0, jnp.array([0.3]), jnp.zeros(1))
    with pytest.raises(ValueError, match="expected a SplineRod"):
        RodPoint(0.5)(machine, 0.0, jnp.zeros(1), jnp.zeros(1))
    rod = SplineRod()
    state = rod.default_state()
    ends = [np.asarray(RodPoint(s)(rod, 0.0, state.q, state.v)) for s in (0.0, 0.25, 1.0)]
    assert np.allclose(ends[1], 0.75 * ends[0] + 0.25 * ends[2], atol=1e-9)
    nodes = np.linspace([0.0, 0, 0], [1.0, 0, 0], 6)
    hold = lambda x: Gripper((x, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    wire = DiscreteRod(nodes, hold(0.0), hold(1.0), 1.0)
    state = wire.default_state()
    assert np.allclose(RodPoint(0.33)(wire, 0.0, state.q, state.v), [0.33, 0, 0], atol=1e-9)


def test_bad_sensors_are_rejected():
    with pytest.raises(ValueError, match="delay: got -"):
        Sensor(delay=-0.1)
    with pytest.raises(ValueError, match="time_constant"):
        Sensor(time_constant=0.0)
    with pytest.raises(ValueError, match="quantity: got 3"):
        Sensor(3)
    with pytest.raises(ValueError, match=r"station: got 1\.2"):
        RodPoint(1.2)
    with pytest.raises(ValueError, match="sensors: got"):
        Experiment(CART, sensors={"x": 1.0})  # pyright: ignore
    log = Recording([0.0, 0.1, 0.2], {"x": [0.0, 1.0, 2.0]})
    with pytest.raises(ValueError, match="'angle', expected one of x"):
        cordax.identify(experiment(), log, ["sensors.angle.offset"])
    with pytest.raises(ValueError, match="one of offset, gain, drift"):
        cordax.identify(experiment(), log, ["sensors.x.bias"])
