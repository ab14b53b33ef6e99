"""Functions that build experiments, initial states from measurements, and predictions of
recordings that were left out."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Parameter, Recording, State, identify
from cordax.identification import ChannelError, MeasuredState, Validation, measured_state, verdict
from cordax.identification.validation import _lag
from cordax.systems import Oscillator

NOISE = 1e-3


def recorded(x: float, seed: int, damping: float = 0.8) -> Recording:
    start = State(jnp.array([x]), jnp.zeros(1))
    truth = Oscillator(2.0, 50.0, damping)
    run = cordax.simulate(truth, start, dt=0.02, duration=4.0, integrator="rk4")
    noise = NOISE * np.random.default_rng(seed).normal(size=len(run.t))
    return Recording(np.asarray(run.t) + 5.0, {"x": np.asarray(run["x"]) + noise})


def build(values, recording):
    """The initial state follows from the fitted stiffness: a mass that a known force has held."""
    machine = Oscillator(values["mass"], values["stiffness"], values["damping"])
    held = State(
        jnp.array([1.0]) * float(recording.about["force"]) / values["stiffness"], jnp.zeros(1)
    )
    return Experiment(machine, held, dt=0.02, t0=5.0, integrator="rk4")


@pytest.fixture(scope="module")
def fit():
    """Four windows of a log whose initial states are not known."""
    windows = [recorded(x, seed) for seed, x in enumerate((0.3, -0.2, 0.25, 0.1))]
    guess = Oscillator(2.0, 60.0, 0.5)
    experiments = [
        Experiment(guess, measured_state(guess, w), dt=0.02, t0=5.0, integrator="rk4")
        for w in windows
    ]
    names = ["stiffness", "damping", "state0.position", "state0.velocity"]
    return identify(experiments, windows, names, noise=NOISE, check_step=False)


def test_recordings_that_were_left_out_are_predicted(fit):
    low, high = np.asarray(fit.interval())[:2].T
    assert np.all((low < [50.0, 0.8]) & (np.array([50.0, 0.8]) < high))
    found = fit.validate(recorded(-0.35, 9), settle=0.5)
    error = found.errors["x"]
    assert found.start == 5.5 and error.rms < 3 * NOISE and error.fraction < 0.03
    assert error.coverage > 0.85 and error.beats_trivial and len(error.per_second) == 4
    assert abs(error.phase) < 2.0 and "of motion" in found.summary()
    assert verdict([found])[0] == "accurate"
    other = fit.validate(recorded(-0.35, 9, damping=8.0), settle=0.5)  # another machine
    word, reasons = verdict([other])
    assert word in ("poor", "useless") and other.errors["x"].fraction > 0.5 and len(reasons) >= 2


def test_cross_validation_predicts_every_recording_once(fit):
    found = fit.cross_validate(2, settle=0.5)
    assert len(found.validations) == 4 and found.estimates.shape == (2, 2)
    assert found.names == ("stiffness", "damping")
    assert np.allclose(found.estimates, [50.0, 0.8], rtol=0.02)
    assert all(v.errors["x"].fraction < 0.05 for v in found.validations)
    assert found.summary().startswith("accurate")
    with pytest.raises(ValueError, match="folds: got 5, expected 2 to 4"):
        fit.cross_validate(5)


def test_parameters_may_build_the_experiment():
    """With a known force the mass is determined as well, because the initial state follows from
    the fitted stiffness."""
    data = []
    for seed, force in enumerate((15.0, -10.0)):
        one = recorded(force / 50.0, seed)
        data.append(Recording(one.t, one.values, {"force": str(force)}))
    starts = [
        Parameter("mass", start=1.5), Parameter("stiffness", start=40.0),
        Parameter("damping", start=0.5),
    ]  # fmt: skip
    fit = identify(build, data, starts, noise=NOISE, check_step=False)
    low, high = np.asarray(fit.interval()).T
    truth = np.array([2.0, 50.0, 0.8])
    assert bool(fit.succeeded) and fit.names == ("mass", "stiffness", "damping")
    assert np.all((low < truth) & (truth < high)) and np.all((high - low) < 0.1 * truth)
    one = recorded(-0.3, 7)
    check = fit.validate(Recording(one.t, one.values, {"force": "-15.0"}), settle=0.0)
    assert check.errors["x"].fraction < 0.03
    for arguments, message in (
        ({"parameters": ["mass"]}, "start values by name"),
        ({"parameters": {"mass": 1.0}, "dt": 0.1}, "dt cannot be given together with a build"),
    ):
        with pytest.raises(ValueError, match=message):
            identify(build, data, **arguments)


def test_measured_states_of_constrained_machines_are_consistent():
    """A platform on cables: the noisy first sample does not satisfy the constraints, the state
    does, and it can only be moved along them."""
    from cordax.io import experiment_of

    base = experiment_of("strut")
    system, start = base.system, base.start
    t = 0.01 * np.arange(12)
    values = {
        name: float(x) + 1e-3 * np.sin(7 * i + t)
        for i, (name, x) in enumerate(zip(system.coordinate_names, start.q, strict=True))
    }
    state = measured_state(system, Recording(t, values), start)
    assert isinstance(state, MeasuredState)
    assert state.position.shape == (system.n_v - system.n_constraints,)
    found = state(system)
    assert np.max(np.abs(system.constraint(0.0, found.q)), initial=0.0) < 1e-9


def test_lags_of_oscillations():
    t = 0.01 * np.arange(1001)
    wave = lambda late: np.exp(-0.05 * t) * np.sin(3.0 * (t - late))
    lag, phase = _lag(t, wave(0.0), wave(0.07))
    assert np.isclose(lag, 0.07, atol=3e-3) and np.isclose(phase, np.degrees(0.21), atol=1.5)


def test_verdicts_are_honest():
    def said(rms, hold=1.0, coverage=0.95, noise=0.0):
        per_second = np.array([rms])
        error = ChannelError(rms, 1.0, rms, per_second, 0.0, 0.0, coverage, hold, 1.0, noise)
        return verdict([Validation(None, 0.0, {}, {}, {}, {"x": error})])  # pyright: ignore

    assert said(0.05)[0] == "accurate" and said(0.2)[0] == "usable" and said(0.6)[0] == "poor"
    assert said(0.05, coverage=0.3)[0] == "usable" and "too narrow" in " ".join(
        said(0.05, 1.0, 0.3)[1]
    )
    assert said(0.05, hold=0.04)[0] == "useless" and said(1.2)[0] == "useless"
    assert verdict([])[0] == "unknown"
    # a channel that hardly moves is predicted as well as its noise allows
    assert said(0.6, noise=0.598)[0] == "accurate" and said(1.02, noise=1.0)[0] == "usable"
    assert said(0.6, noise=0.1)[0] == "poor" and said(1.2, noise=1.0)[0] == "useless"
