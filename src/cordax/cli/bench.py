"""`cordax bench`: measure how fast a machine is simulated."""

import json as json_module
import statistics
import time

import jax

from .._base.checks import require_whole
from ..io import find_machine
from ..simulation._simulate import simulate
from ..simulation.batch import simulate_batch
from .arguments import Changes, IntegratorName, Machine, Seconds, override
from .progress import announce


def bench(
    machine: Machine,
    /,
    repeat: int = 5,
    batch: int = 0,
    set: Changes = (),
    duration: Seconds = None,
    dt: Seconds = None,
    integrator: IntegratorName = None,
    json: bool = False,
    allow_code: bool = False,
) -> int:
    """Measure the time of the first simulation, which includes compilation, and of later ones.

    Prints wall-clock and processor time. On a busy computer use the processor time.

    For example:
        cordax bench neck
        cordax bench suspended --integrator rk4 --batch 64 --json

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), or a saved
            trajectory (.npz).
        repeat: number of simulations after the first one; the median time is printed.
        batch: batch size; 0 measures no batch.
        set: change a key of the machine file; may be repeated. Example: tendon.stiffness=2e5.
        duration: simulated time.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        json: print the times as JSON.
        allow_code: allow the file to import and run your own classes.
    """
    require_whole("repeat", repeat, 1)
    require_whole("batch", batch, 0)
    experiment = find_machine(machine, changes=set, code=allow_code).experiment
    experiment = override(experiment, duration=duration, dt=dt, integrator=integrator)
    assert experiment.duration is not None
    steps = experiment.steps
    with announce("compiling (cached for the next run)"):
        first = _seconds(lambda: simulate(experiment).q)
    later = [_seconds(lambda: simulate(experiment).q) for _ in range(repeat)]
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
        function = lambda: simulate_batch(lambda _: experiment, jax.numpy.zeros(batch)).q
        with announce("compiling the batch"):
            _seconds(function)
        wall = statistics.median(_seconds(function)[0] for _ in range(repeat))
        facts |= {"batch": batch, "batch_s": wall, "batch_steps_per_s": batch * steps / wall}
    if json:
        print(json_module.dumps(facts, indent=2))
        return 0
    for name, value in facts.items():
        text = value if isinstance(value, str | int) else f"{value:.4g}"
        print(f"  {name:20} {text}")
    return 0


def _seconds(function) -> tuple[float, float]:
    """Wall-clock and processor time [s] of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(function())
    return time.perf_counter() - wall, time.process_time() - cpu
