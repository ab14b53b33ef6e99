"""One noun for machine, start, inputs and run: every verb gives what the spelt-out call gives."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Recording, State, identify, simulate, simulate_batch
from cordax.systems import Oscillator

MACHINE = Oscillator(2.0, 50.0, 0.8)
RUN = {"dt": 0.02, "duration": 0.4, "integrator": "rk4", "save_every": 2, "t0": 0.1}


def force(t, state):
    return jnp.array([jnp.sin(3.0 * t)])


def stretched(machine):
    return State(jnp.array([10.0]) / machine.stiffness, jnp.zeros(1))


@pytest.fixture(scope="module")
def experiment():
    return Experiment(MACHINE, stretched, force, **RUN)


@pytest.fixture(scope="module")
def spelt_out():
    return simulate(MACHINE, stretched(MACHINE), control=force, **RUN)


def test_simulate(experiment, spelt_out):
    run = simulate(experiment)
    np.testing.assert_array_equal(run.q, spelt_out.q)
    np.testing.assert_array_equal(run.t, spelt_out.t)
    other = simulate(experiment.replace(control=lambda machine: 0.0 * jnp.ones(1)))
    assert np.any(other.q != run.q)


def test_a_batch_of_experiments(experiment, spelt_out):
    def build(stiffness):
        softer = eqx.tree_at(lambda o: o.stiffness, MACHINE, stiffness)
        return experiment.replace(system=softer)

    runs = simulate_batch(build, jnp.array([50.0, 20.0]), save_every=1)
    assert runs.q.shape == (2, 21, 1)
    np.testing.assert_allclose(runs.q[0, ::2], spelt_out.q, rtol=1e-14, atol=1e-15)
    assert float(runs.q[1, 0, 0]) == 0.5  # the start follows the machine


def test_identify(experiment, spelt_out):
    wrong = experiment.replace(system=Oscillator(2.0, 70.0, 0.8), save_every=1)
    recording = Recording(spelt_out.t, {"x": spelt_out["x"]})
    fit = identify(wrong, recording, ["stiffness"], check_step=False)
    assert float(fit["stiffness"]) == pytest.approx(50.0, rel=1e-7)
    with pytest.raises(ValueError, match=r"dt, t0: .*the experiment has them"):
        identify(wrong, recording, ["stiffness"], dt=0.01, t0=0.1)


def test_switches_make_phases_of_the_machine_as_it_is_then(experiment):
    stiffer = lambda machine, state: eqx.tree_at(
        lambda o: o.stiffness, machine, 4.0 * machine.stiffness
    )
    switched = experiment.replace(switches=((0.3, stiffer), (9.0, stiffer)))
    run = simulate(switched)
    by_hand = simulate(
        [(MACHINE, 0.3), (Oscillator(2.0, 200.0, 0.8), 0.5)], stretched(MACHINE), control=force,
        **{name: x for name, x in RUN.items() if name != "duration"},
    )  # fmt: skip
    np.testing.assert_allclose(run.q, by_hand.q, rtol=1e-13)
    assert float(run._known_system("test").stiffness) == 200.0  # pyright: ignore


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"switches": ((0.2, "pick"),)}, "'pick'.*a method of Oscillator"),
        ({"switches": ((0.2, force), (0.1, force))}, "times that increase"),
        ({"switches": ((0.05, force),)}, r"increase from t0 = 0\.1 s"),
        ({"integrator": "magic"}, "one of explicit_euler"),
        ({"system": 3.0}, "3.0, expected a System"),
        ({"stepp": 1}, "replace: got 'stepp', expected one of system"),
    ],
)
def test_bad_settings_are_named(experiment, changes, message):
    with pytest.raises(ValueError, match=message):
        experiment.replace(**changes)


def test_settings_are_given_once(experiment):
    with pytest.raises(
        ValueError, match=r"^dt cannot be given together with an Experiment.*replace\(dt=\.\.\.\)"
    ):
        simulate(experiment, dt=0.01)
    with pytest.raises(ValueError, match=r"^t0, save_every cannot be given together"):
        simulate(experiment, t0=0.0, save_every=1)
    with pytest.raises(ValueError, match="the simulated time"):
        simulate(experiment.replace(duration=None))


def test_the_function_and_the_package_have_different_names():
    assert callable(cordax.identify) and not hasattr(cordax.identify, "__path__")


def test_accuracy_and_adjoint_belong_to_the_experiment(experiment):
    """They are the same as arguments of `simulate`."""
    settings = {"accuracy": 1e-6, "adjoint": "forward"}
    run = simulate(experiment.replace(**settings))
    np.testing.assert_array_equal(run.q, simulate(experiment, **settings).q)
    assert np.any(np.asarray(run.q) != np.asarray(simulate(experiment).q))


def test_a_control_that_takes_any_arguments_is_a_function_of_time_and_state(experiment):
    run = lambda control: simulate(experiment.replace(control=control)).u
    np.testing.assert_array_equal(run(lambda *given: given[1].q), run(lambda t, state: state.q))
