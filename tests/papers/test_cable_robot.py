"""The study of the cable robot: verdicts that follow the numbers, tables and JSON."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from cordax.integrators import Events
from cordax.papers.cable_robot.claims import FLIP, SECONDS, TABLE_3, TABLE_4, judge
from cordax.papers.cable_robot.experiments import (
    Drift,
    Joint,
    Overturned,
    Picked,
    Study,
    flip_time,
    rms,
)
from cordax.papers.cable_robot.tables import as_data, as_text
from cordax.papers.timing import Timing


class Run(dict):
    """Outputs by name, as a trajectory has them."""

    events = None

    @property
    def t(self):
        return 0.01 * np.arange(len(next(iter(self.values()))))


def _offset(position, swivel=(0.0,) * 4):
    return Run(position=np.tile(position, (5, 1)), swivel=np.tile(swivel, (5, 1)))


def _drift(phi=1e-12):
    return Drift(1e-4, 10.0, phi, 1e-9, 1e-13, 1e-6, 1e-11, np.full(5, phi))


def _picked(sideways, after=204.085):
    return Picked(np.full(4, 185.533), np.full(4, after), 1e-4, sideways, 1e-7)


def _timings(*, jitter=1.0, **seconds):
    """Three rounds; in the second the pulleys take `jitter` times as long."""
    times = {name: Timing((x, x, x)) for name, x in (SECONDS | seconds).items()}
    x = times["Model 2"].seconds
    return times | {"Model 2": Timing((x, jitter * x, x))}


def _study(**changes) -> Study:
    """Numbers like those of the paper's best case."""
    zero = _offset((0.0, 0.0, 0.0))
    loose = _offset((0.0, 0.0, 0.0))
    loose.events = Events(
        jnp.array([7.66, 7.86, jnp.inf]),
        jnp.array([0, 0, 0]),
        jnp.array([-1, 1, 0]),
        jnp.array([0.0, 0.53, 0.0]),
    )
    near = _offset((1e-6, 1e-5, 1e-6), TABLE_4[2])
    numbers = {
        "impulse": {1: _offset(TABLE_3[1]), 2: zero, 3: near},
        "printed": {1: _offset(TABLE_3[1]), 2: zero},
        "printed_moment": 0.0,
        "frequencies": {1: np.array([1.37, 2.7]), 2: np.array([1.3, 2.5]), 3: np.array([1.3, 2.5])},
        "drift": {"Baumgarte": _drift(), "bare index 1": _drift()},
        "pick": zero,
        "pick_off": zero,
        "picked": _picked(1e-2, 185.533 * 1.1),
        "picked_off": _picked(1e-2),
        "joint": Joint(0, 0, 0.0, 0.0),
        "overturn": zero,
        "unilateral": loose,
        "overturned": Overturned(7.59, np.inf, 1.0, 3.0, 20.0),
        "overturned_penalty": _drift(),
        "flips": {"other": 7.61},
        "norm_factor": 1.0,
        "timings": _timings(),
    }
    return Study(**(numbers | changes))


def _verdicts(study: Study) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(study)}


def test_a_study_that_agrees_with_the_paper():
    """All but what no number of ours can show: Table 4 and agreement with another program."""
    found = _verdicts(_study())
    others = {claim: v for claim, v in found.items() if v != "reproduces"}
    assert sorted(others.values()) == ["cannot be judged", "in part"]
    assert any("ADAMS to" in claim for claim in others) and any("Table 4" in c for c in others)


