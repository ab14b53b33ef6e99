"""`cordax run`, called in-process: output, files and exit codes."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import cordax
from cordax.cli import main
from cordax.integrators import Events
from cordax.io import example_path, read_csv, read_machine

SHORT = ["--duration", "0.1", "--save-every", "1"]
FILES = ["--no-figure", "--film", "none", "--no-npz"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """The user's cache is left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def robot_file(tmp_path):
    path = tmp_path / "my_robot.toml"
    path.write_text(example_path("suspended").read_text().replace("10.0", "0.6"))
    return path


def test_run_writes_what_it_says(tmp_path, capsys):
    words = [*SHORT, "--csv", "--set", "tendon.damping=90", "--output", str(tmp_path)]
    assert main(["run", "neck", *words]) == 0
    text = capsys.readouterr().out
    for expected in ("Neck 'neck': 7 coordinates", "50 steps of 2 ms", "largest tracking error"):
        assert expected in text
    assert "to run" in text and "to compile" in text
    named = {line.removeprefix("wrote ") for line in text.splitlines() if line.startswith("wrote")}
    assert named == {str(p) for p in tmp_path.iterdir()}
    ends = (".png", "_motion.png", ".gif", ".npz", ".csv")
    assert {p.name for p in tmp_path.iterdir()} == {f"neck{end}" for end in ends}
    run = cordax.Trajectory.load(tmp_path / "neck.npz")
    assert float(run.system.tendon.damping) == 90.0  # pyright: ignore
    table = read_csv(tmp_path / "neck.csv")
    np.testing.assert_array_equal(table.values["alpha_1"], run["alpha_1"])
    np.testing.assert_array_equal(table.values["tension_2"], run["tension"][:, 1])
    assert table.about["integrator"] == "linearly_implicit_euler"


def test_a_machine_without_a_picture(tmp_path, capsys):
    path = tmp_path / "spring.toml"
    path.write_text('kind = "oscillator"\n\n[start]\nx = 0.1\n\n[run]\ndt = 0.01\nduration = 0.2\n')
    out = tmp_path / "out"
    assert main(["run", str(path), "--output", str(out)]) == 0
    assert "no picture and no film" in capsys.readouterr().out
    assert {p.name for p in out.iterdir()} == {"spring.npz", "spring_motion.png"}


def test_a_users_file(robot_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["run", str(robot_file), "--speed", "3", "--output", str(out)]) == 0
    text = capsys.readouterr().out
    for expected in (
        "CableRobot 'suspended plate': 12 coordinates, 10 constraints",
        "rk4, 60 steps of 10 ms, total 0.6 s",
        "pull throughout",
        "constraint violation",
    ):
        assert expected in text
    run = cordax.Trajectory.load(out / "my_robot.npz", read_machine(robot_file).experiment.system)
    with Image.open(out / "my_robot.gif") as film:
        assert film.n_frames == 6  # 0.6 s at triple speed and 25 frames a second, ends included
        still = np.asarray(film.convert("RGB"), dtype=int)
        film.seek(5)
        assert np.abs(still - np.asarray(film.convert("RGB"), dtype=int)).max() > 50
    # what was saved runs again as it was, from its own start and under its own inputs
    again = ["run", str(out / "my_robot.npz"), *FILES, "--json", "--output", str(tmp_path)]
    assert main(again) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == "cable_robot" and said["files"] == []
    assert "0.52" in str(run.t[-9]) and "mm along x" in said["facts"]["largest displacement"]


