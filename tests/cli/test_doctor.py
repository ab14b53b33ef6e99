"""`cordax doctor`, and words that no command knows."""

import json

import pytest

from cordax import __version__
from cordax.cli import main


def test_the_doctor_says_what_there_is(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cordax"] == __version__ and facts["precision"] == "float64"
    assert facts["loops hoisted"] is True and "cpu" in facts["devices"].lower()
    assert main(["doctor"]) == 0
    assert "compile cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nek"], "the nearest is neck"),
        (["reproduce", "rods"], "did you mean 'rod'?"),
        (["sweeep"], "did you mean 'sweep'?"),
        (["swim"], "unknown command 'swim'"),
    ],
)
def test_the_nearest_word_is_named(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err
