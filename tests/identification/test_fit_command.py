"""`cordax fit` for machines by name and by file, from one recording or several."""

import json

import numpy as np
import pytest
import tyro

import cordax
from cordax import Fit
from cordax.cli.fit import fit
from cordax.cli.machines import experiment_of
from cordax.io import example_path


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


def test_bad_words_are_named(tables):
    table = tables / "position.csv"
    for words, message in (
        (
            ["plate", table, "--parameters", "platform.mass"],
            "machine.*a .toml or .npz file, or one of",
        ),
        (["suspended", table, "--parameters", "platform.mass"], "columns among.*--observe"),
        (["suspended", table, "--parameters", "mass", "--observe", "position_1"], "'mass'.*one of"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*words)
