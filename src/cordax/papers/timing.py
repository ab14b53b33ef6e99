"""Comparison of computing times, measured alternately in several rounds.

Other processes make a computation slower, never faster, and they do so for a while. Computations
that are compared therefore run in rounds, one after the other within each round, so that their
ratios change little from round to round. A claim about times is confirmed or rejected only if all
rounds agree."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from .report import Verdict

Key = TypeVar("Key")
Result = TypeVar("Result")

#: number of rounds of a measurement
ROUNDS = 5
#: least number of rounds for a verdict
FEWEST = 3
#: time [s] for which short computations are repeated within a round; the fastest one counts
PATIENCE = 0.05


class Timing(NamedTuple):
    """Wall times of one computation [s], by round."""

    rounds: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Shortest wall time [s]: that of an undisturbed run."""
        return min(self.rounds)


class Ratio(NamedTuple):
    """Ratio of the computing times of two computations: `value` is the ratio of their shortest
    times, `low` and `high` are the smallest and largest ratio within a round."""

    value: float
    low: float
    high: float
    rounds: int

    def exceeds(self, limit: float) -> bool | None:
        """Whether the ratio exceeds a limit in all rounds; None if this cannot be judged."""
        return self._judged(self.low > limit, self.high <= limit)

    def within(self, low: float, high: float) -> bool | None:
        """Whether the ratio is between two limits in all rounds; None if this cannot be judged."""
        outside = self.high < low or self.low > high
        return self._judged(low <= self.low and self.high <= high, outside)

    def _judged(self, yes: bool, no: bool) -> bool | None:
        return None if self.rounds < FEWEST or not (yes or no) else yes

    def __str__(self) -> str:
        if self.rounds < 2:
            return f"{self.value:.2f} (measured once)"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f} in {self.rounds} rounds)"


def ratio(a: Timing, b: Timing) -> Ratio:
    """Ratio of `a` to `b`, for the rounds that both have."""
    found = [x / y for x, y in zip(a.rounds, b.rounds, strict=False)]
    return Ratio(a.seconds / b.seconds, min(found), max(found), len(found))


def verdict(answers: Iterable[bool | None], mixed: Verdict = "in part") -> Verdict:
    """Verdict on a claim. Each answer supports (True) or contradicts (False) the claim, or cannot
    be judged (None); the verdict is `mixed` if answers differ."""
    answers = list(answers)
    if None in answers:
        return "cannot be judged"
    return "reproduces" if all(answers) else mixed if any(answers) else "does not reproduce"


def clocked(job: Callable[[], Result]) -> tuple[Result, float]:
    """Run a computation; return its result and its wall time [s]. Short computations are repeated,
    and the shortest time is returned."""
    least, spent = float("inf"), 0.0
    while True:
        begin = time.perf_counter()
        result = job()
        seconds = time.perf_counter() - begin
        least, spent = min(least, seconds), spent + seconds
        if spent >= PATIENCE:
            return result, least


def in_turn(
    jobs: Mapping[Key, Callable[[], Result]], rounds: int = ROUNDS
) -> dict[Key, tuple[Result, Timing]]:
    """Run every job once in each round; return its result of the last round and the times of all
    rounds. Jobs must be compiled beforehand and must return only when they are complete."""
    times: dict[Key, list[float]] = {key: [] for key in jobs}
    results: dict[Key, Result] = {}
    for _ in range(rounds):
        for key, job in jobs.items():
            results[key], seconds = clocked(job)
            times[key].append(seconds)
    return {key: (results[key], Timing(tuple(times[key]))) for key in jobs}
