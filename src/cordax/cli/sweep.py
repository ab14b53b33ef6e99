"""`cordax sweep`: simulate many variants of a machine."""

import json as json_module
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from tyro.conf import UseAppendAction

from .._base.checks import require
from ..io import experiment_of
from ..sweeps import Sweep, grid, latin_hypercube
from ..sweeps import sweep as run_sweep
from ..sweeps.tables import variation
from .arguments import Changes, IntegratorName, Machine, OutputFolder, Seconds, option, override


def sweep(
    machine: Machine,
    /,
    vary: Annotated[tuple[str, ...], UseAppendAction, tyro.conf.arg(metavar="NAME=VALUES")],
    measure: Annotated[tuple[str, ...], UseAppendAction, tyro.conf.arg(metavar="MEASURE")] = (),
    set: Changes = (),
    samples: int = 0,
    seed: int = 0,
    duration: Seconds = None,
    dt: Seconds = None,
    integrator: IntegratorName = None,
    shard: int = 256,
    output: OutputFolder = Path("outputs/sweep"),
    worst: Annotated[str, option("MEASURE", "none")] = "",
    progress: bool = True,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Simulate many combinations of parameter values and store measures of the motion.

    Results are written to the output folder in shards, and to a table sweep.csv at the end. The
    same command resumes an interrupted sweep: finished shards are not computed again. If the
    machine, the values or the version of cordax changed, resuming is an error.

    For example:
        cordax sweep neck --vary tendon.stiffness=1e4:1e6:64:log --measure "largest tension"
        cordax sweep suspended --vary platform.mass=8:16:9 --vary drives.lengths[0]=2.9,3.0

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), or a saved
            trajectory (.npz).
        vary: values of a parameter: NAME=FROM:TO:COUNT, NAME=FROM:TO:COUNT:log or
            NAME=VALUE,VALUE,... May be repeated: all combinations are simulated.
        measure: what to store, "KIND QUANTITY", such as "largest tension" or "final x"; may be
            repeated. Kinds: final, largest, smallest, span, rms (default: the largest value of
            each quantity in the machine's default plots).
        set: change a key of the machine file; may be repeated. Example: tendon.stiffness=2e5.
        samples: number of Latin hypercube samples between the smallest and the largest value of
            each --vary (uniform in the logarithm with :log); 0 simulates all combinations.
        seed: random seed of the samples.
        duration: simulated time.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        shard: number of variants that are computed as one batch and written as one file.
        output: folder for the files.
        worst: print the five variants with the largest value of this measure.
        progress: show a progress bar.
        json: print the result as JSON.
        overwrite: replace another sweep in the output folder.
        allow_code: allow the file to import and run your own classes.
    """
    experiment = experiment_of(machine, changes=set, code=allow_code)
    experiment = override(experiment, duration=duration, dt=dt, integrator=integrator)
    require(len(vary) > 0, "vary", "none", "at least one --vary NAME=FROM:TO:COUNT")
    axes = dict(variation(text) for text in vary)
    require(len(axes) == len(vary), "vary", ", ".join(vary), "each name once")
    if samples:
        ranges = {name: (float(x.min()), float(x.max())) for name, x in axes.items()}
        log = [name for name, text in zip(axes, vary, strict=True) if text.endswith(":log")]
        table = latin_hypercube(ranges, samples, seed=seed, log=log)
    else:
        table = grid(axes)
    system = experiment.system
    plots = system.presentation().plots or system.coordinate_names
    measures = measure or tuple(f"largest {name}" for name in plots)
    result = run_sweep(
        experiment,
        table,
        measures,
        folder=output,
        shard=shard,
        overwrite=overwrite,
        progress=progress,
    )
    path = result.to_csv(output / "sweep.csv")
    if json:
        print(json_module.dumps(_facts(result, worst), indent=2))
    else:
        print(result.summary())
        for row in result.worst(worst) if worst else ():
            words = [f"{result.with_unit(name)} {_short(x)}" for name, x in row.items()]
            print("  " + ", ".join(words))
        print(f"wrote {path}")
    return 0 if result.succeeded.all() else 1


def _facts(result: Sweep, worst: str) -> dict:
    return {
        "variants": result.size,
        "succeeded": int(result.succeeded.sum()),
        "varied": {name: x.tolist() for name, x in result.table.items()},
        "measures": {
            name: [None if np.any(np.isnan(v)) else v for v in x.tolist()]
            for name, x in result.measures.items()
        },
        "units": result.units,
        "result": result.result.tolist(),
        "worst": [{k: _plain(x) for k, x in row.items()} for row in result.worst(worst)]
        if worst
        else [],
    }


def _plain(x):
    return x.tolist() if isinstance(x, np.ndarray) else x


def _short(x) -> str:
    if isinstance(x, np.ndarray):
        return f"[{', '.join(f'{v:.6g}' for v in x.reshape(-1))}]"
    return f"{x:.6g}" if isinstance(x, float) else str(x)
