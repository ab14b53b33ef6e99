"""Simulation of one experiment for every row of a table of parameter values."""

import dataclasses
import pickle
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._base.checks import require, require_instance, require_whole
from .._base.precision import enable_x64
from .._base.results import GOOD, LABELS
from .._jax import library_code
from .._jax.identity import digest_of
from ..mechanics.units import unit_of
from ..parameters.parameter import Vary, unit_of_parameter, varied
from ..recordings.recording import observe
from ..simulation.batch import simulate_batch
from ..simulation.experiment import Experiment
from . import shard_files
from .measures import Measure, as_measures, name_of, sums
from .result import Sweep, together
from .tables import checked


def sweep(
    experiment: Experiment,
    vary: Mapping[str, Sequence[float]],
    measures: Sequence[str | Callable],
    *,
    envelope: Sequence[str] = (),
    folder: str | Path | None = None,
    shard: int = 256,
    chunk: int = 64,
    executor: Executor | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Sweep:
    """Simulate an experiment once for each row of a table.

    **Arguments:**

    - `experiment`: the experiment to simulate; it must have a `duration`.
    - `vary`: columns of parameter values by name, as in `Parameter` ("tendon.stiffness",
      "state0.q[0]"), with one row for each variant: `grid({...})`, `latin_hypercube({...}, n)`, or
      any columns of equal length.
    - `measures`: quantities that are stored for each variant: "largest tension", "final x",
      `Measure`s, or named functions of a trajectory.
    - `envelope`: quantities whose mean, standard deviation and extremes over all variants are
      stored at every stored instant.
    - `folder`: folder to which each shard is written as soon as it is finished. A sweep that was
      killed resumes from there; finished shards are neither lost nor computed again. A folder with
      a sweep of another experiment, table or code (functions, classes and global values of the user
      included) is rejected unless `overwrite`. If a folder is overwritten while an older sweep
      still runs in it, the older sweep stops.
    - `shard`: number of rows that are computed and written together; `chunk` as in
      `simulate_batch`.
    - `executor`: any `concurrent.futures.Executor` (a process pool, or that of dask or ray); each
      shard is one task. By default shards run in this process. With several processes of
      `jax.distributed`, each process computes its share of the shards.
    - `progress`: show a progress bar.

    A variant that fails does not affect the others: its `result` is the reason, and its measures
    are NaN.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    swing = cordax.Experiment(Pendulum(), duration=1.0, dt=0.01)
    found = cordax.sweep(swing, {"length": [0.8, 1.0, 1.2]}, ["largest angle"])
    print(found.summary())
    ```
    """
    require_instance("experiment", experiment, Experiment)
    require(experiment.duration is not None, "duration", None, "an experiment with a duration [s]")
    table = checked(vary)
    require_whole("shard", shard, 1)
    # check names and shapes
    varied(experiment, {name: column[0] for name, column in table.items()})
    rows = len(next(iter(table.values())))
    chosen = as_measures(measures)
    job = Job(experiment, chosen, tuple(envelope), chunk, bool(jax.config.jax_enable_x64))  # pyright: ignore
    require(len(chosen) + len(envelope) > 0, "measures", measures, "something to keep")
    place, units = None if folder is None else Path(folder), _units(experiment, table, chosen)
    count = -(-rows // shard)
    found: list[dict | None] = [None] * count
    part = lambda i: {name: x[i * shard : (i + 1) * shard] for name, x in table.items()}
    if place is not None:
        page = _page(job, table, rows, shard) | {"units": units}
        shard_files.open_folder(place, page, table, overwrite)
        job = dataclasses.replace(job, page=page)
        origin = lambda i: shard_files.origin_of(page, i, part(i))
        found = [shard_files.read_shard(place, i, origin(i)) for i in range(count)]
    mine = range(jax.process_index(), count, jax.process_count())
    todo = [i for i in mine if found[i] is None]
    bar = _bar(rows, rows - sum(len(_first(part(i))) for i in todo)) if progress else None
    for i, result in _results(job, executor, place, {i: part(i) for i in todo}):
        found[i] = result
        if bar is not None:
            bar.update(len(_first(part(i))))
    if bar is not None:
        bar.close()
    return together(table, shard, found, experiment, units)


@dataclasses.dataclass(frozen=True)
class Job:
    """Data that all shards of a sweep share."""

    experiment: Experiment
    measures: tuple[Any, ...]
    envelope: tuple[str, ...]
    chunk: int
    x64: bool
    page: dict[str, Any] | None = None


class _Keep:
    """Function that extracts measures and envelope quantities from a trajectory.

    Two instances with the same settings compare equal, so that nothing is compiled twice."""

    def __init__(self, measures, envelope):
        self.measures, self.envelope = measures, envelope

    def __call__(self, run):
        return {
            "measures": {name_of(m): m(run) for m in self.measures},
            "envelope": {name: observe(run, name, "envelope") for name in self.envelope},
            "t": run.t,
            "result": run.result,
            "failure_time": run.failure_time,
        }

    def __eq__(self, other):
        return isinstance(other, _Keep) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.measures, self.envelope))


