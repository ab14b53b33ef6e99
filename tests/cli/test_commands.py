"""Every command: good input ends with 0, bad with 2 and a sentence. In processes of their own; bad
input in one that is given all of it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cordax.cli import main

#: as a user has it
OWN = {"JAX_PLATFORMS": "cpu", "CORDAX_PROGRAMS": "1"}
PENDULUM = """
kind = "pendulum"
length = 0.5

[start]
angle = 0.3

[run]
duration = 0.1
dt = 0.01
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands")
    (path / "pendulum.toml").write_text(PENDULUM)
    t = np.linspace(0.0, 0.4, 41)
    swing = 0.3 * np.cos(np.sqrt(9.81 / 0.5) * t)  # of small swings
    np.savetxt(path / "swing.csv", np.c_[t, swing], delimiter=",", header="time,angle", comments="")
    return path


def own(folder):
    return os.environ | OWN | {"XDG_CACHE_HOME": str(folder / "cache")}


def cordax(folder, *words, timeout=300):
    """Exit code, output and errors of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "cordax", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=own(folder),
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


GOOD = {
    "list": (["list", "--json"], "machines"),
    "new": (["new", "tower-crane"], 'kind = "mechanism"'),
    "run": (["run", "pendulum.toml", "--film", "none", "--no-figure", "--csv"], "wrote"),
    "sweep": (
        ["sweep", "pendulum.toml", "--vary", "length=0.4:0.6:3", "--measure", "largest angle"],
        "3 variants",
    ),
    "optimise": (
        ["optimise", "pendulum.toml", "--change", "length=0.2:0.9", "--minimise", "final angle"],
        "optimum",
    ),
    "fit": (
        ["fit", "pendulum.toml", "swing.csv", "--parameters", "length", "--no-figure"],
        "length",
    ),
    "bench": (["bench", "pendulum.toml", "--repeat", "1", "--json"], "us_per_step"),
    "doctor": (["doctor", "--json"], "loops hoisted"),
}
BAD = {
    "nothing": ([], "usage"),
    "no command": (["swim"], "unknown command 'swim'"),
    "list": (["list", "--jsn"], "--jsn"),
    "new": (["new", "nek"], "the nearest is neck"),
    "run": (["run", "nek"], "the nearest is neck"),
    "run key": (
        ["run", "pendulum.toml", "--set", "lenght=1", "--overwrite"],
        "the nearest is length",
    ),
    "reproduce": (
        ["reproduce", "nek"],
        "cordax reproduce: unknown study 'nek'; did you mean 'neck'?",
    ),
    "fit": (["fit", "pendulum.toml", "none.csv", "--parameters", "length"], "none.csv"),
    "sweep": (["sweep", "pendulum.toml", "--vary", "mas=1:2:3"], "mas"),
    "optimise": (
        ["optimise", "pendulum.toml", "--change", "length", "--minimise", "angle", "--overwrite"],
        "measure: got 'angle', expected 'KIND NAME'",
    ),
    "reproduce into a file": (
        ["reproduce", "neck", "--output", "swing.csv"],
        "swing.csv is a file",
    ),
    "run into a file": (["run", "pendulum.toml", "--output", "swing.csv"], "swing.csv is a file"),
    "film that stands": (["run", "pendulum.toml", "--speed", "0"], "speed: got 0.0"),
    "view": (["view", "none.npz"], "none.npz"),
    "view at no port": (["view", "pendulum.toml", "--port", "-5"], "port: got -5"),
    "no file": (["run", "none.toml"], "none.toml: No such file"),
    "bench": (["bench", "pendulum.toml", "--repeat", "0"], "repeat: got 0"),
    "doctor": (["doctor", "--loud"], "--loud"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_input(name, folder):
    words, said = GOOD[name]
    code, out, err = cordax(folder, *words)
    assert code == 0, err
    assert said in out
    if "--json" in words:
        json.loads(out)


def test_a_paper_is_reproduced(folder):
    """Takes longer than all others together."""
    words = ["reproduce", "neck", "--output", "studied", "--json"]
    code, out, err = cordax(folder, *words, timeout=900)
    assert code == 0, err
    study = json.loads(out)
    verdicts = {claim["verdict"] for claim in study["claims"]}
    assert {"reproduces", "only with these choices", "does not reproduce"} <= verdicts
    assert len(study["files"]) > 5
    assert all((folder / name).stat().st_size > 10_000 for name in study["files"])
    code, out, err = cordax(folder, *words)
    assert code == 2 and "already exist" in err


#: runs the commands that it is given, and tells how each has ended
SEVERAL = """
import contextlib, io, json, sys
from cordax.cli import main

ends = {}
for name, words in json.loads(sys.argv[1]).items():
    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    ends[name] = code, said.getvalue()
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def ends(folder):
    words = {name: words for name, (words, _) in BAD.items()}
    script = [sys.executable, "-c", SEVERAL, json.dumps(words)]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, env=own(folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, ends):
    code, said = ends[name]
    assert code == 2 and BAD[name][1] in said


@pytest.mark.parametrize("name", ["nothing", "run key"])
def test_bad_input_to_a_process(name, folder):
    words, said = BAD[name]
    code, out, err = cordax(folder, *words)
    assert code == 2 and said in err + out


@pytest.mark.parametrize(
    "name", ["run", "view", "sweep", "optimise", "new", "bench", "fit", "reproduce"]
)
def test_help_teaches_by_example(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    assert f"cordax {name} " in capsys.readouterr().out.partition("usage")[2].partition("\n")[2]


def test_interrupted_in_a_word(folder):
    program = (
        "import cordax.cli as cli\n"
        "def stop(words):\n    raise KeyboardInterrupt\n"
        "cli._main = stop\nraise SystemExit(cli.main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "cordax: interrupted\n")


def test_nobody_reads_on(folder):
    """As of `cordax list | head -1`: no words, the code of shells."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "cordax", "list"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="a folder that nobody can write to")
def test_a_folder_that_cannot_be_written_is_said_before_anything_is_computed(capsys):
    for words in (["reproduce", "neck"], ["run", "neck"]):
        assert main([*words, "--output", "/proc/nowhere"]) == 2
        assert "which cannot be written" in capsys.readouterr().err
