"""`cordax run cable-robot`, `cordax run robot.toml`: a simulation, its summary and its files."""

from pathlib import Path
from typing import Literal

import numpy as np

from ..io import RobotFile, example_path, read_robot
from ..trajectory import Trajectory
from .outputs import claim, run_files
from .timing import timed


def run_robot(
    example: Literal["suspended", "pick_and_place", "overturning", "eight_cables"] = "suspended",
    robot: Path | None = None,
    dt: float | None = None,
    duration: float | None = None,
    integrator: str | None = None,
    slack: Literal["report", "unilateral"] | None = None,
    save_every: int | None = None,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "none"] = "gif",
    speed: float = 1.0,
    npz: bool = True,
    csv: bool = False,
    progress: bool = False,
    overwrite: bool = False,
) -> int:
    """Simulate a cable robot: a shipped example, or your own from a TOML file.

    Prints a summary and writes figures, a film and the trajectory to the output folder, named like
    the file. `cordax run my.toml` is short for `cordax run cable-robot --robot my.toml`.

    Args:
        example: a shipped robot: a plate hung from pulleys and pushed, a pick and place, a triangle
            overturned by a moving exit, a box on eight cables.
        robot: file that describes a robot, instead of an example; docs/cable-robot.md has its keys.
        dt: step in seconds; that of the file by default, as all that follow.
        duration: simulated time in seconds, a whole number of steps.
        integrator: see `cordax list`.
        slack: report when a rigid cable would have to push, or let cables go slack (unilateral).
        save_every: store every n-th step.
        output: folder for the files.
        figure: write the robot at four instants, and pose, tensions and swivel angles against time.
        film: write a film.
        speed: of the film, times real time.
        npz: write the trajectory, exactly.
        csv: write the trajectory as a table.
        progress: show a progress bar.
        overwrite: replace files that exist already.
    """
    path = example_path(example) if robot is None else robot
    claim(run_files(output / path.stem, figure, film, npz, csv), overwrite)
    asked = {
        "dt": dt,
        "duration": duration,
        "integrator": integrator,
        "slack": slack,
        "save_every": save_every,
    }
    file = read_robot(path)._replace(**{k: v for k, v in asked.items() if v is not None})
    run, wall_time = timed(lambda bar: file.simulate(progress=bar), file.duration, progress)
    print(about(file))
    print()
    for name, text in (summary(run) | {"wall time": wall_time}).items():
        print(f"  {name:24} {text}")
    print()
    for written in _write(run, file.name, output / path.stem, figure, film, speed, npz, csv):
        print(f"wrote {written}")
    return 0


def about(file: RobotFile) -> str:
    """What is simulated, in two lines."""
    robot = file.robot
    parts = [type(part).__name__ for part in (robot.exits, robot.drives, robot.cables)]
    method = f"unilateral ({file.integrator})" if file.slack == "unilateral" else file.integrator
    formulation = "" if file.formulation is None else f", {type(file.formulation).__name__}"
    return (
        f"CableRobot '{file.name}': {robot.n_cables} cables, {', '.join(parts)}\n"
        f"{method}{formulation}, {round(file.duration / file.dt)} steps of {file.dt * 1e3:g} ms, "
        f"{file.duration:g} s in all"
    )


def summary(run: Trajectory) -> dict[str, str]:
    """What happened, name to text."""
    lines = run._known_system("summary").summary(run)
    if run.events is not None:
        lines |= _events(run)
    lines["constraints violated"] = f"by at most {float(np.max(np.asarray(run.drift()))):.1e}"
    return lines


def _events(run: Trajectory, shown: int = 8) -> dict[str, str]:
    events = run.events
    assert events is not None
    times, kinds = np.asarray(events.time), np.asarray(events.kind)
    found = np.flatnonzero(np.isfinite(times))
    lines = {"cables let go": f"{np.sum(kinds[found] < 0)} times"}
    for number, i in enumerate(found[:shown], 1):
        what = f"is caught, {float(events.impulse[i]):.4f} N s" if kinds[i] > 0 else "lets go"
        lines[f"  event {number}"] = f"t = {times[i]:.5f} s: cable {int(events.row[i]) + 1} {what}"
    if len(found) > shown:
        lines["  and"] = f"{len(found) - shown} events more"
    return lines


def _write(run: Trajectory, name, stem: Path, figure, film, speed, npz, csv) -> list[Path]:
    if figure or film != "none":
        import matplotlib

        matplotlib.use("Agg")  # files only: no window system needed
    beside = lambda end: stem.with_name(stem.name + end)
    written: list[Path] = []
    if npz:
        written.append(run.save(beside(".npz")))
    if csv:
        from ..io import write_csv

        written.append(write_csv(beside(".csv"), run))
    if figure:
        from ..plot import plot_pose, plot_snapshots, save_figure

        t = np.asarray(run.t)
        picture = plot_snapshots(run, np.linspace(t[0], t[-1], 4).tolist())
        written.append(save_figure(picture, beside(".png")))
        written.append(save_figure(plot_pose(run), beside("_motion.png")))
    if film != "none":
        from ..plot import animate

        written.append(animate(run, beside(f".{film}"), title=name, speed=speed))
    return written
