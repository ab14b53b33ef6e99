"""How tests run: double precision, quick compilation, programs shared between workers.

Most of the time of a test goes into compiling a program that runs for a millisecond, so LLVM's
optimisation is off, and so are XLA's newer emitters where the older ones still exist. Numbers agree
with those of optimised code to round-off. `CORDAX_TEST_FLAGS=product` keeps the compiler flags of
users. Which test runs where and when is in `helpers/scheduling.py`; `helpers/memory.py` keeps
workers below 2 GB."""

import gc
import os
import shutil
import tempfile
from importlib.metadata import version

pytest_plugins = ["helpers.scheduling", "helpers.memory"]

if os.environ.get("CORDAX_TEST_FLAGS", "quick") == "quick":
    flags = " --xla_backend_optimization_level=0"
    # jaxlib 0.12 has only the newer emitters, which take twice as long; an unknown flag is fatal
    if tuple(int(x) for x in version("jaxlib").split(".")[:2]) < (0, 11):
        flags += " --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + flags
# LAPACK calls of a batch wait for work that they share among XLA's threads: two calls at once on
# two threads can wait for ever. More threads than such calls prevent it.
os.environ.setdefault("PJRT_NPROC", "8")
# The first process makes the folder and removes it; workers inherit its name.
_OWN_CACHE = "CORDAX_TEST_CACHE" not in os.environ
if _OWN_CACHE:
    os.environ["CORDAX_TEST_CACHE"] = tempfile.mkdtemp(prefix="cordax-tests-")
# Every process traces its programs, because some tests replace functions of the library.
os.environ["CORDAX_PROGRAMS"] = "0"

import jax  # noqa: E402

import cordax  # noqa: E402

cordax.enable_x64()
cordax.enable_cache(os.environ["CORDAX_TEST_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
# Operations need not record the lines of Python that they come from.
jax.config.update("jax_traceback_in_locations_limit", 0)
# Tracing makes millions of small objects that live on: look for cycles among them less often.
gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure():
    if _OWN_CACHE:
        shutil.rmtree(os.environ["CORDAX_TEST_CACHE"], ignore_errors=True)
