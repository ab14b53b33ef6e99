"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._xla`).

LLVM's optimisation is off, and so are XLA's newer emitters, which take twice as long: most of the
time of a test goes into compiling what runs for a millisecond. Numbers agree with those of
optimised code to round-off, which is what is tested; how fast it runs is for `benchmarks/`."""

import os

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

import cordax

cordax.enable_x64()
