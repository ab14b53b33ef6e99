"""How long things take, and a word where that is long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import jax

from ..simulation.trajectory import Trajectory

#: said from here on [s]
PATIENCE = 2.0


class Seconds(NamedTuple):
    """What a run took, and what came before it: tracing, compiling, loading from the cache."""

    run: float
    compile: float


_spent: list[tuple[str, float]] = []


def _note(event: str, duration: float, **_) -> None:
    if event.startswith("/jax/core/compile/"):
        _spent.append((event, duration))


def timed(go: Callable[[], Trajectory]) -> tuple[Trajectory, Seconds]:
    """The trajectory of `go()`, and how long it took. What JAX reports of its compiling is told
    from the rest."""
    if not _spent:
        jax.monitoring.register_event_duration_secs_listener(_note)
    _spent.append(("begin", 0.0))
    before = len(_spent)
    start = time.perf_counter()
    run = go()
    jax.block_until_ready(run.q)
    whole = time.perf_counter() - start
    made = min(whole, sum(seconds for _, seconds in _spent[before:]))
    return run, Seconds(whole - made, made)


def imported_beside(name: str) -> None:
    """Begin to import a module that is needed later, while something else waits or compiles."""
    threading.Thread(target=import_module, args=(name,), daemon=True).start()


@contextmanager
def patient(what: str, on: bool = True) -> Iterator[None]:
    """Says what takes so long, on a terminal or in a log: once, after two seconds."""
    say = lambda: print(f"... {what}", file=sys.stderr, flush=True)
    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    if on:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
