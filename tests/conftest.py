"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._jax.xla_flags`).

LLVM's optimisation is off, and so are XLA's newer emitters, which take twice as long: most of the
time of a test goes into compiling what runs for a millisecond. Numbers agree with those of
optimised code to round-off, which is what is tested; how fast it runs is for `benchmarks/`.
Tracing makes millions of small objects that live on: Python looks for cycles among them less
often, and operations do not record the ten lines of Python that they come from. JAX sets up MLIR
anew for every program, 4 ms each time: here it does so for every `SHARED` of them.

Programs are kept on disk for the length of the run, where both workers find them, and in memory
as long as that is little: files share hundreds of tiny ones, 20 ms each. What the compiler has
freed is given back to the system from `TRIM` on; it is most of the memory of a worker. Only above
`MEMORY` are programs dropped, so that a worker stays below 2 GB."""

import ctypes
import gc
import os
import resource
import tempfile
import threading
from collections import Counter
from pathlib import Path

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)
# Calls of LAPACK for batches share work among XLA's threads and wait for it: two at once on two
# threads have been seen to wait for ever. With more threads than such calls they do not.
os.environ.setdefault("PJRT_NPROC", "8")
# the first process makes the folder, workers inherit its name and the first one removes it
_OWN_CACHE = "CORDAX_TEST_CACHE" not in os.environ
if _OWN_CACHE:
    os.environ["CORDAX_TEST_CACHE"] = tempfile.mkdtemp(prefix="cordax-tests-")

# programs are traced by every process: tests put other functions in place of the library's
os.environ["CORDAX_PROGRAMS"] = "0"

import jax  # noqa: E402
import pytest  # noqa: E402

import cordax  # noqa: E402

cordax.enable_x64()
cordax.enable_cache(os.environ["CORDAX_TEST_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_traceback_in_locations_limit", 0)
gc.set_threshold(50_000, 20, 50)

#: programs that are lowered in one context of MLIR, which remembers constants of all of them
SHARED = 100
_local = threading.local()


def _shared_context(make):
    """`make` of a context, whose result serves several times in a thread, one program after the
    other: what is lowered within another has its own."""

    def context():
        if mlir.ir.Context.current is not None:
            return make()
        left, made = getattr(_local, "context", (0, None))
        if left == 0:
            left, made = SHARED, make()
        _local.context = left - 1, made
        return made

    return context


try:
    from jax._src.interpreters import mlir  # nothing public: without it tests only take longer

    mlir.make_ir_context = _shared_context(mlir.make_ir_context)
except (ImportError, AttributeError):
    pass

#: programs compiled or loaded so far in this process; a test that asks for hundreds computes
#: operation by operation, 20 ms each, what one compiled function would do
_programs = [0]
MANY = 150


@jax.monitoring.register_event_duration_secs_listener
def _count_programs(event, seconds, **_):
    _programs[0] += event.endswith("backend_compile_duration")


#: resident memory of a worker [MB] from which on what is free goes back to the system
TRIM = 500
#: and from which on it then drops its programs; the largest single test needs about one gigabyte
#: of its own
MEMORY = 800
#: the same within a file
CROWDED = 1100

#: files and single tests that take longest, first: a worker that starts one late finishes late
_LONGEST = tuple((Path(__file__).parent / "longest_first.txt").read_text().split())


#: what takes seven seconds or more, mostly to compile: marked `long`, and left to `pytest -m long`
_LONG = tuple((Path(__file__).parent / "long.txt").read_text().split())


#: files whose tests share nothing: each is a unit of work by itself
_APART = ("tests/test_docs.py",)


def _unit(nodeid: str) -> str:
    """A file, so that its tests share what they compile, or a test."""
    file = nodeid.split("::")[0]
    return nodeid if file in _APART else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Units go to workers as wholes. Not by xdist's marks of groups, which newer versions of
    pytest do not let through (3.8 under 9.2): tests of a file then go anywhere, and both workers
    compile what one would do for both."""
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return _unit(nodeid)

    return Units(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The longest first."""
    rank = {name: i for i, name in enumerate(_LONGEST)}
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(_LONG):
            item.add_marker(pytest.mark.long)
    last = len(rank)
    place = lambda item: min(
        rank.get(item.nodeid.removeprefix("tests/"), last),
        rank.get(item.nodeid.split("::")[0].removeprefix("tests/"), last),
    )
    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = _programs[0]
    result = yield
    if (asked := _programs[0] - before) > MANY:
        _eager[item.nodeid] = asked
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """What was freed goes back to the system only when glibc is told to: without that the memory
    of a worker never shrinks."""
    result = yield
    _seen.add(_unit(item.nodeid))
    if _resident() > TRIM:
        _trim()
        last = nextitem is None or _unit(nextitem.nodeid) != _unit(item.nodeid)
        if _resident() > (MEMORY if last else CROWDED):
            jax.clear_caches()
            gc.collect()
            _trim()
    return result


def _trim() -> None:
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _resident() -> float:
    """Memory of this process [MB]; infinite where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("inf")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


_peaks: list[float] = []
#: units that a worker has run; of all workers
_seen: set[str] = set()
_units: list[str] = []
#: tests that asked for more than `MANY` programs, and how many
_eager: dict[str, int] = {}


def _peak() -> float:
    """Largest memory that this process has had [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak"] = _peak()
        session.config.workeroutput["units"] = sorted(_seen)
        session.config.workeroutput["eager"] = _eager


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if hasattr(node, "workeroutput"):
        _peaks.append(node.workeroutput["peak"])
        _units.extend(node.workeroutput["units"])
        _eager.update(node.workeroutput["eager"])


def pytest_terminal_summary(terminalreporter):
    """How much memory workers have needed: above 2 GB each is too much. No file should have been
    run by both."""
    peaks = ", ".join(f"{x:.2f}" for x in _peaks or [_peak()])
    terminalreporter.write_line(f"peak memory of each worker [GB]: {peaks}")
    if torn := sorted(unit for unit, n in Counter(_units).items() if n > 1):
        terminalreporter.write_line(f"run by more than one worker: {', '.join(torn)}")
    if _eager:
        terminalreporter.write_line(f"tests that asked for more than {MANY} programs each:")
    for name, asked in sorted(_eager.items(), key=lambda pair: -pair[1]):
        terminalreporter.write_line(f"  {asked} {name}")


def pytest_unconfigure():
    if _OWN_CACHE:
        import shutil

        shutil.rmtree(os.environ["CORDAX_TEST_CACHE"], ignore_errors=True)