def run_shard(job: Job, folder: Path | None, index: int, part: dict[str, np.ndarray]) -> dict:
    """Simulate the rows of one shard, and write the results to `folder` if it is given."""
    keep = _Keep(job.measures, job.envelope)
    kept = simulate_batch(Vary(job.experiment), part, chunk=job.chunk, keep=keep)
    codes = np.asarray(kept["result"])
    good = codes == GOOD
    found: dict[str, Any] = {
        "result": np.asarray(LABELS, dtype="<U32")[codes],
        "failure_time": np.asarray(kept["failure_time"]),
    }
    for name in map(name_of, job.measures):
        x = np.asarray(kept["measures"][name], dtype=float)
        found[f"measure/{name}"] = np.where(good.reshape(-1, *[1] * (x.ndim - 1)), x, np.nan)
    for name, x in kept["envelope"].items():
        found |= {f"envelope/{name}/{k}": v for k, v in sums(kept["t"], x, good).items()}
    if folder is not None:
        shard_files.write_shard(folder, index, found, job.page or {}, part)
    return found


def run_elsewhere(
    packed: bytes, x64: bool, expected: bytes | None, folder: Path | None, index: int, part
) -> dict:
    """Run `run_shard` in another process, whose precision is set before arrays are created.

    `expected` is the digest of the job in the process that began the sweep, None if it is not
    known. Raises `RuntimeError` if code or global values differ from those of that process."""
    if x64:
        enable_x64()
    job = pickle.loads(packed)
    digest = _code_of(job)
    if None not in (digest, expected) and digest != expected:
        raise RuntimeError(
            "this worker process has other code or other global values than the process that began "
            "the sweep; start the workers again"
        )
    return run_shard(job, folder, index, part)


def _code_of(job: Job) -> bytes | None:
    return digest_of(job.experiment, job.measures, library_code.code())


def _results(job: Job, executor: Executor | None, folder, parts: dict[int, dict]):
    """Yield the index and results of each shard when it is finished.

    With an executor, an error in one shard is raised only after the others are finished."""
    if executor is None:
        for i, part in parts.items():
            yield i, run_shard(job, folder, i, part)
        return
    packed = pickle.dumps(job)
    expected = _code_of(pickle.loads(packed))  # unpickled: objects are shared as in a worker
    job_of = lambda i: (packed, job.x64, expected, folder, i, parts[i])
    start = lambda i: executor.submit(run_elsewhere, *job_of(i))
    waiting = {start(i): i for i in parts}
    failed: list[tuple[int, BaseException]] = []
    try:
        for done in as_completed(waiting):
            if (error := done.exception()) is not None:
                failed.append((waiting[done], error))
            else:
                yield waiting[done], done.result()
    finally:
        for task in waiting:
            task.cancel()
    if failed:
        i, error = failed[0]
        raise RuntimeError(f"{len(failed)} shards failed, such as shard {i}: {error}") from error


def _units(experiment: Experiment, table, measures) -> dict[str, str]:
    """Units of the varied parameters and the measures by name, where they are known."""
    found = {name: unit_of_parameter(experiment, name) for name in table}
    named = [m for m in measures if isinstance(m, Measure)]
    found |= {m.name: unit_of(experiment.system, m.quantity) for m in named}
    return {name: unit for name, unit in found.items() if unit}


def _page(job: Job, table, rows: int, shard: int) -> dict[str, Any]:
    return {
        "format": shard_files.FORMAT,
        "cordax": version("cordax"),
        "code": library_code.code(),
        "experiment": _digest(job.experiment),
        "table": _digest(table),
        "measures": [name_of(m) for m in job.measures],
        "measures_code": _digest(job.measures),
        "envelope": list(job.envelope),
        "rows": rows,
        "shard": shard,
        "x64": job.x64,
        "varied": list(table),
    }


def _digest(thing: Any) -> str:
    """Digest of an object and of all objects that it refers to.

    If it cannot be determined, the result is a random text that equals no other digest."""
    digest = digest_of(thing)
    return uuid.uuid4().hex if digest is None else digest.hex()[:32]


def _first(part: dict[str, np.ndarray]) -> np.ndarray:
    return next(iter(part.values()))


def _bar(total: int, done: int):
    from tqdm.auto import tqdm

    return tqdm(total=total, initial=done, unit="variant")
