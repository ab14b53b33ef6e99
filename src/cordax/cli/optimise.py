"""`cordax optimise`: numbers of a machine that make a measure of its motion small."""

import json as json_module
import warnings
from pathlib import Path
from typing import Annotated

import jax.numpy as jnp
import tyro
from tyro.conf import Positional, UseAppendAction

from .._base.atomic_files import replacing
from .._base.checks import require
from ..io import find_machine
from ..optimisation import Constraint
from ..optimisation import optimise as search
from ..parameters.parameter import Parameter
from ..sweeps.measures import Measure
from .machines import with_given
from .outputs import claim
from .progress import patient
from .words import number


def optimise(
    machine: Positional[str],
    /,
    change: UseAppendAction[tuple[str, ...]],
    minimise: str,
    keep: UseAppendAction[tuple[str, ...]] = (),
    set: Annotated[UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = (),
    duration: float | None = None,
    dt: float | None = None,
    integrator: str | None = None,
    max_steps: int = 50,
    output: Path = Path("outputs"),
    npz: bool = True,
    progress: bool = False,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Find numbers of a machine, its controller or its start that make a measure of its motion
    small, by derivatives through the simulation.

    Prints what was found and writes NAME_optimum.json and the motion NAME_optimum.npz. For costs
    of your own use cordax.optimise in Python.

    For example:
        cordax optimise suspended --change platform.mass=2:10 --minimise "span position"
        cordax optimise neck --change control.K_d=5:40 --minimise "rms d_alpha_1" --keep tension=4:

    Args:
        machine: an example of `cordax list`, or a machine file.
        change: NAME=LOW:HIGH, or NAME without bounds, as often as needed; names as in `cordax fit`.
        minimise: "KIND NAME", such as "largest tension"; kinds are final, largest, smallest, span,
            rms. Of a quantity with components, the root of the sum of their squares.
        keep: NAME=LOW:HIGH, either may be left out: what a quantity must keep at all stored
            instants.
        set: another value for a key of the file, as in `cordax run`.
        duration: simulated time in seconds; that of the file by default, as dt and integrator.
        dt: step in seconds.
        integrator: see `cordax list`.
        max_steps: iterations at most.
        output: folder for the files.
        npz: write the motion that was found.
        progress: print a line for each iteration.
        json: print the result as JSON.
        overwrite: replace files that exist already.
        allow_code: the file may name classes of yours.
    """
    stem = output / f"{Path(machine).stem}_optimum"
    files = [stem.with_name(stem.name + end) for end in [".json"] + [".npz"] * npz]
    claim(files, overwrite)
    measure = Measure.read(minimise)
    limits = [Constraint(name, low, high) for name, low, high in map(_range, keep)]
    experiment = find_machine(machine, changes=set, code=allow_code).experiment
    experiment = with_given(experiment, duration=duration, dt=dt, integrator=integrator)
    cost = lambda run: jnp.sqrt(jnp.sum(measure(run) ** 2))
    with warnings.catch_warnings(), patient("compiling (less the next time: programs are kept)"):
        warnings.simplefilter("ignore", UserWarning)  # the summary says the same
        found = search(
            experiment,
            [_parameter(text) for text in change],
            cost,
            limits,
            max_steps=max_steps,
            progress=progress,
        )
    facts = {
        "values": found.values,
        "start": found.start,
        "cost": found.cost,
        "start_cost": found.start_cost,
        "violations": found.violations,
        "succeeded": found.succeeded,
        "reason": found.reason,
    }
    with replacing(files[0]) as part:
        part.write_text(json_module.dumps(facts, indent=2) + "\n")
    if npz:
        found.trajectory.save(files[1])
    if json:
        print(json_module.dumps(facts | {"files": [str(p) for p in files]}, indent=2))
    else:
        print(found.summary())
        for path in files:
            print(f"wrote {path}")
    return 0 if found.succeeded else 1


def _parameter(text: str) -> Parameter:
    name, sign, _ = text.partition("=")
    if not sign:
        return Parameter(name.strip())
    name, low, high = _range(text)
    return Parameter(name, bounds=(low, high))


def _range(text: str) -> tuple[str, float, float]:
    """NAME=LOW:HIGH; infinite where nothing is said."""
    name, sign, values = text.partition("=")
    low, colon, high = values.partition(":")
    require(bool(sign and colon), "range", repr(text), "NAME=LOW:HIGH")
    end = lambda x, default: number(name, x) if x.strip() else default
    return name.strip(), end(low, -float("inf")), end(high, float("inf"))
