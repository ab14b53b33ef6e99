"""`cordax fit` for machines by name and by file, from one recording or several."""

import json

import numpy as np
import pytest
import tyro

import cordax
from cordax import Fit, Recording
from cordax.cli.fit import _with_initial_state, fit
from cordax.io import example_path, experiment_of
from cordax.mechanics import State
from cordax.systems import Oscillator


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A pushed plate on four cables: its position."""
    folder = tmp_path_factory.mktemp("plate")
    run = cordax.simulate(experiment_of("suspended").replace(duration=1.0, save_every=2))
    run.to_csv(folder / "position.csv", ["position"])
    return folder


def call(*words):
    return tyro.cli(fit, args=[str(word) for word in words])


def test_mass_of_a_plate_described_by_a_file(tables, tmp_path, capsys):
    code = call(
        example_path("suspended"), tables / "position.csv", "--parameters", "platform.mass",
        "--start", "platform.mass=8", "--observe", "position_1,position_2,position_3",
        "--no-figure", "--save", "--output", tmp_path, "--json",
    )  # fmt: skip
    found = json.loads(capsys.readouterr().out)
    assert code == 0 and found["converged"]
    entry = found["parameters"]["platform.mass"]
    assert entry["start"] == 8.0 and entry["unit"] == "kg"
    assert abs(entry["estimate"] / 6.24 - 1) < 1e-6
    again = Fit.load(tmp_path / "fit.npz")
    assert np.isclose(again["platform.mass"], entry["estimate"])


MINE = """
from cordax.systems import Oscillator


class Cart(Oscillator):
    pass
"""
CART = """
kind = "cart_of_mine:Cart"
mass = 1.0
stiffness = 100.0
damping = 0.5

[start]
x = 0.1

[run]
dt = 0.01
duration = 2.0
"""


def test_a_machine_of_ones_own_with_the_integrator_it_is_run_with(tmp_path, capsys):
    """Its own is of fourth order: the exact solution, with noise, is met without a bias."""
    (tmp_path / "cart_of_mine.py").write_text(MINE)
    (tmp_path / "cart.toml").write_text(CART)
    t = 0.01 * np.arange(201)
    w = np.sqrt(100.0 - 0.25**2)
    x = 0.1 * np.exp(-0.25 * t) * (np.cos(w * t) + 0.25 / w * np.sin(w * t))
    x += 1e-4 * np.random.default_rng(0).normal(size=t.size)
    table = np.c_[
        1e3 * t, 1e3 * x
    ]  # units in the headers, and JSON that nothing else is printed to
    np.savetxt(tmp_path / "x.csv", table, delimiter=";", header="t [ms];x [mm]", comments="")
    words = [tmp_path / "cart.toml", tmp_path / "x.csv", "--parameters", "stiffness,damping"]
    words += ["--set", "stiffness=110", "--noise", "1e-4", "--no-figure", "--json"]
    with pytest.raises(ValueError, match="--allow-code"):
        call(*words)
    assert call(*words, "--allow-code") == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["parameters"]["stiffness"]["interval_95"]
    assert found["parameters"]["stiffness"]["start"] == 110.0
    assert low < 100.0 < high and high - low < 0.05 and not found["warnings"]
    call(*words, "--allow-code", "--integrator", "rosenbrock_2")
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert any("stiffness depends on the time step" in words for words in warnings)


def test_bad_words_are_named(tables):
    table = tables / "position.csv"
    for words, message in (
        (
            ["plate", table, "--parameters", "platform.mass"],
            "machine.*a .toml, .npz, .xml or .urdf file, or one of",
        ),
        (["suspended", table, "--parameters", "platform.mass"], "columns among.*--observe"),
        (["suspended", table, "--parameters", "mass", "--observe", "position_1"], "'mass'.*one of"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*words)


def test_initial_state_of_a_measured_recording():
    """The first sample replaces the machine's initial state (x = 0) where it differs by more than
    the scatter of the samples (0.01 m), unless the start is set or a coordinate is missing."""
    base = cordax.Experiment(Oscillator(), State(np.zeros(1), np.zeros(1)))
    noise = 0.01 * np.random.default_rng(0).standard_normal(100)
    record = lambda name, offset: Recording(0.1 * np.arange(100), {name: offset + noise})
    start = lambda data, is_set=False: float(_with_initial_state(base, data, is_set)[0].start.q[0])
    assert start(record("x", 0.0)) == 0.0
    assert start(record("x", 0.2)) == 0.2 + noise[0]
    assert start(record("x", 0.2), True) == 0.0
    assert start(record("y", 0.2)) == 0.0
