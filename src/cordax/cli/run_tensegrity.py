"""`cordax run tensegrity`: a strut or a manipulator follows a path; summary, figures and film."""

from pathlib import Path
from typing import Literal

import jax
import numpy as np

from ..control import Hermite, NearRigidQP
from ..simulate import simulate
from ..systems import single_strut, tensegrity_manipulator
from ..trajectory import Trajectory
from .outputs import claim, run_files
from .timing import timed

#: symmetric equilibrium of the manipulator in which the slackest cable carries 20 MPa
_ANGLES, _STRAINS = (-0.0252794, -0.2206120), (0.01, 0.0148825)


def run_tensegrity(
    machine: Literal["strut", "manipulator"] = "strut",
    modulus: float = 2e9,
    viscosity: float = 1e7,
    stress: float = 20e6,
    friction: float = 0.0,
    amplitude: float = 0.3,
    dt: float = 1e-3,
    duration: float = 4.0,
    save_every: int = 20,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "none"] = "gif",
    npz: bool = True,
    progress: bool = False,
    overwrite: bool = False,
) -> int:
    """Simulate a tensegrity machine under near-rigid inverse dynamics.

    The strut tilts by the amplitude and back; the manipulator lowers its end effector by it. Prints
    a summary and writes tensegrity.png, tensegrity_motion.png, tensegrity.gif and tensegrity.npz
    to the output folder.

    Args:
        machine: a strut on three cables, or three struts and six cables.
        modulus: of the cables in Pa.
        viscosity: of the cables in Pa s.
        stress: smallest tensile stress of the cables in Pa.
        friction: viscous, in the joints of the struts, in N m s.
        amplitude: of the motion in rad (strut) or m (manipulator).
        dt: step in seconds.
        duration: simulated time in seconds, a whole number of steps.
        save_every: store every n-th step.
        output: folder for the files.
        figure: write the shape at several instants, and motion and strains against time.
        film: write a film.
        npz: write the trajectory, exactly.
        progress: show a progress bar.
        overwrite: replace files that exist already.
    """
    claim(run_files(output / "tensegrity", figure, film, npz), overwrite)
    least = stress / modulus
    options = {"modulus": modulus, "viscosity": viscosity, "friction": friction}
    times = [0.0, 0.5 * duration, duration]
    if machine == "strut":
        system = single_strut(**options)
        start = system.state_at((0.0, 0.0), least)
        path = Hermite(times, [[0.0, 0.0], [amplitude, 0.5 * amplitude], [0.0, 0.0]], _rest(2))
        control = NearRigidQP(system, path, least, followed=("cross", "strut"))
        followed = "angles"
    else:
        system = tensegrity_manipulator(**options)
        strains = np.array(_STRAINS * 3) * least / _STRAINS[0]
        start = system.state_at(_ANGLES * 3, strains)
        place = np.asarray(start.q[4:7])
        low = place - [0.0, 0.0, amplitude]
        path = Hermite(times, np.stack([place, low, place]), _rest(3))
        control = NearRigidQP(system, path, least, point=("ee", (0.0, 0.0, 0.0)))
        followed = "end_effector"
    keep = {"dt": dt, "duration": duration, "save_every": save_every, "control": control}
    run, wall_time = timed(
        lambda bar: simulate(system, start, progress=bar, **keep), duration, progress
    )
    off = np.asarray(run.outputs[followed]) - np.asarray(jax.vmap(path.position)(run.t))
    tension = run.outputs["tension"]
    unit = "rad" if machine == "strut" else "m"
    lines = {
        "deviation": f"at most {np.abs(off).max():.3e} {unit} at stored instants",
        "strain": f"{np.min(run.outputs['strain']):.3e} at least, bound {least:.3e}",
        "tension": f"{np.min(tension):.4g} to {np.max(tension):.4g} N",
        "torque": f"{np.abs(run.u).max():.4g} N m at most",
        "loops": f"open by at most {np.max(run.violation):.1e} m",
        "wall time": wall_time,
    }
    print(f"Tensegrity {machine}: {len(system.bodies)} bodies, {system.n_constraints} constraints")
    print(f"{round(duration / dt)} steps of {dt * 1e3:g} ms, {duration:g} s in all\n")
    for name, text in lines.items():
        print(f"  {name:24} {text}")
    print()
    for file in _write(run, followed, output, figure, film, npz):
        print(f"wrote {file}")
    return 0


def _rest(size: int):
    return np.zeros((3, size))


def _write(run: Trajectory, followed: str, output: Path, figure, film, npz) -> list[Path]:
    if figure or film != "none":
        import matplotlib

        matplotlib.use("Agg")  # files only: no window system needed
    written: list[Path] = []
    if npz:
        written.append(run.save(output / "tensegrity.npz"))
    if figure:
        from ..plot import plot_snapshots, plot_states, save_figure

        t = np.asarray(run.t)
        picture = plot_snapshots(run, np.linspace(t[0], t[-1], 3).tolist())
        written.append(save_figure(picture, output / "tensegrity.png"))
        states = plot_states(run, [followed, "strain", "tension"])
        written.append(save_figure(states, output / "tensegrity_motion.png"))
    if film != "none":
        from ..plot import animate

        written.append(animate(run, output / f"tensegrity.{film}", title="tensegrity"))
    return written
