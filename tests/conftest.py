"""Everything is tested in double precision; cordax comes before any use of JAX (see `cordax._xla`).

Tests compile much and run little, so LLVM is told not to optimise: the suite takes half the time, and
the arithmetic is the same. `CORDAX_TEST_OPTIMISED=1` tests what users run.
"""

import os

if os.environ.get("CORDAX_TEST_OPTIMISED", "0") != "1":
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_optimization_level" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_optimization_level=0".strip()

import cordax

cordax.enable_x64()
