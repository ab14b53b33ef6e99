"""`cordax run`: one simulation of any machine, its summary and its files."""

import json as json_module
import math
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, UseAppendAction

from .._base.checks import require
from .._jax.xla_flags import compiles_quickly
from ..integrators import BY_NAME
from ..io import MachineFile, find_machine
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from .film_process import filming
from .machines import with_given
from .made_by import made_by
from .outputs import claim, run_files
from .pictures import seen, write_pictures
from .progress import imported_beside, patient, timed
from .summary import facts


def run(
    machine: Positional[str],
    /,
    set: Annotated[UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="KEY=VALUE")] = (),
    duration: float | None = None,
    dt: float | None = None,
    integrator: str | None = None,
    save_every: int | None = None,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "html", "none"] = "gif",
    speed: float = 1.0,
    npz: bool = True,
    csv: bool = False,
    progress: bool = False,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
    optimised: bool = False,
) -> int:
    """Simulate a machine: a shipped one by name, or yours from a file.

    Prints a summary and writes NAME.png (the machine at several instants), NAME_motion.png (what
    shows its motion against time), a film and the trajectory NAME.npz to the output folder.

    For example:
        cordax run neck
        cordax run suspended --duration 3 --film none
        cordax run rod --set young=117e9 --set density=8960 --output outputs/copper
        cordax new cable_robot > robot.toml && cordax run robot.toml

    Args:
        machine: an example of `cordax list`, a machine file (machine.toml), or a saved
            trajectory (run.npz), whose machine is run again as it was driven.
        set: another value for a key of the file, as often as needed: tendon.stiffness=2e5,
            bodies[1].at=[0,0,1], bars.width="4 cm".
        duration: simulated time in seconds; that of the file by default, as all that follow.
        dt: step in seconds.
        integrator: see `cordax list`.
        save_every: store every n-th step.
        output: folder for the files.
        figure: write the figures.
        film: write a film, or a page that plays in a browser (html).
        speed: of the film, times real time.
        npz: write the trajectory, exactly.
        csv: write the trajectory as a table.
        progress: show a progress bar.
        json: print the summary as JSON.
        overwrite: replace files that exist already.
        allow_code: the file may name classes of yours, kind = "my_module:MyMachine": their code is
            run.
        optimised: compile a program that runs three to six times faster, in three times as long:
            for runs of a minute and more.
    """
    del optimised  # heeded before JAX starts, by `main`
    require(0 < speed < math.inf, "speed", speed, "a finite number > 0")
    stem = output / Path(machine).stem.replace("-", "_")
    claim(run_files(stem, figure, film, npz, csv), overwrite)
    with filming(film) as filmed:
        if figure:
            imported_beside("matplotlib.pyplot")
        with patient("reading the machine"):
            file = find_machine(machine, changes=set, code=allow_code)
        experiment = with_given(
            file.experiment,
            duration=duration,
            dt=dt,
            save_every=save_every,
            integrator=integrator,
        )
        with patient("compiling (less the next time: programs are kept)", not progress):
            trajectory, seconds = timed(lambda: simulate(experiment, progress=progress))
        found = facts(trajectory, experiment, seconds)
        if compiles_quickly():
            found["compiled"] = "fast rather than well; --optimised for speed and long runs"
        if not json:
            print(about(file, experiment))
            print()
            for name, text in found.items():
                print(f"  {name:24} {text}")
            print(flush=True)
        written: list[Path] = []

        def wrote(*paths: Path) -> None:
            written.extend(paths)
            for path in paths if not json else ():
                print(f"wrote {path}", flush=True)

        if npz:
            wrote(trajectory.save(_beside(stem, ".npz")))
        if csv:
            from ..io import write_csv

            made = made_by(file.kind, _method(experiment), step(experiment))
            wrote(write_csv(_beside(stem, ".csv"), trajectory, about=made))
        if film != "none" and not seen(trajectory):
            film = "none"
            found["film"] = f"none: {type(experiment.system).__name__} has no `geometry` to draw"
            if not json:
                print("no picture and no film of the machine, which has no `geometry`", flush=True)
        if film != "none":
            filmed.begin(trajectory, _beside(stem, f".{film}"), file.name, speed)
        if figure:
            wrote(*write_pictures(trajectory, experiment, stem))
        if film != "none":
            with patient("drawing the film"):
                wrote(filmed.finish())
    if json:
        said = {"machine": file.name, "kind": file.kind, "facts": found}
        print(json_module.dumps(said | {"files": [str(p) for p in written]}, indent=2))
    return 0


def about(file: MachineFile, experiment: Experiment) -> str:
    """What is simulated, in two lines."""
    system, dt = experiment.system, step(experiment)
    size = f"{system.n_q} coordinates"
    size += f", {system.n_constraints} constraints" if system.n_constraints else ""
    size += f", {system.n_u} inputs" if system.n_u else ""
    formulation = experiment.formulation
    how = "" if formulation is None else f", {type(formulation).__name__}"
    assert experiment.duration is not None
    return (
        f"{type(system).__name__} '{file.name}': {size}\n"
        f"{_method(experiment)}{how}, {round(experiment.duration / dt)} steps of {dt * 1e3:g} ms, "
        f"{experiment.duration:g} s in all"
    )


def step(experiment: Experiment) -> float:
    """[s]"""
    return experiment.system.default_dt if experiment.dt is None else experiment.dt


def _method(experiment: Experiment) -> str:
    """The integrator by the name that options take."""
    method = experiment.integrator
    if method is None:
        return experiment.system.default_integrator
    names = [name for name, kind in BY_NAME.items() if type(method) is kind]
    inner = getattr(method, "inner", None)
    if not names and inner is not None:
        return f"{type(method).__name__.lower()} ({_method(experiment.replace(integrator=inner))})"
    return names[0] if names else type(method).__name__


def _beside(stem: Path, end: str) -> Path:
    return stem.with_name(stem.name + end)
