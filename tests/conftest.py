"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._xla`).

LLVM's optimisation is off, and so are XLA's newer emitters, which take twice as long: most of the
time of a test goes into compiling what runs for a millisecond. Numbers agree with those of
optimised code to round-off, which is what is tested; how fast it runs is for `benchmarks/`.
Tracing makes millions of small objects that live on: Python looks for cycles among them less
often, and operations do not record the ten lines of Python that they come from.

Programs are kept on disk for the length of the run, where both workers find them, and in memory
as long as that is little: files share hundreds of tiny ones, 20 ms each. What the compiler has
freed is given back to the system from `TRIM` on; it is most of the memory of a worker. Only above
`MEMORY` are programs dropped, so that a worker stays below 2 GB."""

import ctypes
import gc
import os
import resource
import tempfile
from pathlib import Path

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)
# the first process makes the folder, workers inherit its name and the first one removes it
_OWN_CACHE = "CORDAX_TEST_CACHE" not in os.environ
if _OWN_CACHE:
    os.environ["CORDAX_TEST_CACHE"] = tempfile.mkdtemp(prefix="cordax-tests-")

import jax  # noqa: E402
import pytest  # noqa: E402

import cordax  # noqa: E402

cordax.enable_x64()
cordax.enable_cache(os.environ["CORDAX_TEST_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_traceback_in_locations_limit", 0)
gc.set_threshold(50_000, 20, 50)

#: resident memory of a worker [MB] from which on what is free goes back to the system
TRIM = 500
#: and from which on it then drops its programs; the largest single test needs about one gigabyte
#: of its own
MEMORY = 800
#: the same within a file
CROWDED = 1100

#: files and single tests that take longest, first: a worker that starts one late finishes late
_LONGEST = tuple((Path(__file__).parent / "longest_first.txt").read_text().split())


#: what takes half a minute or more to compile: marked `long`, and left to `pytest -m long`
_LONG = tuple((Path(__file__).parent / "long.txt").read_text().split())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The longest first. A file is one unit of work, so that its tests share what they compile,
    except for those marked `alone`."""
    rank = {name: i for i, name in enumerate(_LONGEST)}
    for item in items:
        file = item.nodeid.split("::")[0]
        if item.nodeid.removeprefix("tests/").startswith(_LONG):
            item.add_marker(pytest.mark.long)
        alone = item.get_closest_marker("alone") is not None
        item.add_marker(pytest.mark.xdist_group(item.nodeid if alone else file))
    last = len(rank)
    place = lambda item: min(
        rank.get(item.nodeid.removeprefix("tests/"), last),
        rank.get(item.nodeid.split("::")[0].removeprefix("tests/"), last),
    )
    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Between units of work, and within those that grow large. What was freed goes back to the
    system only when glibc is told to: without that the memory of a worker never shrinks."""
    result = yield
    if _resident() > TRIM:
        _trim()
        last = nextitem is None or _group(nextitem) != _group(item)
        if _resident() > (MEMORY if last else CROWDED):
            jax.clear_caches()
            gc.collect()
            _trim()
    return result


def _trim() -> None:
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _group(item) -> str:
    return item.get_closest_marker("xdist_group").args[0]


def _resident() -> float:
    """Memory of this process [MB]; infinite where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("inf")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


_peaks: list[float] = []


def _peak() -> float:
    """Largest memory that this process has had [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = _peak()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if hasattr(node, "workeroutput"):
        _peaks.append(node.workeroutput["peak"])


def pytest_terminal_summary(terminalreporter):
    """How much memory workers have needed: above 2 GB each is too much."""
    peaks = ", ".join(f"{x:.2f}" for x in _peaks or [_peak()])
    terminalreporter.write_line(f"peak memory of each worker [GB]: {peaks}")


def pytest_unconfigure():
    if _OWN_CACHE:
        import shutil

        shutil.rmtree(os.environ["CORDAX_TEST_CACHE"], ignore_errors=True)
