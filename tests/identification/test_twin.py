"""`cordax twin`: from a log to a fitted machine file, a report and a verdict."""

import json
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import tyro

import cordax
from cordax import Recording, State
from cordax.cli.recorded_names import with_machine_names
from cordax.cli.twin import _held, twin
from cordax.control import RecordedInput
from cordax.identification import ChannelError, Validation
from cordax.identification.twin import Twin, equal_windows, noise_of, window_length
from cordax.io import read_csv, read_machine
from cordax.io.machine_file import example_path
from cordax.io.machine_update import key_is_parameter, number_keys, write_updated
from cordax.systems import Oscillator

CART = """# A cart on a spring.
kind = "oscillator"
name = "cart"
mass = 2.0         # weighed
stiffness = 80.0   # data sheet
damping = 0.3

[run]
dt = 0.02
duration = 2.0
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cart.toml").write_text(CART)
    return tmp_path


def write_log(path, x, t, force):
    """As a data logger does: semicolons, decimal commas, milliseconds, millimetres."""
    rows = [
        f"{1e3 * a:.3f};{1e3 * b:.5f};{c:.6f};on".replace(".", ",")
        for a, b, c in zip(t, x, force, strict=True)
    ]
    path.write_text("\n".join(["Time [ms];X [mm];Force [N];Mode", *rows, ""]))


def call(capsys, *words):
    code = tyro.cli(twin, args=[str(word) for word in words])
    return code, json.loads(capsys.readouterr().out)


def test_a_log_becomes_a_twin_and_a_log_of_something_else_does_not(folder, capsys):
    t = 0.02 * np.arange(1001)
    force = 3.0 * np.sin(2.0 * t) + 2.0 * np.sin(7.1 * t) * (np.sin(0.4 * t) > 0)
    run = cordax.simulate(
        Oscillator(2.0, 50.0, 0.8), State(jnp.array([0.1]), jnp.zeros(1)),
        control=RecordedInput(t, force[:, None]), dt=0.02, duration=20.0, integrator="rk4",
    )  # fmt: skip
    random = np.random.default_rng(0)
    write_log(
        folder / "log.csv", np.asarray(run["x"]) + 1e-3 * random.normal(size=t.size), t, force
    )
    words = folder / "cart.toml", folder / "log.csv", "--output", folder, "--json", "--dt", "0.02"
    code, found = call(capsys, *words)
    assert code == 0 and found["verdict"] == "accurate"
    rows = {row["name"]: row for row in found["parameters"]}
    assert found["unneeded"] == ["mass"]  # it is right in the file
    for name, truth in (("stiffness", 50.0), ("damping", 0.8)):
        low, high = rows[name]["interval_95"]
        assert low - 0.2 * (high - low) < truth < high + 0.2 * (high - low)
        assert (high - low) < 0.05 * truth
    assert 0.5e-3 < found["noise"]["x"] < 2e-3
    machine = read_machine(folder / "twin.toml").experiment.system
    assert np.isclose(machine.stiffness, rows["stiffness"]["estimate"], rtol=1e-8)
    assert "# weighed" in (folder / "twin.toml").read_text()
    page = (folder / "twin.html").read_text()
    assert "Predictions are accurate" in page and page.count("data:image/png") >= 2
    bands = read_csv(folder / "twin_prediction_1.csv")
    inside = (bands.values["x"] > bands.values["low_x"]) & (
        bands.values["x"] < bands.values["high_x"]
    )
    assert np.mean(inside) > 0.85
    with pytest.raises(ValueError, match="already exist"):
        call(capsys, *words)
    code, found = call(capsys, *words, "--overwrite", "--set", "mass=3.0")
    rows = {row["name"]: row for row in found["parameters"]}
    low, high = rows["mass"]["interval_95"]
    assert code == 0 and low < 2.0 < high and high - low < 0.1 and not found["unneeded"]
    walk = np.cumsum(0.01 * random.normal(size=t.size))
    write_log(folder / "log.csv", walk, t, force)
    code, found = call(capsys, *words, "--overwrite")
    assert code == 1 and found["verdict"] in ("poor", "useless") and found["warnings"]
    assert "Predictions are accurate" not in (folder / "twin.html").read_text()


def test_machine_files_are_updated_where_they_have_the_key(folder):
    assert number_keys(folder / "cart.toml") == ["mass", "stiffness", "damping"]
    path, left = write_updated(
        folder / "cart.toml", folder / "new.toml", {"stiffness": 51.25}, note="fitted"
    )
    lines = path.read_text().splitlines()
    assert lines[0] == "# fitted" and "stiffness = 51.25   # data sheet" in lines and left == []
    (folder / "short.toml").write_text(CART.replace("damping = 0.3\n", ""))
    _, left = write_updated(folder / "short.toml", folder / "new.toml", {"damping": 0.77})
    assert left == ["damping"]


def test_columns_by_the_names_of_the_machine():
    machine = Oscillator()
    log = Recording([0.0, 1.0], {"X": [1.0, 2.0], "temp": [1.0, 2.0]}, {"units": "X m"})
    found, lines = with_machine_names("log", log, machine, machine.default_state(), {})
    assert found.names == ("x",) and "X is x" in lines[0] and "temp" in lines[1]
    other, _ = with_machine_names("log", log, machine, machine.default_state(), {"x": "temp"})
    assert other.names == ("x",) and np.array_equal(other.values["x"], [1.0, 2.0])
    wrong = Recording(log.t, log.values, {"units": "X rad"})
    with pytest.raises(ValueError, match="column X: got unit rad, expected m"):
        with_machine_names("log", wrong, machine, machine.default_state(), {})
    with pytest.raises(ValueError, match="expected columns among x, d_x"):
        with_machine_names("log", log.select(["temp"]), machine, machine.default_state(), {})


def test_windows_have_equal_lengths_and_contain_motion():
    t = 0.01 * np.arange(4001)
    random = np.random.default_rng(0)
    x = np.where(t < 20.0, np.sin(5.0 * t), 0.0) + 1e-3 * random.normal(size=t.size)
    log = Recording(t, {"x": x})
    assert np.isclose(window_length(log, ["x"]), 6 * 2 * np.pi / 5.0, rtol=0.1)
    windows = equal_windows(log, ["x"], 5.0)
    assert len({len(w.t) for w in windows}) == 1 and len(windows) == 4
    assert all(w.t[0] < 20.0 for w in windows)
    assert np.isclose(noise_of(windows)["x"], 1e-3, rtol=0.1)


def test_keys_from_which_a_file_derives_more_are_recognised(folder):
    cart = read_machine(folder / "cart.toml").experiment
    assert key_is_parameter(folder / "cart.toml", "stiffness", cart)
    plate = example_path("suspended")  # its inertia follows from mass and box
    experiment = read_machine(plate).experiment
    assert not key_is_parameter(plate, "platform.mass", experiment)
    assert not key_is_parameter(plate, "exits.radius", experiment)  # lengths follow from it


def test_steps_and_smooth_inputs_are_distinguished():
    base = cordax.Experiment(Oscillator())
    t = 0.01 * np.arange(200)
    log = lambda u: [Recording(t, {"force": u})]
    assert _held(base, log(np.floor(t / 0.2)))
    assert not _held(base, log(np.sin(t))) and not _held(base, log(0.0 * t))


def test_estimates_of_a_search_that_did_not_converge_are_called_poor():
    error = ChannelError(0.01, 1.0, 0.01, np.ones(1), 0.0, 0.0, coverage=0.95, hold=1.0, mean=1.0)
    good = Validation(None, 0.0, {}, {}, {}, {"x": error})  # pyright: ignore
    done = SimpleNamespace(succeeded=True, reason="Converged")
    stopped = SimpleNamespace(succeeded=False, reason="Stopped after the allowed number")
    words = [Twin(f, [good], [], [], {}, [], []).verdict() for f in (done, stopped)]  # pyright: ignore
    assert words[0][0] == "accurate"
    assert words[1][0] == "poor" and "Stopped after" in words[1][1][0]