def test_compression_is_reported(tmp_path, capsys):
    """A weight far beyond the prestress makes a tendon push."""
    words = [
        "--set",
        "start={kind='at',alpha=[0.6,-0.8,1.0],tension=[20.0,20.0,20.0,20.0]}",
        "--set",
        "gravity=-600",
    ]
    words += ["--set", "control=[-0.016,-0.016,-0.016,-0.016]"]
    assert main(["run", "neck", *words, *SHORT, *FILES, "--output", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "tracking error" not in text
    assert "tendon in compression from t =" in text
    assert list(tmp_path.iterdir()) == []


def test_divergence_is_a_message_and_code_1(tmp_path, capsys):
    words = ["--integrator", "explicit_euler", "--dt", "0.02", "--duration", "1"]
    words += ["--save-every", "1", "--output", str(tmp_path)]
    assert main(["run", "neck", *words]) == 1
    captured = capsys.readouterr()
    assert "Neck with ExplicitEuler at dt = 0.02 s failed at t =" in captured.err
    assert "smaller dt" in captured.err and "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dt", "-1"], "dt: got -1"),
        (["--duration", "0.015"], "a whole number of steps"),
        (["--integrator", "magic"], "integrator: got 'magic', expected one of explicit_euler"),
        (["--integrator", "suzuki_4"], "Suzuki4 integrates machines"),
        (["--set", "tendon.stiffness=-5"], "neck.toml:21, tendon.stiffness: got -5.0, expected fi"),
        (["--set", "tendon.stifness=5"], "tendon.stifness: got an unknown key (= 5), expected"),
        (["--set", "tendon"], "set: got 'tendon', expected key=value"),
    ],
)
def test_bad_input_is_a_message_and_code_2(words, message, tmp_path, capsys):
    assert main(["run", "neck", *words, "--output", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_bad_files_are_a_message_and_code_2(robot_file, tmp_path, capsys):
    robot_file.write_text(robot_file.read_text().replace("mass = 6.24", "mass = 'heavy'"))
    assert main(["run", str(robot_file)]) == 2
    assert (
        f"cordax run: {robot_file}:8, platform.mass: got heavy, expected" in capsys.readouterr().err
    )
    assert main(["run", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.npz")]) == 2
    assert "none.npz: no such file" in capsys.readouterr().err
    assert main(["run", "nek"]) == 2
    assert "machine: got 'nek', expected" in (said := capsys.readouterr().err)
    assert "the nearest is neck" in said


def test_words_that_are_no_command(capsys):
    assert main(["swim"]) == 2
    assert "unknown command 'swim'" in capsys.readouterr().err
    assert main([]) == 2
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in ("run", "new", "reproduce", "fit", "list", "--version"):
        assert f"cordax {name}" in overview
    for words in (["run"], ["run", "neck", "--film", "opera"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2


def test_version_and_list(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"cordax {cordax.__version__}"
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in ("neck", "pendulum", "rosenbrock_2", "linearly_implicit_euler", "suspended"):
        assert name in text


def test_existing_files_are_not_replaced_without_a_word(tmp_path, capsys, monkeypatch):
    """Before anything is simulated, which here would be an error."""
    monkeypatch.setattr("cordax.cli.run.timed", None)
    monkeypatch.setattr("cordax.cli.fit.read_recording", None)
    written = {
        "neck.csv": ["run", "neck", "--csv"],
        "suspended_motion.png": ["run", "suspended"],
        "rod.gif": ["run", "rod"],
        "fit.png": ["fit", "neck", "recording.csv", "--parameters", "gravity"],
        "rod_forced.gif": ["reproduce", "rod"],
    }
    for name, words in written.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("mine")
        assert main([*words, "--output", str(folder)]) == 2
        said = capsys.readouterr().err
        assert f"{folder / name} already exists" in said and "--overwrite" in said
        assert (folder / name).read_text() == "mine"


def test_overwriting_on_request(tmp_path, capsys):
    words = ["run", "neck", "--duration", "0.1", "--save-every", "1", "--no-figure"]
    (tmp_path / "neck.npz").write_text("mine")
    assert main([*words, "--film", "none", "--overwrite", "--output", str(tmp_path)]) == 0
    assert cordax.Trajectory.load(tmp_path / "neck.npz").system.n_joints == 3  # pyright: ignore


def test_a_film_that_cannot_be_written_is_said_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cordax.cli.outputs.find_spec", lambda name: None)
    monkeypatch.setattr("cordax.cli.run.timed", None)
    assert main(["run", "neck", "--film", "mp4", "--output", str(tmp_path)]) == 2
    assert "film: got mp4, expected gif: MP4 films need imageio-ffmpeg" in capsys.readouterr().err


def test_events_are_told():
    from types import SimpleNamespace

    from cordax.cli.summary import _events

    events = Events(
        jnp.array([0.25, 0.3, jnp.inf]),
        jnp.array([2, 2, 0]),
        jnp.array([-1, 1, 0]),
        jnp.array([0.0, 0.5166, 0.0]),
    )
    lines = _events(SimpleNamespace(events=events))  # pyright: ignore
    assert lines["cables went slack"] == "1 times"
    assert lines["  event 1"] == "t = 0.25000 s: cable 3 slackens"
    assert lines["  event 2"] == "t = 0.30000 s: cable 3 tightens, impulse 0.5166 N s"
    assert "  event 3" not in lines
