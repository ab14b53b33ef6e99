"""Timing shared by the benchmarks: minima over repeats, compile and run apart, a C++ anchor."""

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equinox as eqx
import jax

from cordax import hoisting_active
from cordax._jax.xla_flags import unhoisted_loops

HERE = Path(__file__).parent


def best(function, *, repeats: int = 30, budget: float = 2.0) -> float:
    """Seconds per call: the minimum over repeats of a compiled, warmed function."""
    jax.block_until_ready(function())
    end, least, n = time.perf_counter() + budget, float("inf"), 0
    while n < 3 or (n < repeats and time.perf_counter() < end):
        start = time.perf_counter()
        jax.block_until_ready(function())
        least, n = min(least, time.perf_counter() - start), n + 1
    return least


#: what is measured in processor time takes so long [s]: some systems count it in ticks, those of
#: other threads late, and the least of many short measurements is then far too small
SPAN = 0.1


def processor(function, *, repeats: int = 200) -> float:
    """Processor seconds per call of this process, the minimum over repeats, or over as many calls
    as fit into two seconds: less disturbed by others than time that passes."""
    return in_turns({"function": function}, repeats=repeats)["function"]


def timed(run, *, repeats: int = 20, budget: float = 5.0) -> dict:
    """Of a run: the first call, which compiles, and the quickest of later ones, at least one, in
    seconds that pass and in those of the processor (all threads), which others on the machine
    disturb less."""

    def once() -> tuple[float, float]:
        wall, work = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        return time.perf_counter() - wall, time.process_time() - work

    first, later, end = once(), [once()], time.perf_counter() + budget
    while len(later) < repeats and time.perf_counter() < end:
        later.append(once())
    return {
        "first_s": round(first[0], 2),
        "first_processor_s": round(first[1], 2),
        "run_s": round(min(wall for wall, _ in later), 4),
        "run_processor_s": round(min(work for _, work in later), 4),
    }


def in_turns(functions: dict, *, repeats: int = 25, budget: float = 2.0) -> dict[str, float]:
    """Processor seconds per call of several functions that take turns, the minima over repeats;
    quick functions are called several times in each, and at least three repeats are taken."""
    least, calls = dict.fromkeys(functions, float("inf")), {}
    for name, function in functions.items():
        calls[name] = max(1, math.ceil(SPAN / best(function, repeats=3)))
    end, n = time.perf_counter() + budget * len(functions), 0
    while n < 3 or (n < repeats and time.perf_counter() < end):
        for name, function in functions.items():
            start = time.process_time()
            for _ in range(calls[name]):
                jax.block_until_ready(function())
            least[name] = min(least[name], (time.process_time() - start) / calls[name])
        n += 1
    return least


def recorded(module, *names: str):
    """A list that fills with calls of these functions of `module`, to be repeated, and what ends
    that."""
    calls, originals = [], {name: getattr(module, name) for name in names}

    def recording(function):
        def call(*args):
            calls.append(lambda: function(*args))
            return function(*args)

        return call

    for name, function in originals.items():
        setattr(module, name, recording(function))
    return calls, lambda: [setattr(module, name, f) for name, f in originals.items()]


def replayed(functions: list[tuple]):
    """Each (module, name) returns at once what it returns next: what is left is the Python around.
    Returns what ends that."""
    originals = [getattr(module, name) for module, name in functions]

    def once(module, name, function):
        def call(*args):
            result = function(*args)
            setattr(module, name, lambda *args: result)
            return result

        setattr(module, name, call)

    for (module, name), function in zip(functions, originals, strict=True):
        once(module, name, function)
    both = list(zip(functions, originals, strict=True))
    return lambda: [setattr(module, name, f) for (module, name), f in both]


def compiled(function, *args):
    """A function of no arguments running `function(*args)` compiled, and trace and compile
    seconds, and how many of its loops are not compiled into one function."""
    arrays, static = eqx.partition(args, eqx.is_array)

    def on_arrays(arrays):
        return eqx.filter(function(*eqx.combine(arrays, static)), eqx.is_array)

    start = time.perf_counter()
    lowered = jax.jit(on_arrays).lower(arrays)
    traced = time.perf_counter()
    executable = lowered.compile()
    done = time.perf_counter()
    cost = {"trace_s": round(traced - start, 2), "compile_s": round(done - traced, 2)}
    cost["unhoisted_loops"] = unhoisted_loops(executable.as_text())  # a time loop should not be one
    return (lambda: executable(arrays)), cost


def anchor(name: str) -> dict | None:
    """Figures printed by `anchors/NAME.cpp`, built with g++ -O3 -march=native; None without a
    compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / name
        flags = ["-std=c++17", "-O3", "-march=native", "-w"]
        build = [compiler, *flags, str(HERE / "anchors" / f"{name}.cpp"), "-o", str(program)]
        if subprocess.run([*build, "-lmvec", "-lm"], capture_output=True).returncode != 0:
            return None
        shown = subprocess.run([str(program)], capture_output=True, text=True)
    return json.loads(shown.stdout.strip().splitlines()[-1]) if shown.returncode == 0 else None


def in_new_process(code: str, **environment: str) -> dict:
    """Run `code` in a fresh interpreter and return the JSON object it prints last."""
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(shown.stdout.strip().splitlines()[-1])


def parts(functions: dict, doc: str | None, options=()) -> tuple[dict, object]:
    """What the command line asks of `functions` by name, all by default: their results, with the
    seconds that each took, compilation included, and what else was given. With `--out FILE` each is
    written as soon as it is there, and what the file had stays. `options`: names and help of more
    options with a value."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("parts", nargs="*", choices=[*functions, []], help="default: all")
    parser.add_argument("--out", help="file for the results, kept part by part")
    for name, text in options:
        parser.add_argument(name, help=text)
    given = parser.parse_args()
    file = None if given.out is None else Path(given.out)
    found = json.loads(file.read_text()) if file is not None and file.exists() else {"took_s": {}}
    found["about"] = about()
    for part in given.parts or list(functions):
        start = time.perf_counter()
        found[part] = functions[part]()
        found["took_s"][part] = round(time.perf_counter() - start, 1)
        if file is not None:
            file.write_text(json.dumps(found, indent=2))
    print(json.dumps(found, indent=2))
    return found, given


def about() -> dict:
    """Where the figures come from."""
    return {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "hoisting": hoisting_active(),
    }
