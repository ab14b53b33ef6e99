"""`cordax sweep`: one machine in many variants."""

import json as json_module
from pathlib import Path

import numpy as np
from tyro.conf import Positional, UseAppendAction

from .._base.checks import require
from ..sweeps import Sweep, grid, latin_hypercube
from ..sweeps import sweep as run_sweep
from ..sweeps.tables import variation
from .machines import experiment_of, with_given


def sweep(
    machine: Positional[str],
    /,
    vary: UseAppendAction[tuple[str, ...]],
    measure: UseAppendAction[tuple[str, ...]] = (),
    set: UseAppendAction[tuple[str, ...]] = (),
    samples: int = 0,
    seed: int = 0,
    duration: float | None = None,
    dt: float | None = None,
    integrator: str | None = None,
    shard: int = 256,
    output: Path = Path("outputs/sweep"),
    worst: str = "",
    progress: bool = True,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Simulate a machine once for each combination of numbers, and keep measures of each motion.

    Results are written shard by shard to the output folder, with a table sweep.csv at the end.
    Started again with the same words, a sweep that was killed goes on: nothing finished is lost or
    computed twice. A changed machine, table or version of cordax is noticed.

    For example:
        cordax sweep neck --vary tendon.stiffness=1e4:1e6:64:log --measure "largest tension"
        cordax sweep suspended --vary platform.mass=8:16:9 --vary drives.lengths[0]=2.9,3.0

    Args:
        machine: an example of `cordax list`, a machine file, or a saved trajectory.
        vary: name=from:to:count, name=from:to:count:log or name=value,value,...; names are those
            of the machine's numbers, as in `cordax fit`. Several --vary make all combinations.
        measure: "KIND NAME", such as "largest tension" or "final x"; kinds are final, largest,
            smallest, span, rms. By default the largest of what shows the machine's motion.
        set: another value for a key of the file, as in `cordax run`.
        samples: instead of all combinations, so many rows spread evenly at random between the
            first and the last value of each --vary, in equal ratios for those with log.
        seed: of these rows.
        duration: simulated time in seconds; the machine's by default, as dt and integrator.
        dt: step in seconds.
        integrator: see `cordax list`.
        shard: variants that are computed and written together.
        output: folder of the sweep.
        worst: print the five variants with the largest value of this measure.
        progress: show a progress bar.
        json: print the result as JSON.
        overwrite: replace another sweep in the folder.
        allow_code: the file may name classes of yours.
    """
    experiment = experiment_of(machine, changes=set, code=allow_code)
    experiment = with_given(experiment, duration=duration, dt=dt, integrator=integrator)
    require(len(vary) > 0, "vary", "nothing", "at least one --vary name=from:to:count")
    axes = dict(variation(text) for text in vary)
    require(len(axes) == len(vary), "vary", ", ".join(vary), "each name once")
    if samples:
        ranges = {name: (float(x.min()), float(x.max())) for name, x in axes.items()}
        log = [name for name, text in zip(axes, vary, strict=True) if text.endswith(":log")]
        table = latin_hypercube(ranges, samples, seed=seed, log=log)
    else:
        table = grid(axes)
    measures = measure or tuple(f"largest {name}" for name in experiment.system.overview)
    found = run_sweep(
        experiment,
        table,
        measures,
        folder=output,
        shard=shard,
        overwrite=overwrite,
        progress=progress,
    )
    path = found.to_csv(output / "sweep.csv")
    if json:
        print(json_module.dumps(_facts(found, worst), indent=2))
    else:
        print(found.summary())
        for row in found.worst(worst) if worst else ():
            words = [f"{found.with_unit(name)} {_short(x)}" for name, x in row.items()]
            print("  " + ", ".join(words))
        print(f"wrote {path}")
    return 0 if found.succeeded.all() else 1


def _facts(found: Sweep, worst: str) -> dict:
    return {
        "variants": found.size,
        "succeeded": int(found.succeeded.sum()),
        "varied": {name: x.tolist() for name, x in found.table.items()},
        "measures": {
            name: [None if np.any(np.isnan(v)) else v for v in x.tolist()]
            for name, x in found.measures.items()
        },
        "units": found.units,
        "result": found.result.tolist(),
        "worst": [{k: _plain(x) for k, x in row.items()} for row in found.worst(worst)]
        if worst
        else [],
    }


def _plain(x):
    return x.tolist() if isinstance(x, np.ndarray) else x


def _short(x) -> str:
    if isinstance(x, np.ndarray):
        return f"[{', '.join(f'{v:.6g}' for v in x.reshape(-1))}]"
    return f"{x:.6g}" if isinstance(x, float) else str(x)
