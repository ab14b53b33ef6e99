"""Measured times, and a message when something takes long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import jax

from ..simulation.trajectory import Trajectory

#: delay [s] of the message
DELAY = 2.0


class Seconds(NamedTuple):
    """Time [s] of a simulation, and of tracing, compiling and loading from the cache before it."""

    run: float
    compile: float


_durations: list[tuple[str, float]] = []


def _record(event: str, duration: float, **_) -> None:
    if event.startswith("/jax/core/compile/"):
        _durations.append((event, duration))


def timed(function: Callable[[], Trajectory]) -> tuple[Trajectory, Seconds]:
    """The trajectory `function()` and its times. JAX reports the time of compilation."""
    if not _durations:
        jax.monitoring.register_event_duration_secs_listener(_record)
    _durations.append(("begin", 0.0))
    before = len(_durations)
    start = time.perf_counter()
    run = function()
    jax.block_until_ready(run.q)
    total = time.perf_counter() - start
    compilation = min(total, sum(seconds for _, seconds in _durations[before:]))
    return run, Seconds(total - compilation, compilation)


def import_in_background(name: str) -> None:
    """Import a module in a thread, so that it is ready when it is needed."""
    threading.Thread(target=import_module, args=(name,), daemon=True).start()


@contextmanager
def announce(activity: str, enabled: bool = True) -> Iterator[None]:
    """Print `activity` to standard error if the block takes longer than `DELAY`."""
    message = lambda: print(f"... {activity}", file=sys.stderr, flush=True)
    timer = threading.Timer(DELAY, message)
    timer.daemon = True
    if enabled:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
