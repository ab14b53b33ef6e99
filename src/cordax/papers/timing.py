"""Computing times that may be compared: measured in turn, several times, judged with their spread.

Whatever else runs on a machine makes a computation slower, never faster, and it does so for a
while. So what is to be compared is measured in rounds, one after the other within each: their
ratios then change little from round to round. A claim about times holds or fails only where every
round says so."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from .report import Verdict

Key = TypeVar("Key")
Result = TypeVar("Result")

#: rounds of a measurement
ROUNDS = 5
#: with fewer, nothing is judged
FEWEST = 3
#: short computations are repeated within a round for this long [s], and the fastest counts
PATIENCE = 0.05


class Timing(NamedTuple):
    """Wall times of one computation [s], by round."""

    rounds: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The least: what it takes undisturbed."""
        return min(self.rounds)


class Ratio(NamedTuple):
    """How many times as long one computation takes as another: by their least times, and the least
    and the largest of the ratios within a round."""

    value: float
    low: float
    high: float
    rounds: int

    def exceeds(self, limit: float) -> bool | None:
        """None: cannot be judged."""
        return self._judged(self.low > limit, self.high <= limit)

    def within(self, low: float, high: float) -> bool | None:
        """Between two limits; None: cannot be judged."""
        outside = self.high < low or self.low > high
        return self._judged(low <= self.low and self.high <= high, outside)

    def _judged(self, yes: bool, no: bool) -> bool | None:
        return None if self.rounds < FEWEST or not (yes or no) else yes

    def __str__(self) -> str:
        if self.rounds < 2:
            return f"{self.value:.2f} (measured once)"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f} in {self.rounds} rounds)"


def ratio(a: Timing, b: Timing) -> Ratio:
    """`a` over `b`; of rounds that both have been part of."""
    found = [x / y for x, y in zip(a.rounds, b.rounds, strict=False)]
    return Ratio(a.seconds / b.seconds, min(found), max(found), len(found))


def verdict(answers: Iterable[bool | None], mixed: Verdict = "in part") -> Verdict:
    """Of a claim that every answer supports (True) or contradicts (False); `mixed` if they
    differ."""
    answers = list(answers)
    if None in answers:
        return "cannot be judged"
    return "reproduces" if all(answers) else mixed if any(answers) else "does not reproduce"


def clocked(job: Callable[[], Result]) -> tuple[Result, float]:
    """What a computation returns, and its wall time [s]; the least of several if it is short."""
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
    """Run every job once in each round; of the last round what it returns, and all times. Jobs
    return when they are done, and have been compiled."""
    times: dict[Key, list[float]] = {key: [] for key in jobs}
    results: dict[Key, Result] = {}
    for _ in range(rounds):
        for key, job in jobs.items():
            results[key], seconds = clocked(job)
            times[key].append(seconds)
    return {key: (results[key], Timing(tuple(times[key]))) for key in jobs}
