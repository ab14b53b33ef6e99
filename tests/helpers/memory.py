"""Plugin: keep workers below 2 GB, and report their memory and tests with many programs."""

import ctypes
import gc
import os
from collections import Counter
from pathlib import Path

import jax
import pytest

from helpers.scheduling import unit

#: resident memory [MB] above which freed memory is given back to the system
TRIM = 500
#: resident memory [MB] above which programs are dropped between two units and within one; the
#: largest single test needs about 1000 MB
DROP_BETWEEN, DROP_WITHIN = 800, 1100
#: a test that compiles more programs than this computes operation by operation what one compiled
#: function would do
MANY_PROGRAMS = 150

_programs = 0
_peaks: list[float] = []
_units_of_worker: set[str] = set()
_units: list[str] = []
_many: dict[str, int] = {}


@jax.monitoring.register_event_duration_secs_listener
def _count_programs(event, seconds, **_):
    global _programs
    _programs += event.endswith("backend_compile_duration")


def _trim() -> None:
    """glibc gives freed memory back to the system only on request."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _resident() -> float:
    """Memory of this process [MB]; infinite where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("inf")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak() -> float:
    """Largest memory that this process has had [GB]; zero where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = _programs
    result = yield
    if (compiled := _programs - before) > MANY_PROGRAMS:
        _many[item.nodeid] = compiled
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    result = yield
    _units_of_worker.add(unit(item.nodeid))
    if _resident() > TRIM:
        _trim()
        last = nextitem is None or unit(nextitem.nodeid) != unit(item.nodeid)
        if _resident() > (DROP_BETWEEN if last else DROP_WITHIN):
            jax.clear_caches()
            gc.collect()
            _trim()
    return result


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = _peak()
        session.config.workeroutput["units"] = sorted(_units_of_worker)
        session.config.workeroutput["many"] = _many


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if hasattr(node, "workeroutput"):
        _peaks.append(node.workeroutput["peak"])
        _units.extend(node.workeroutput["units"])
        _many.update(node.workeroutput["many"])


def pytest_terminal_summary(terminalreporter):
    peaks = ", ".join(f"{x:.2f}" for x in _peaks or [_peak()])
    terminalreporter.write_line(f"peak memory of each worker [GB]: {peaks}")
    if shared := sorted(name for name, n in Counter(_units).items() if n > 1):
        terminalreporter.write_line(f"run by more than one worker: {', '.join(shared)}")
    if _many:
        terminalreporter.write_line(f"tests that compiled more than {MANY_PROGRAMS} programs:")
    for name, compiled in sorted(_many.items(), key=lambda pair: -pair[1]):
        terminalreporter.write_line(f"  {compiled} {name}")
