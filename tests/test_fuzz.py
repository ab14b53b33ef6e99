"""Random bad input is refused by a sentence that names it, and never ends in anything else."""

import math

import pytest

from cordax import Recording
from cordax.statics import workspace
from cordax.systems import ElasticCables, tensegrity_manipulator
from cordax.systems import mechanism as solids
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


WAYS = [[solids.Eyelet(), solids.Eyelet("arm")]]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: solids.Eyelet(math.inf), "body"),
        (lambda: solids.Pulley("a", (0.0, 0.0, 0.0), 0.1, turns={1}), "turns"),
        (lambda: solids.CableSet([[1.0]], None, 1.0), "ways"),
        (lambda: solids.Contact({"arm": solids.Sphere(0.1)}, groups={"a": 1}), "groups"),
        (lambda: solids.Contact({"arm": solids.Sphere(0.1)}, pairs=[1.0, "a"]), "pairs"),
        (lambda: Recording([0.0, 1.0], {"x": [0.0, 1.0]}).select([1]), "names"),
        (lambda: Recording([0.0, 1.0], {"x": [0.0, 1.0]}).resample(0.1, gap=math.nan), "gap"),
        (lambda: workspace.box_grid((0, 0, 0), (1, 1, 1), [1, 2]), "count"),
        (lambda: tensegrity_manipulator(length=[1.0, 2.0]), "length"),
        (lambda: tensegrity_manipulator(density=[]), "density"),
        (
            lambda: solids.CableSet(WAYS, ElasticCables(1e4, 1.0, 1e-5), 1.0, radius=math.nan),
            "radius",
        ),
    ],
)
def test_newer_parts_name_the_argument(call, field):
    with pytest.raises(ValueError, match=rf"^{field}(\[.*\])?: got "):
        call()
