"""Alternatives of the batch kernel: `python benchmarks/batch_kernels.py`, one JSON object.

1024 necks, linearly implicit steps, one thread: million steps per second of processor time, each
row in a new process. Rows: the kernel as it is; with vectors of 512 bits; without the option of
LLVM by which it vectorises loops over many arrays; without NaN of products with a constant zero
(not correct, for the cost of it); arrays (`vmap`); and the kernel by members per chunk.

The same scalar program as C, compiled by the compiler of the system and called through `jax.ffi`,
is not a row: a trial had 9.6 to 12.1 where the kernel had 12.2 to 13.2. It needs a compiler on the
machine of the user."""

import json
import os

_FLAGS = os.environ.get("XLA_FLAGS", "")  # before cordax adds to them

import measure  # noqa: E402

_ROW = """
import json, sys
sys.path.insert(0, {here!r})
import batch, measure
from cordax._jax.scalarise import _Numbers, _Zeroed
if {finite}:
    _Numbers.complete = lambda self, x, result=False: x.value if isinstance(x, _Zeroed) else x
call = batch.neck_batch(1024, 500, workers=1, chunk={chunk})
print(json.dumps({{"rate": 1024 * 500 / measure.processor(call, repeats=9) / 1e6}}))
"""
_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"


def rate(*, chunk: int = 64, finite: bool = False, **environment: str) -> float:
    """Million steps per processor second; `finite`: without NaN of products with zero."""
    code = _ROW.format(here=str(measure.HERE), chunk=chunk, finite=finite)
    environment = {"XLA_FLAGS": _FLAGS} | environment
    return round(measure.in_new_process(code, **environment)["rate"], 2)


def main() -> None:
    rows = {
        "kernel": rate(),
        "vectors_of_512_bits": rate(XLA_FLAGS=f"{_FLAGS} --xla_cpu_prefer_vector_width=512"),
        "without_llvm_option": rate(XLA_FLAGS=f"{_FLAGS} {_LOOPS}"),
        "without_nan_of_zero_products": rate(finite=True),
        "arrays": rate(CORDAX_BATCH_KERNEL="0"),
    }
    rows |= {f"chunk_{n}": rate(chunk=n) for n in (16, 256, 1024)}
    print(json.dumps({"about": measure.about(), "million_steps_per_s": rows}))


if __name__ == "__main__":
    main()
