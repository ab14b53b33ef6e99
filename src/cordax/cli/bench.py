"""`cordax bench`: how fast a machine is simulated here."""

import json as json_module
import statistics
import time
from typing import Annotated

import jax
import tyro
from tyro.conf import Positional, UseAppendAction

from .._base.checks import require_whole
from ..io import find_machine
from ..simulation._simulate import simulate
from ..simulation.batch import simulate_batch
from .machines import with_given
from .progress import patient
from .run import step


def bench(
    machine: Positional[str],
    /,
    repeat: int = 5,
    batch: int = 0,
    set: Annotated[UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = (),
    duration: float | None = None,
    dt: float | None = None,
    integrator: str | None = None,
    json: bool = False,
    allow_code: bool = False,
) -> int:
    """Measure how long a machine takes: the first call, which compiles, and later ones.

    Times are those of the wall and of the processor; on a busy computer only the latter tell.

    For example:
        cordax bench neck
        cordax bench suspended --integrator rk4 --batch 64 --json

    Args:
        machine: an example of `cordax list`, a machine file, or a saved trajectory.
        repeat: later calls; their median is told.
        batch: so many equal machines at once, too.
        set: another value for a key of the file, as in `cordax run`.
        duration: simulated time in seconds; that of the file by default, as dt and integrator.
        dt: step in seconds.
        integrator: see `cordax list`.
        json: print it as JSON.
        allow_code: the file may name classes of yours.
    """
    require_whole("repeat", repeat, 1)
    require_whole("batch", batch, 0)
    experiment = find_machine(machine, changes=set, code=allow_code).experiment
    experiment = with_given(experiment, duration=duration, dt=dt, integrator=integrator)
    assert experiment.duration is not None
    steps = round(experiment.duration / step(experiment))
    with patient("compiling (less the next time: programs are kept)"):
        first = _clocked(lambda: simulate(experiment).q)
    later = [_clocked(lambda: simulate(experiment).q) for _ in range(repeat)]
    wall, cpu = (statistics.median(x[i] for x in later) for i in (0, 1))
    facts = {
        "machine": machine,
        "steps": steps,
        "first_call_s": first[0],
        "first_call_cpu_s": first[1],
        "run_s": wall,
        "run_cpu_s": cpu,
        "us_per_step": 1e6 * wall / steps,
        "times_real_time": experiment.duration / wall,
    }
    if batch:
        go = lambda: simulate_batch(lambda _: experiment, jax.numpy.zeros(batch)).q
        with patient("compiling the batch"):
            _clocked(go)
        wall = statistics.median(_clocked(go)[0] for _ in range(repeat))
        facts |= {"batch": batch, "batch_s": wall, "batch_steps_per_s": batch * steps / wall}
    if json:
        print(json_module.dumps(facts, indent=2))
        return 0
    for name, value in facts.items():
        text = value if isinstance(value, str | int) else f"{value:.4g}"
        print(f"  {name:20} {text}")
    return 0


def _clocked(go) -> tuple[float, float]:
    """Seconds of the wall and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(go())
    return time.perf_counter() - wall, time.process_time() - cpu
