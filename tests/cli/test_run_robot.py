"""Robots from the command line: summaries that say what happened, files, exit codes."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import cordax
from cordax.cli import main
from cordax.cli.run_robot import summary
from cordax.integrators import Events
from cordax.io import example_path, read_csv, read_robot
from cordax.systems.cable_robot.summary import summary as robot_summary


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """The user's cache is left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def robot_file(tmp_path):
    path = tmp_path / "my_robot.toml"
    path.write_text(example_path("suspended").read_text().replace("10.0", "0.6"))
    return path


def test_a_users_file(robot_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(robot_file), "--csv", "--speed", "3", "--output", str(out)]) == 0
    text = capsys.readouterr().out
    for expected in (
        "CableRobot 'suspended plate': 4 cables, PulleyExit, ProgrammedLengths, RigidCables",
        "rk4, 60 steps of 10 ms, 0.6 s in all",
        "pull throughout",
        "constraints violated",
        "to compile",
    ):
        assert expected in text
    named = {line.removeprefix("wrote ") for line in text.splitlines() if line.startswith("wrote")}
    assert named == {str(p) for p in out.iterdir()}
    stems = {p.name for p in out.iterdir()}
    assert stems == {f"my_robot{end}" for end in (".npz", ".csv", ".png", "_motion.png", ".gif")}
    run = cordax.Trajectory.load(out / "my_robot.npz", read_robot(robot_file).robot)
    table = read_csv(out / "my_robot.csv")
    np.testing.assert_array_equal(table.values["tension_3"], run["tension"][:, 2])
    with Image.open(out / "my_robot.gif") as film:
        assert film.n_frames == 6  # 0.6 s at triple speed and 25 frames a second, ends included
        still = np.asarray(film.convert("RGB"), dtype=int)
        film.seek(5)
        assert np.abs(still - np.asarray(film.convert("RGB"), dtype=int)).max() > 50


def _run(tension, pushes=np.inf, events=None):
    k = len(tension)
    still = np.zeros((k, 3))
    outputs = {"tension": np.asarray(tension), "position": still, "euler": still}
    return SimpleNamespace(
        t=0.1 * np.arange(k),
        outputs=outputs,
        warnings={"cable_pushes": pushes},
        events=events,
        drift=lambda: np.array([1e-12]),
        _known_system=lambda what: SimpleNamespace(summary=robot_summary),
    )


def test_summary_of_pushes():
    lines = summary(_run([[1.0, 2.0], [3.0, -4.0], [1.0, 1.0]], pushes=0.1))
    assert lines["tension"] == "-4.000 to 3.000 N, least in cable 2 at t = 0.1 s"
    assert "push from t = 0.1 s: what follows is unphysical" in lines["rigid cables"]


def test_summary_of_slack():
    events = Events(
        jnp.array([0.25, 0.3, jnp.inf]),
        jnp.array([2, 2, 0]),
        jnp.array([-1, 1, 0]),
        jnp.array([0.0, 0.5166, 0.0]),
    )
    lines = summary(_run([[1.0, 0.0], [1.0, 0.0]], events=events))
    assert lines["cables let go"] == "1 times"
    assert lines["  event 1"] == "t = 0.25000 s: cable 3 lets go"
    assert lines["  event 2"] == "t = 0.30000 s: cable 3 is caught, 0.5166 N s"
    assert "  event 3" not in lines


def test_bad_input_is_a_message_and_code_2(robot_file, tmp_path, capsys):
    robot_file.write_text(robot_file.read_text().replace("mass = 6.24", "mass = 'heavy'"))
    assert main(["run", str(robot_file)]) == 2
    expected = f"cordax: {robot_file}, platform.mass: got heavy, expected a number"
    assert expected in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err
    assert main(["run", "cable-robot", "--integrator", "magic"]) == 2
    assert "integrator: got 'magic'" in capsys.readouterr().err
    assert main(["run", "cable-robot", "--duration", "0.015"]) == 2
    assert "a whole number of steps" in capsys.readouterr().err


def test_overview_names_robots(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in ("run cable-robot", "run robot.toml", "reproduce cable-robot"):
        assert f"cordax {name}" in overview
