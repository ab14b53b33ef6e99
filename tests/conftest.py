"""Tests run in double precision; cordax comes before any use of JAX (see `cordax._xla`).

LLVM's optimisation is off: most of the time of a test goes into compiling what runs for a
millisecond. Numbers agree with those of optimised code to round-off, which is what is tested; how
fast it runs is for `benchmarks/`."""

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"

import cordax

cordax.enable_x64()
