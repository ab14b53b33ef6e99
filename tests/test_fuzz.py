"""Random bad input is refused by a sentence that names it, and never ends in anything else."""

import pytest

from helpers.fuzzing import GOOD_OUTCOMES, Cases, outcome


@pytest.mark.filterwarnings("ignore")
def test_random_bad_input(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cases = Cases(1, tmp_path)
    drawn = [cases.draw() for _ in range(500)]
    found = [(case.label, *outcome(case)) for case in drawn]
    assert [x for x in found if x[1] not in GOOD_OUTCOMES] == []
    # most cases are bad ones
    assert sum(what == "refused" for _, what, _ in found) > 350
