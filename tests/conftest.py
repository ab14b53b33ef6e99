"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._xla`).

LLVM's optimisation is off, and so are XLA's newer emitters, which take twice as long: most of the
time of a test goes into compiling what runs for a millisecond. Numbers agree with those of
optimised code to round-off, which is what is tested; how fast it runs is for `benchmarks/`.

Programs are dropped from memory after each file and kept on disk for the length of the run, where
both workers find them."""

import gc
import os
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
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

#: files and single tests that take longest, first: a worker that starts one late finishes late
_LONGEST = tuple((Path(__file__).parent / "longest_first.txt").read_text().split())


def pytest_collection_modifyitems(items):
    """The longest first. A file is one unit of work, so that its tests share what they compile,
    except for those marked `alone`."""
    rank = {name: i for i, name in enumerate(_LONGEST)}
    for item in items:
        file = item.nodeid.split("::")[0]
        alone = item.get_closest_marker("alone") is not None
        item.add_marker(pytest.mark.xdist_group(item.nodeid if alone else file))
    last = len(rank)
    place = lambda item: min(
        rank.get(item.nodeid.removeprefix("tests/"), last),
        rank.get(item.nodeid.split("::")[0].removeprefix("tests/"), last),
    )
    items.sort(key=place)


@pytest.fixture(scope="module", autouse=True)
def drop_programs():
    """Compiled programs of one file are of little use to the next, and are gigabytes in the end."""
    yield
    jax.clear_caches()
    gc.collect()


def pytest_unconfigure():
    if _OWN_CACHE:
        import shutil

        shutil.rmtree(os.environ["CORDAX_TEST_CACHE"], ignore_errors=True)
