"""The study of the neck: runs, verdicts that follow the numbers, tables and JSON."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import cordax
from cordax import Dynamics, Minimal
from cordax.integrators import BY_NAME
from cordax.papers.neck import figures
from cordax.papers.neck.claims import judge
from cordax.papers.neck.experiments import Convergence, Limits, Study, Tried, order
from cordax.papers.neck.limits import Predicted, with_choices
from cordax.papers.neck.march import difference, march
from cordax.papers.neck.setup import controlled
from cordax.papers.neck.tables import as_data, as_text
from cordax.papers.timing import Timing
from cordax.systems import Neck


@pytest.fixture(scope="module")
def case():
    return controlled(1, "rigid")


def test_runs_end_at_the_duration(case):
    """Whole steps beyond it are left out."""
    run = march(case, "explicit_euler", 1e-3, duration=0.0995)
    np.testing.assert_allclose(run.t, 1e-3 * np.arange(100), rtol=1e-12)
    whole = cordax.simulate(
        case.neck,
        case.start,
        dt=1e-3,
        duration=0.12,
        integrator="explicit_euler",
        control=case.control,
    )
    np.testing.assert_allclose(run.alpha, whole.q[:100], rtol=0, atol=1e-15)
    error = np.abs(case.control.tracking_error(whole))[:100].max()
    assert run.error == pytest.approx(float(error), rel=1e-9)
    assert run.seconds_per_step == pytest.approx(run.seconds / 100)
    finer = march(case, "explicit_euler", 5e-4, duration=0.0995)
    expected = np.abs(finer.alpha[::4] - run.alpha[::2]).max()
    assert difference(run, finer) == expected > 0


def test_failure_ends_the_run(case):
    """Gains far too large for the step drive the joint out of range."""
    wild = with_choices(case, 5e-5, 2000.0)
    start = cordax.State(wild.start.q + 0.1, wild.start.v)
    run = march(wild._replace(start=start), "explicit_euler", 2e-3)
    assert 0 < run.failure_time < 6.3 and run.error == np.inf
    assert run.t[-1] < run.failure_time and np.all(np.abs(run.alpha) < np.pi)


def _run(seconds, steps=3150, jitter=1.0):
    """Three rounds, of which the second takes `jitter` times as long."""
    stretch = np.array([[0.5e-3] * 4, [0.1e-3, 0.4e-3, 0.9e-3, 0.2e-3]])
    return SimpleNamespace(
        seconds=seconds,
        timing=Timing((seconds, jitter * seconds, seconds)),
        seconds_per_step=seconds / steps,
        dt=2e-3,
        series=lambda get: stretch,
    )


def _limits(open_loop, closed_loop, other, growth):
    one = np.ones(2)
    predicted = Predicted(one, open_loop * one, closed_loop * one, growth * one)
    return Limits(predicted, open_loop, closed_loop, other)


def _study(**changes) -> Study:
    """Numbers like those of the paper's best case."""
    tried = [
        Tried(n, kind, scheme, dt, 1e-3, np.inf)
        for n in (3, 4)
        for kind, scheme in (("rigid", "explicit"), ("rigid", "implicit"), ("elastic", "implicit"))
        for dt in (2e-4, 2e-3)
    ]
    names = [
        f"{a} - {b}"
        for a, b in (
            ("rigid explicit", "rigid implicit"),
            ("elastic implicit", "rigid implicit"),
            ("elastic explicit", "rigid explicit"),
            ("elastic explicit", "elastic implicit"),
        )
    ]
    dt = np.array([2e-3, 1e-3])
    numbers = {
        "runs": {
            (n, kind, scheme): _run((1 if scheme == "explicit" else 4) * n)
            for n in (3, 4)
            for kind in ("rigid", "elastic")
            for scheme in ("explicit", "implicit")
        },
        "runs_at_04": {"rigid": _run(17.0), "elastic": _run(20.0)},
        "at_smallest": _run(700.0),
        "accurate": {},
        "differences": {n: dict.fromkeys(names, 1e-3) for n in (3, 4)},
        "tried": tried,
        "limits": {3: _limits(4e-4, 4e-4, 4e-4, -1.0), 4: _limits(1e-4, 0.0, 0.0, -1.0)},
        "chatter": {5e-5: 1e-3, 1e-6: 1e-3},
        "convergence": {"rk4": Convergence(dt, np.array([16e-8, 1e-8]), 1e-6)},
        "rigid_errors": {
            "explicit": Convergence(dt, 2 * dt, 1e-6),
            "implicit": Convergence(dt, dt, 1e-6),
        },
        "left_out": {},
    }
    return Study(**(numbers | changes))


