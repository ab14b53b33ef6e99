"""`cordax run neck`: one simulation, its summary and its files."""

import math
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import as_float_array
from ..control import ComputedTorque, RaisedCosine
from ..reproduce.neck.setup import DURATION, amplitude
from ..simulate import simulate
from ..systems import Neck
from ..systems.neck.tendons import ElasticTendon, RigidTendon
from ..trajectory import Trajectory
from .made_by import made_by
from .outputs import claim, run_files
from .timing import timed

#: tension of every tendon while the motors are not controlled [N]
_PRESTRESS = 20.0


def run_neck(
    joints: int = 3,
    tendons: Literal["elastic", "rigid"] = "elastic",
    routing: Literal["single", "cumulative"] = "single",
    dt: float = 2e-3,
    integrator: str = "linearly_implicit_euler",
    duration: float = DURATION,
    control: bool = True,
    gravity: float = 9.81,
    stiffness: float = 1e5,
    damping: float = 100.0,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "none"] = "gif",
    npz: bool = True,
    csv: bool = False,
    progress: bool = False,
    overwrite: bool = False,
) -> int:
    """Simulate the tendon-driven neck.

    Prints a summary and writes neck.png, neck.gif and neck.npz to the output folder.

    Args:
        joints: number of X-joints, one or more.
        tendons: elastic tendons, or rigid ones.
        routing: tendons on the right pass one joint each (single) or all joints below
            (cumulative).
        dt: step in seconds.
        integrator: see `cordax list`.
        duration: simulated time in seconds, a whole number of steps.
        control: computed-torque control along a smooth motion; without it the neck is released
            from its bent posture under constant motor torques.
        gravity: in m/s^2; negative for a hanging neck, 0 for none.
        stiffness: of elastic tendons in N/m.
        damping: of elastic tendons in N s/m.
        output: folder for the files.
        figure: write neck.png, the neck at five instants, and neck_motion.png, angles, tensions
            and elongations against time.
        film: write the film neck.gif or neck.mp4.
        npz: write the trajectory, exactly, to neck.npz.
        csv: write the trajectory as a table to neck.csv.
        progress: show a progress bar.
        overwrite: replace files that exist already.
    """
    claim(run_files(output / "neck", figure, film, npz, csv), overwrite)
    tendon = ElasticTendon(stiffness, damping) if tendons == "elastic" else RigidTendon()
    neck = Neck.default(joints, tendon=tendon, routing=routing)
    neck = eqx.tree_at(lambda n: n.gravity, neck, as_float_array(gravity))
    controller = ComputedTorque(neck, RaisedCosine(amplitude(joints)))
    state0 = controller.start()
    law = controller
    if not control:
        tension = jnp.full(neck.n_tendons, _PRESTRESS)
        state0 = neck.state_at(amplitude(joints), tension=tension)
        law = -neck.motors.travel * tension

    def go(bar: bool) -> Trajectory:
        return simulate(
            neck,
            state0,
            dt=dt,
            duration=duration,
            integrator=integrator,
            control=law,
            progress=bar,
        )

    run, wall_time = timed(go, duration, progress)
    print(f"Neck: {joints} joints, {tendons} tendons, {routing} routing, gravity {gravity:g} m/s^2")
    print(f"{integrator}, {round(duration / dt)} steps of {dt * 1e3:g} ms, {duration:g} s in all")
    print()
    lines = summary(run, controller if control else None)
    for name, text in (lines | {"wall time": wall_time}).items():
        print(f"  {name:24} {text}")
    print()
    made = made_by("neck", integrator, dt)
    for path in _write(run, controller if control else None, output, figure, film, npz, csv, made):
        print(f"wrote {path}")
    return 0


def summary(run: Trajectory, controller: ComputedTorque | None) -> dict[str, str]:
    """What happened, name to text."""
    lines: dict[str, str] = {}
    if controller is not None:
        error = float(np.max(np.abs(controller.tracking_error(run))))
        lines["largest tracking error"] = f"{error:.3e} rad ({math.degrees(error):.3f} deg)"
    lines |= run._known_system("summary").summary(run)
    for name, first in run.warnings.items():
        if np.isfinite(first):
            lines["warning"] = f"{name.replace('_', ' ')} from t = {float(first):g} s"
    return lines


def _write(run: Trajectory, controller, output: Path, figure, film, npz, csv, made) -> list[Path]:
    if figure or film != "none":
        import matplotlib

        matplotlib.use("Agg")  # files only: no window system needed
    written: list[Path] = []
    if npz:
        written.append(run.save(output / "neck.npz"))
    if csv:
        from ..io import write_csv

        written.append(write_csv(output / "neck.csv", run, about=made))
    if figure:
        from ..plot import plot_snapshots, plot_states, save_figure

        written.append(save_figure(plot_snapshots(run), output / "neck.png"))
        system = run._known_system("figures")
        angles = [name for name in system.coordinate_names if name.startswith("alpha")]
        desired = None
        if controller is not None:
            reference = np.asarray(jax.vmap(controller.reference.position)(run.t))
            desired = dict(zip(angles, reference.T, strict=True))
        shown = [*angles, "tension"] + ["elongation"] * bool(np.any(np.asarray(run["elongation"])))
        motion = plot_states(run, shown, desired=desired)
        written.append(save_figure(motion, output / "neck_motion.png"))
    if film != "none":
        from ..plot import animate

        written.append(animate(run, output / f"neck.{film}"))
    return written
