"""`cordax sweep`: files, resumption, bad input."""

import csv
import json

import pytest

from cordax.cli import main


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return [
        *("sweep", "neck", "--vary", "tendon.stiffness=1e4:1e6:3:log", "--duration", "0.04"),
        *("--measure", "largest tension", "--output", str(folder), "--no-progress"),
    ], folder


def test_a_sweep_writes_a_table_and_goes_on(words, capsys):
    call, folder = words
    assert main(call) == 0
    assert "3 variants: 3 finished, 0 of them failed" in capsys.readouterr().out
    with (folder / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["tendon.stiffness"]) for row in rows] == pytest.approx([1e4, 1e5, 1e6])
    assert all(49 < float(row["largest tension_1"]) < 60 for row in rows)
    shard = folder / "shard-000000.npz"
    before = shard.stat().st_mtime_ns
    assert main([*call, "--json", "--worst", "largest tension"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["succeeded"] == 3 and facts["worst"][0]["result"] == "successful"
    assert shard.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["sweep", "neck"], "at least one --vary"),
        (["sweep", "nek", "--vary", "a=1:2:3"], "the nearest is neck"),
        (["sweep", "neck", "--vary", "tendon.stifness=1:2:3"], "stiffness, damping"),
        (["sweep", "neck", "--vary", "tendon.stiffness=1:2"], "count"),
        (["sweep", "neck", "--vary", "a=1:2:3", "--vary", "a=4"], "each name once"),
        (["sweep", "missing.toml", "--vary", "a=1:2:3"], "missing.toml"),
    ],
)
def test_bad_input_is_said_in_a_sentence(change, said, tmp_path, capsys):
    assert main([*change, "--output", str(tmp_path)]) == 2
    out = capsys.readouterr()
    assert said in out.err and "Traceback" not in out.err


def test_another_sweep_is_not_replaced(words, capsys):
    call, _ = words
    assert main([*call, "--measure", "final alpha_1"]) == 2
    assert "differs in measures" in capsys.readouterr().err
