"""Computing times: what may be said about them, and what not."""

import pytest

from cordax.papers import timing
from cordax.papers.timing import Timing, in_turn, ratio, verdict


def test_ratios_are_taken_within_rounds():
    """Something that slows down both for a while changes no ratio."""
    a, b = Timing((2.0, 8.0, 2.2)), Timing((1.0, 4.0, 1.0))
    found = ratio(a, b)
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0, 2.2))
    assert found.exceeds(1.0) is True
    assert found.exceeds(2.1) is None  # one round says so, another one not
    assert found.exceeds(2.5) is False
    assert ratio(b, a).exceeds(1.0) is False
    assert str(found) == "2.00 (2.00 to 2.20 in 3 rounds)"


def test_within_limits():
    found = ratio(Timing((2.0, 2.4, 2.2)), Timing((1.0, 1.0, 1.0)))
    assert found.within(1.9, 2.5) is True
    assert found.within(2.1, 2.5) is None
    assert found.within(1.0, 2.3) is None
    assert found.within(3.0, 4.0) is False
    assert found.within(0.5, 1.5) is False


def test_a_single_measurement_judges_nothing():
    once = ratio(Timing((5.0,)), Timing((1.0,)))
    assert once.exceeds(1.0) is None and once.within(0.0, 9.0) is None
    assert "once" in str(once)


def test_verdicts():
    assert verdict([True, True]) == "reproduces"
    assert verdict([True, False]) == "in part"
    assert verdict([True, False], mixed="does not reproduce") == "does not reproduce"
    assert verdict([False, False]) == "does not reproduce"
    assert verdict([True, None]) == "cannot be judged"


def test_jobs_take_turns(monkeypatch):
    """And short ones are repeated within a round, where the fastest counts."""
    clock, called = [0.0], []

    def job(name, seconds):
        def run():
            called.append(name)
            clock[0] += seconds[min(called.count(name), len(seconds)) - 1]
            return called.count(name)

        return run

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    jobs = {"long": job("long", [1.0, 3.0, 2.0]), "short": job("short", [0.04, 0.02, 0.06])}
    found = in_turn(jobs, rounds=3)
    assert called == ["long", "short", "short", *["long", "short"] * 2]
    assert found["long"][0] == 3
    assert found["long"][1].rounds == pytest.approx((1.0, 3.0, 2.0))
    assert found["short"][1].rounds == pytest.approx((0.02, 0.06, 0.06))
