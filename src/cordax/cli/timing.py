"""How long a run takes, with and without compilation."""

import time
from collections.abc import Callable

import jax

from ..trajectory import Trajectory


def timed(go: Callable[[bool], Trajectory], duration: float, progress: bool):
    """The trajectory of `go(progress)` and a line on its wall time. Runs twice, so that compilation
    can be told from running; once with a progress bar, in whose pieces time means little."""

    def clocked(bar: bool) -> tuple[Trajectory, float]:
        start = time.perf_counter()
        run = go(bar)
        jax.block_until_ready(run.q)
        return run, time.perf_counter() - start

    run, with_compilation = clocked(progress)
    if progress:
        return run, f"{with_compilation:.2f} s with compilation"
    run, seconds = clocked(False)
    return run, (
        f"{seconds * 1e3:.1f} ms to run ({duration / seconds:.0f} times real time), "
        f"{max(0.0, with_compilation - seconds):.2f} s to compile or load"
    )
