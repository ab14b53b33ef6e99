"""`cordax run`: one simulation of any machine, its summary and its files."""

import json as json_module
import math
from pathlib import Path
from typing import Literal

from .._base.checks import require
from .._jax.xla_flags import compile_quickly, compiles_quickly
from ..integrators import BY_NAME
from ..io import MachineFile, find_machine
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from .arguments import (
    Changes,
    IntegratorName,
    Machine,
    OutputFolder,
    Seconds,
    Stride,
    override,
    recording_header,
)
from .film_process import film_process
from .outputs import claim, run_files
from .pictures import has_geometry, write_pictures
from .progress import announce, import_in_background, timed
from .summary import facts


def run(
    machine: Machine,
    /,
    set: Changes = (),
    duration: Seconds = None,
    dt: Seconds = None,
    integrator: IntegratorName = None,
    save_every: Stride = None,
    output: OutputFolder = Path("outputs"),
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
    """Simulate a machine and write figures, a film and the trajectory.

    Prints a summary. Files in the output folder: NAME.png (the machine at several times),
    NAME_motion.png (its motion over time), NAME.gif (film) and NAME.npz (trajectory).

    For example:
        cordax run neck
        cordax run suspended --duration 3 --film none
        cordax run rod --set young=117e9 --set density=8960 --output outputs/copper
        cordax new cable_robot > robot.toml && cordax run robot.toml

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), a MuJoCo model
            (.xml, .urdf), or a saved trajectory (.npz), which is simulated again with the same
            inputs.
        set: change a key of the machine file; may be repeated. Examples: tendon.stiffness=2e5,
            bodies[1].at=[0,0,1], bars.width="4 cm".
        duration: simulated time.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        save_every: store every N-th step.
        output: folder for the files.
        figure: write the figures.
        film: format of the film; html is a page that plays in the browser.
        speed: playback speed of the film relative to real time.
        npz: write the trajectory.
        csv: write the trajectory as a table.
        progress: show a progress bar.
        json: print the summary as JSON.
        overwrite: replace existing files.
        allow_code: allow the file to import and run your own classes
            (kind = "my_module:MyMachine").
        optimised: compile with full optimisation. Compilation takes three times as long and the
            program runs three to six times faster: for runs of a minute and more.
    """
    if not optimised:
        compile_quickly()
    require(0 < speed < math.inf, "speed", speed, "a finite number > 0")
    stem = output / Path(machine).stem.replace("-", "_")
    claim(run_files(stem, figure, film, npz, csv), overwrite)
    with film_process(film) as filming:
        if figure:
            import_in_background("matplotlib.pyplot")
        with announce("reading the machine"):
            file = find_machine(machine, changes=set, code=allow_code)
        experiment = override(
            file.experiment,
            duration=duration,
            dt=dt,
            save_every=save_every,
            integrator=integrator,
        )
        with announce("compiling (cached for the next run)", not progress):
            trajectory, seconds = timed(lambda: simulate(experiment, progress=progress))
        summary = facts(trajectory, experiment, seconds)
        if compiles_quickly():
            summary["compiled"] = "without optimisation; use --optimised for long runs"
        if not json:
            print(about(file, experiment))
            if experiment.import_report is not None:
                print(experiment.import_report)
            print()
            for name, text in summary.items():
                print(f"  {name:24} {text}")
            print(flush=True)
        written: list[Path] = []

        def report(*paths: Path) -> None:
            written.extend(paths)
            for path in paths if not json else ():
                print(f"wrote {path}", flush=True)

        if npz:
            report(trajectory.save(_with_ending(stem, ".npz")))
        if csv:
            from ..io import write_csv

            header = recording_header(file.kind, _method(experiment), experiment.time_step)
            report(write_csv(_with_ending(stem, ".csv"), trajectory, about=header))
        if film != "none" and not has_geometry(trajectory):
            film = "none"
            summary["film"] = f"none: {type(experiment.system).__name__} has no `geometry`"
            if not json:
                print("no picture and no film: the machine has no `geometry`", flush=True)
        if film != "none":
            filming.begin(trajectory, _with_ending(stem, f".{film}"), file.name, speed)
        if figure:
            report(*write_pictures(trajectory, experiment, stem))
        if film != "none":
            with announce("drawing the film"):
                report(filming.finish())
    if json:
        result = {"machine": file.name, "kind": file.kind, "facts": summary}
        print(json_module.dumps(result | {"files": [str(p) for p in written]}, indent=2))
    return 0


def about(file: MachineFile, experiment: Experiment) -> str:
    """Two lines: size of the machine, then method, number of steps and duration."""
    system, dt = experiment.system, experiment.time_step
    size = f"{system.n_q} coordinates"
    size += f", {system.n_constraints} constraints" if system.n_constraints else ""
    size += f", {system.n_u} inputs" if system.n_u else ""
    formulation = experiment.formulation
    constraints = "" if formulation is None else f", {type(formulation).__name__}"
    assert experiment.duration is not None
    return (
        f"{type(system).__name__} '{file.name}': {size}\n"
        f"{_method(experiment)}{constraints}, {experiment.steps} steps of "
        f"{dt * 1e3:g} ms, total {experiment.duration:g} s"
    )


def _method(experiment: Experiment) -> str:
    """Name of the integrator as `--integrator` takes it."""
    method = experiment.integrator
    if method is None:
        return experiment.system.default_integrator
    names = [name for name, kind in BY_NAME.items() if type(method) is kind]
    inner = getattr(method, "inner", None)
    if not names and inner is not None:
        return f"{type(method).__name__.lower()} ({_method(experiment.replace(integrator=inner))})"
    return names[0] if names else type(method).__name__


def _with_ending(stem: Path, ending: str) -> Path:
    return stem.with_name(stem.name + ending)