@pytest.mark.parametrize(
    ("claim", "change", "verdict"),
    [
        ("Appendix A", {"norm_factor": 3.61}, "does not reproduce"),
        ("eq. (20)", {"joint": Joint(3, 0, 3.7, 1e-5)}, "does not reproduce"),
        ("tensions step up", {"picked": _picked(1e-2, 186.0)}, "does not reproduce"),
        ("oscillates", {"picked": _picked(1e-14, 204.086)}, "only with these choices"),
        (
            "oscillates",
            {"picked": _picked(1e-14), "picked_off": _picked(1e-14)},
            "does not reproduce",
        ),
        ("section 4.3 starts", {"printed_moment": 2.9}, "does not reproduce"),
        (
            "Table 3",
            {"impulse": _study().impulse | {1: _offset((2.2e-3, 2.2e-2, 3.9e-4))}},
            "does not reproduce",
        ),
        (
            "hardly matters",
            {"impulse": _study().impulse | {3: _offset((0.0, 2e-3, 0.0))}},
            "does not reproduce",
        ),
        (
            "Table 4",
            {"impulse": _study().impulse | {3: _offset((0.0,) * 3, (1e-4,) * 4)}},
            "does not reproduce",
        ),
        (
            "frequencies",
            {"frequencies": {m: np.array([1.3, 2.5]) for m in (1, 2, 3)}},
            "does not reproduce",
        ),
        (
            "do not drift",
            {"drift": {"bare index 1": _drift(), "other": _drift(1e-5)}},
            "does not reproduce",
        ),
        (
            "points as exits take",
            {"timings": _timings(**{"Model 1": 0.5, "Model 2": 0.8})},
            "does not reproduce",
        ),
        ("points as exits take", {"timings": _timings(jitter=1.5)}, "cannot be judged"),
        ("singularity of Euler", {"flips": {"other": 8.0}}, "only with these choices"),
        (
            "singularity of Euler",
            {"overturned": Overturned(np.inf, np.inf, 1.0, 3.0, 20.0)},
            "does not reproduce",
        ),
        (
            "overturns on its cables",
            {"overturned": Overturned(7.59, 7.66, -46.0, 7.7, 115.0)},
            "in part",
        ),
    ],
)
def test_verdicts_follow_the_numbers(claim, change, verdict):
    found = {name: v for name, v in _verdicts(_study(**change)).items() if claim in name}
    assert list(found.values()) == [verdict]


def test_tables_and_json_hold_the_numbers():
    study = _study(overturned=Overturned(7.5901, 7.6613, -46.1, 7.685, 115.0))
    claims = judge(study)
    text = as_text(study, claims)
    for expected in ("Table 3", "Table 4", "7.5901", f"{FLIP}", "141.2", "185.533", "2.20"):
        assert expected in text
    data = json.loads(json.dumps(as_data(study, claims), allow_nan=False))
    assert data["table_3_m"]["ours"]["1"] == pytest.approx(TABLE_3[1])
    assert data["unilateral_events"][1] == {
        "time_s": 7.86,
        "cable": 1,
        "kind": 1,
        "impulse_Ns": 0.53,
    }
    assert data["seconds"]["pick"]["paper"] == 19.5
    assert [c["verdict"] for c in data["claims"]] == [c.verdict for c in claims]
    unbroken = _study(overturned=Overturned(7.59, np.inf, 1.0, 3.0, 20.0))
    assert as_data(unbroken, claims)["overturning"]["pushes"] is None  # infinity has no JSON


def test_flip_between_two_instants():
    """Turning about y at a constant rate: upright after a quarter turn."""
    t = 0.01 * np.arange(50)
    half = 0.5 * (1.0 + 2.0 * t)
    zero = np.zeros_like(t)
    quaternion = np.stack([np.cos(half), zero, np.sin(half), zero], axis=1)
    run = Run(quaternion=jnp.asarray(quaternion))
    assert flip_time(run) == pytest.approx(0.5 * (np.pi / 2 - 1.0), abs=1e-6)
    assert flip_time(Run(quaternion=jnp.asarray(quaternion[:5]))) == np.inf


def test_rms_of_components():
    a, b = (
        Run(position=np.zeros((4, 2))),
        Run(position=np.array([[1, 0], [-1, 0], [1, 2], [1, 0.0]])),
    )
    np.testing.assert_allclose(rms(a, b), [1.0, 1.0])
