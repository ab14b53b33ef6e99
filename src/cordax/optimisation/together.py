"""Several searches side by side: their points are evaluated in batches."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .problem import Problem, linearised_together


class _StoppedError(Exception):
    """Another search has failed."""


class Together:
    """Where searches meet, each in a thread of its own: who asks for a point waits until all others
    that still run ask, too, and one call evaluates all of them."""

    def __init__(self, problem: Problem, count: int):
        self.problem, self.count = problem, count
        self._running, self._asked, self._found = set(range(count)), {}, {}
        self._meeting = threading.Condition()
        self._stopped = False

    def evaluate(self, who: int, y: np.ndarray) -> Any:
        """What `linearised` returns."""
        with self._meeting:
            self._asked[who] = y
            self._answer()
            self._meeting.wait_for(lambda: who in self._found or self._stopped)
            if self._stopped:
                raise _StoppedError
            return self._found.pop(who)

    def leave(self, who: int) -> None:
        """This one has ended."""
        with self._meeting:
            self._running.discard(who)
            self._answer()

    def stop(self) -> None:
        """All of them shall end."""
        with self._meeting:
            self._stopped = True
            self._meeting.notify_all()

    def _answer(self) -> None:
        if self._stopped or not self._asked or not self._running <= self._asked.keys():
            return
        members = list(self._asked)
        # repeated where searches have ended: one program for all
        points = np.stack([self._asked[who] for who in members])
        ys = points[np.arange(self.count) % len(members)]
        found = jax.tree.map(np.asarray, linearised_together(self.problem, jnp.asarray(ys)))
        for k, who in enumerate(members):
            self._found[who] = jax.tree.map(lambda x, k=k: x[k], found)
        self._asked.clear()
        self._meeting.notify_all()


def side_by_side(meeting: Together, searches: Sequence[Callable[[], Any]]) -> list[Any]:
    """What the searches return; the first that raises ends all."""

    def one(who: int):
        try:
            return searches[who]()
        except BaseException:
            meeting.stop()
            raise
        finally:
            meeting.leave(who)

    with ThreadPoolExecutor(len(searches)) as pool:
        waiting = [pool.submit(one, who) for who in range(len(searches))]
        try:
            wait(waiting)
        except BaseException:  # an interrupt
            meeting.stop()
            raise
    errors = [e for task in waiting if (e := task.exception()) is not None]
    if errors:
        raise next((e for e in errors if not isinstance(e, _StoppedError)), errors[0])
    return [task.result() for task in waiting]
