"""`cordax run rope-robot`: ropes get slack and taut again; summary, figures and film."""

from pathlib import Path
from typing import Literal

import numpy as np

from ..reproduce.rope_robot.setup import lift
from ..simulate import simulate
from ..systems import two_rope_robot
from ..trajectory import Trajectory
from .made_by import made_by
from .outputs import claim, run_files
from .timing import timed

#: ropes that pull with less than this [N] are called slack
SLACK = 1.0


def run_rope_robot(
    segments: int = 20,
    axial_stiffness: float = 4.0e4,
    bending_stiffness: float = 0.01,
    force: float = 52.0,
    integrator: str = "generalised_alpha",
    dt: float = 1e-3,
    duration: float = 8.0,
    save_every: int = 10,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "none"] = "gif",
    npz: bool = True,
    csv: bool = False,
    progress: bool = False,
    overwrite: bool = False,
) -> int:
    """Simulate a plate of 5 kg on two ropes of 3 m, from rest.

    A force lifts the plate from 2 s on, the ropes get slack and buckle; from 4.5 s on it is taken
    away, and the plate falls into them. Prints a summary and writes rope_robot.png,
    rope_robot_motion.png, rope_robot.gif and rope_robot.npz to the output folder.

    Args:
        segments: of each rope.
        axial_stiffness: EA in N.
        bending_stiffness: EI in N m^2.
        force: largest lift in N; the plate weighs 49 N.
        integrator: see `cordax list`.
        dt: step in seconds.
        duration: simulated time in seconds, a whole number of steps.
        save_every: store every n-th step.
        output: folder for the files.
        figure: write the robot at several instants, and motion, tensions and force against time.
        film: write a film.
        npz: write the trajectory, exactly.
        csv: write the trajectory as a table.
        progress: show a progress bar.
        overwrite: replace files that exist already.
    """
    claim(run_files(output / "rope_robot", figure, film, npz, csv), overwrite)
    robot = two_rope_robot(segments, EA=axial_stiffness, EI=bending_stiffness)
    start, push = robot.rest(), lift(force)
    options = {"dt": dt, "duration": duration, "integrator": integrator, "save_every": save_every}
    go = lambda bar: simulate(robot, start, control=push, progress=bar, **options)
    run, wall_time = timed(go, duration, progress)
    print(f"RopeRobot: {robot.n_ropes} ropes of {segments} segments, {robot.n_q} coordinates")
    print(f"{integrator}, {round(duration / dt)} steps of {dt * 1e3:g} ms, {duration:g} s in all")
    print()
    for name, text in (summary(run) | {"wall time": wall_time}).items():
        print(f"  {name:24} {text}")
    print()
    made = made_by("RopeRobot", integrator, dt)
    for path in _write(run, output / "rope_robot", figure, film, npz, csv, made):
        print(f"wrote {path}")
    return 0


def summary(run: Trajectory) -> dict[str, str]:
    """What happened, name to text."""
    t, z = np.asarray(run.t), np.asarray(run["z"])
    tension = np.asarray(run.outputs["tension"])
    slack = t[np.all(tension < SLACK, axis=1)]
    times = f"{slack[0]:.2f} to {slack[-1]:.2f} s, with rebounds" if len(slack) else "never"
    when, rope = np.unravel_index(np.argmax(tension), tension.shape)
    return {
        "platform": f"z {z.min():.4f} to {z.max():.4f} m, {z[0]:.4f} m at rest",
        "tension at rest": " and ".join(f"{x:.2f}" for x in tension[0]) + " N",
        "both ropes slack": f"{times} (less than {SLACK:g} N)",
        "largest tension": f"{tension[when, rope]:.1f} N in rope {rope + 1} at {t[when]:.2f} s, of "
        "the instants stored",
        "gap at the platform": f"at most {np.max(run.violation):.1e} m",
    }


def _instants(run: Trajectory) -> list[float]:
    """At rest, in the middle of the rise, on top, at the hardest pull, at the end [s]."""
    t, tension = np.asarray(run.t), np.asarray(run.outputs["tension"])
    top = int(np.argmax(np.asarray(run["z"])))
    rows = [0, int(0.9 * top), top, int(np.argmax(tension.max(axis=1))), len(t) - 1]
    return [float(t[i]) for i in sorted(set(rows))]


def _write(run: Trajectory, stem: Path, figure, film, npz, csv, made) -> list[Path]:
    if figure or film != "none":
        import matplotlib

        matplotlib.use("Agg")  # files only: no window system needed
    beside = lambda end: stem.with_name(stem.name + end)
    written: list[Path] = []
    if npz:
        written.append(run.save(beside(".npz")))
    if csv:
        from ..io import write_csv

        written.append(write_csv(beside(".csv"), run, about=made))
    if figure:
        from ..plot import plot_snapshots, plot_states, save_figure

        picture = plot_snapshots(run, _instants(run))
        written.append(save_figure(picture, beside(".png")))
        states = plot_states(run, ["x", "z", "angle", "tension", "force_z"])
        written.append(save_figure(states, beside("_motion.png")))
    if film != "none":
        from ..plot import animate

        written.append(animate(run, beside(f".{film}"), title="rope robot"))
    return written