def _verdicts(study: Study) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(study)}


def test_a_study_that_agrees_with_the_paper_reproduces_every_claim():
    assert set(_verdicts(_study()).values()) == {"reproduces"}


@pytest.mark.parametrize(
    ("claim", "change", "verdict"),
    [
        (
            "rigid tendons: both schemes",
            {"tried": [Tried(3, "rigid", "explicit", 2e-3, np.inf, 1.0), *_study().tried]},
            "does not reproduce",
        ),
        (
            "implicit scheme is always stable",
            {"tried": [Tried(4, "elastic", "implicit", 1e-4, 0.3, np.inf), *_study().tried]},
            "in part",
        ),
        ("implicit scheme is always stable", {"chatter": {5e-5: 1e-3, 1e-6: 0.4}}, "in part"),
        (
            "3 joints: the limit is about 0.4 ms",
            {"limits": _study().limits | {3: _limits(1e-3, 4.3e-4, 8e-4, -1.0)}},
            "only with these choices",
        ),
        (
            "3 joints: the limit is about 0.4 ms",
            {"limits": _study().limits | {3: _limits(1e-3, 1e-3, 1e-3, -1.0)}},
            "does not reproduce",
        ),
        (
            "no convergence even at 0.025 ms",
            {"limits": _study().limits | {4: _limits(4e-4, 0.0, 7e-4, 3.0)}},
            "only with these choices",
        ),
        (
            "limit falls with the complexity",
            {"limits": _study().limits | {4: _limits(4e-4, 0.0, 7e-4, 3.0)}},
            "only with these choices",
        ),
        (
            "explicit scheme is faster",
            {"runs": _study().runs | {(3, "rigid", "explicit"): _run(13.0)}},
            "in part",
        ),
        (
            "explicit scheme is faster",
            {"runs": _study().runs | {(3, "rigid", "explicit"): _run(3.0, jitter=5.0)}},
            "cannot be judged",
        ),
        (
            "rises with the number of joints",
            {"runs": _study().runs | {(3, "rigid", "implicit"): _run(12.0, jitter=1.5)}},
            "cannot be judged",
        ),
        (
            "elasticity does not raise",
            {"runs_at_04": {"rigid": _run(17.0), "elastic": _run(30.0)}},
            "does not reproduce",
        ),
        (
            "elasticity does not raise",
            {"runs_at_04": {"rigid": _run(17.0), "elastic": _run(20.0, jitter=1.5)}},
            "cannot be judged",
        ),
        (
            "more precise",
            {
                "rigid_errors": {
                    "explicit": _study().rigid_errors["implicit"],
                    "implicit": _study().rigid_errors["explicit"],
                }
            },
            "does not reproduce",
        ),
    ],
)
def test_verdicts_follow_the_numbers(claim, change, verdict):
    found = {name: v for name, v in _verdicts(_study(**change)).items() if claim in name}
    assert list(found.values()) == [verdict]


def test_tables_and_json_hold_the_numbers():
    study = _study(limits=_study().limits | {4: _limits(1e-3, 0.0, 0.0, 3.0)})
    claims = judge(study)
    text = as_text(study, claims)
    for expected in ("Table 1", "Table 2", "Table 3", "> 700", "0.40 ms", "< 0.025 ms", "+3.00"):
        assert expected in text
    data = json.loads(json.dumps(as_data(study, claims), allow_nan=False))
    assert data["limits_s"]["3"]["observed_closed_loop"] == 4e-4
    assert data["table_1_s"]["implicit, 4 joints"] == {"paper": 30.0, "ours": 16.0}
    assert [c["verdict"] for c in data["claims"]] == [c.verdict for c in claims]
    assert data["runs"][0]["failure_time"] is None  # infinity has no JSON


def test_order_from_the_smallest_steps_above_rounding():
    dt = np.array([4e-3, 2e-3, 1e-3, 5e-4])
    error = np.array([np.inf, 16e-8, 1e-8, 1e-13])
    assert order(Convergence(dt, error, 1e-6)) == pytest.approx(4.0)


def test_every_scheme_that_fits_can_be_drawn():
    dynamics = Dynamics(Neck.default(3), Minimal())
    for name, method in BY_NAME.items():
        try:
            method().check(dynamics)
        except ValueError:
            continue
        assert name in figures._SCHEME_STYLE
