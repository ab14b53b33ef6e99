"""`cordax optimise`: parameters that minimise a measure of the motion."""

import json as json_module
import warnings
from pathlib import Path
from typing import Annotated

import jax.numpy as jnp
import tyro
from tyro.conf import UseAppendAction

from .._base.atomic_files import replacing
from .._base.checks import require
from ..io import find_machine
from ..optimisation import Constraint
from ..optimisation import optimise as search
from ..parameters.parameter import Parameter
from ..sweeps.measures import Measure
from .arguments import (
    Changes,
    IntegratorName,
    Machine,
    OutputFolder,
    Seconds,
    override,
    parse_range,
)
from .outputs import claim
from .progress import announce

Ranges = Annotated[tuple[str, ...], UseAppendAction, tyro.conf.arg(metavar="NAME=LOW:HIGH")]


def optimise(
    machine: Machine,
    /,
    change: Ranges,
    minimise: Annotated[str, tyro.conf.arg(metavar="MEASURE")],
    keep: Ranges = (),
    set: Changes = (),
    duration: Seconds = None,
    dt: Seconds = None,
    integrator: IntegratorName = None,
    max_steps: int = 50,
    output: OutputFolder = Path("outputs"),
    npz: bool = True,
    progress: bool = False,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Find parameters of a machine, its controller or its initial state that minimise a measure of
    the motion, with gradients through the simulation.

    Prints the optimum and writes NAME_optimum.json (values) and NAME_optimum.npz (trajectory). For
    other cost functions use `cordax.optimise` in Python.

    For example:
        cordax optimise suspended --change platform.mass=2:10 --minimise "span position"
        cordax optimise neck --change control.K_d=5:40 --minimise "rms d_alpha_1" --keep tension=4:

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), or a saved
            trajectory (.npz).
        change: parameter to optimise with its bounds, or NAME without bounds; may be repeated.
        minimise: "KIND QUANTITY", such as "largest tension". Kinds: final, largest, smallest,
            span, rms. For a vector the Euclidean norm over its components is minimised.
        keep: bounds of a quantity at all stored times; either bound may be omitted; may be
            repeated.
        set: change a key of the machine file; may be repeated. Example: tendon.stiffness=2e5.
        duration: simulated time.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        max_steps: maximum number of iterations.
        output: folder for the files.
        npz: write the trajectory.
        progress: print a line for each iteration.
        json: print the result as JSON.
        overwrite: replace existing files.
        allow_code: allow the file to import and run your own classes.
    """
    stem = output / f"{Path(machine).stem}_optimum"
    files = [stem.with_name(stem.name + end) for end in [".json"] + [".npz"] * npz]
    claim(files, overwrite)
    measure = Measure.read(minimise)
    limits = [_constraint(text) for text in keep]
    experiment = find_machine(machine, changes=set, code=allow_code).experiment
    experiment = override(experiment, duration=duration, dt=dt, integrator=integrator)
    cost = lambda run: jnp.sqrt(jnp.sum(measure(run) ** 2))
    with warnings.catch_warnings(), announce("compiling (cached for the next run)"):
        warnings.simplefilter("ignore", UserWarning)  # the summary contains the warnings
        optimum = search(
            experiment,
            [_parameter(text) for text in change],
            cost,
            limits,
            max_steps=max_steps,
            progress=progress,
        )
    facts = {
        "values": optimum.values,
        "start": optimum.start,
        "cost": optimum.cost,
        "start_cost": optimum.start_cost,
        "violations": optimum.violations,
        "succeeded": optimum.succeeded,
        "reason": optimum.reason,
    }
    with replacing(files[0]) as part:
        part.write_text(json_module.dumps(facts, indent=2) + "\n")
    if npz:
        optimum.trajectory.save(files[1])
    if json:
        print(json_module.dumps(facts | {"files": [str(p) for p in files]}, indent=2))
    else:
        print(optimum.summary())
        for path in files:
            print(f"wrote {path}")
    return 0 if optimum.succeeded else 1


def _parameter(text: str) -> Parameter:
    name, bounds = parse_range("change", text)
    return Parameter(name) if bounds is None else Parameter(name, bounds=bounds)


def _constraint(text: str) -> Constraint:
    name, bounds = parse_range("keep", text)
    require(bounds is not None, "keep", repr(text), "NAME=LOW:HIGH")
    return Constraint(name, *bounds)  # pyright: ignore[reportOptionalIterable]
