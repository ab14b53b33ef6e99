"""The command line, called in-process: output, files and exit codes."""

import numpy as np
import pytest

import cordax
from cordax.cli import main
from cordax.io import read_csv
from cordax.systems import Neck

SHORT = ["--joints", "1", "--duration", "0.1", "--figure", "--film", "gif", "--csv"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """The user's cache is left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def test_run_writes_what_it_says(tmp_path, capsys):
    assert main(["run", "neck", *SHORT, "--output", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for expected in ("1 joints, elastic tendons", "50 steps of 2 ms", "largest tracking error"):
        assert expected in text
    assert "to run" in text and "to compile" in text
    named = {line.removeprefix("wrote ") for line in text.splitlines() if line.startswith("wrote")}
    assert named == {str(p) for p in tmp_path.iterdir()}
    assert {p.suffix for p in tmp_path.iterdir()} == {".png", ".gif", ".npz", ".csv"}
    run = cordax.Trajectory.load(tmp_path / "neck.npz", Neck.default(1))
    table = read_csv(tmp_path / "neck.csv")
    np.testing.assert_array_equal(table.values["alpha_1"], run["alpha_1"])
    np.testing.assert_array_equal(table.values["tension_2"], run["tension"][:, 1])


def test_compression_is_reported(tmp_path, capsys):
    """A weight far beyond the prestress makes a tendon push."""
    words = ["--no-control", "--gravity=-600", "--no-figure", "--film", "none", "--no-npz"]
    words += ["--joints", "1", "--duration", "0.1", "--output", str(tmp_path)]
    assert main(["run", "neck", *words]) == 0
    text = capsys.readouterr().out
    assert "tracking error" not in text
    assert "tendon in compression from t =" in text
    assert list(tmp_path.iterdir()) == []


def test_divergence_is_a_message_and_code_1(tmp_path, capsys):
    words = ["--joints", "1", "--integrator", "explicit_euler", "--dt", "0.02", "--duration", "1"]
    assert main(["run", "neck", *words, "--output", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "Neck with ExplicitEuler at dt = 0.02 s failed at t =" in captured.err
    assert "smaller dt" in captured.err and "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--joints", "0"], "joints: got 0, expected a whole number >= 1"),
        (["--dt", "-1"], "dt: got -1"),
        (["--integrator", "magic"], "integrator: got 'magic', expected one of explicit_euler"),
        (["--integrator", "suzuki_4"], "Suzuki4 integrates machines"),
        (["--stiffness", "-5"], "tendon.stiffness: got -5.0, expected finite values > 0"),
    ],
)
def test_bad_input_is_a_message_and_code_2(words, message, capsys):
    assert main(["run", "neck", "--joints", "1", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_words_that_are_no_command(capsys):
    assert main(["swim"]) == 2
    assert "there is no 'swim'" in capsys.readouterr().err
    assert main(["run"]) == 2
    assert "cordax run neck" in capsys.readouterr().err
    assert main([]) == 2
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in ("run neck", "reproduce neck", "fit", "list", "--version"):
        assert f"cordax {name}" in overview
    with pytest.raises(SystemExit) as stopped:
        main(["run", "neck", "--tendons", "woollen"])
    assert stopped.value.code == 2


def test_version_and_list(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"cordax {cordax.__version__}"
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in ("Neck", "Pendulum", "rosenbrock_2", "linearly_implicit_euler"):
        assert name in text


def test_existing_files_are_not_replaced_without_a_word(tmp_path, capsys, monkeypatch):
    """Before anything is simulated, which here would be an error."""
    for module in ("run", "run_robot", "run_rod"):
        monkeypatch.setattr(f"cordax.cli.{module}.timed", None)
    monkeypatch.setattr("cordax.cli.fit.read_csv", None)
    written = {
        "neck.csv": ["run", "neck", "--csv"],
        "suspended_motion.png": ["run", "cable-robot"],
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
        assert f"{folder / name} exist already" in said and "--overwrite" in said
        assert (folder / name).read_text() == "mine"


def test_overwriting_on_request(tmp_path, capsys):
    words = ["run", "neck", "--joints", "1", "--duration", "0.01", "--no-figure", "--film", "none"]
    (tmp_path / "neck.npz").write_text("mine")
    assert main([*words, "--overwrite", "--output", str(tmp_path)]) == 0
    assert cordax.Trajectory.load(tmp_path / "neck.npz").system.n_joints == 1  # pyright: ignore


def test_a_film_that_cannot_be_written_is_said_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cordax.cli.outputs.find_spec", lambda name: None)
    monkeypatch.setattr("cordax.cli.run.timed", None)
    assert main(["run", "neck", "--film", "mp4", "--output", str(tmp_path)]) == 2
    assert "film: got mp4, expected gif: MP4 films need imageio-ffmpeg" in capsys.readouterr().err
