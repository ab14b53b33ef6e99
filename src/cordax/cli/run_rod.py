"""`cordax run rod`: a rod falls between its ends; summary, figures and film."""

from pathlib import Path
from typing import Literal

import jax.numpy as jnp
import numpy as np

from ..integrators import BY_NAME
from ..simulate import simulate
from ..systems import SplineRod
from ..systems.rod.ends import End
from ..trajectory import Trajectory
from .outputs import claim, run_files
from .timing import timed

#: E [Pa], nu, density [kg/m^3]; "soft" is the modulus at which the paper's steps are stable
MATERIALS = {
    "aluminium": (69e9, 0.33, 2700.0),
    "copper": (117e9, 0.34, 8960.0),
    "steel": (200e9, 0.29, 7850.0),
    "nylon": (2.7e9, 0.39, 1150.0),
    "soft": (2.5e6, 0.33, 2700.0),
}


def run_rod(
    material: Literal["aluminium", "copper", "steel", "nylon", "soft"] = "aluminium",
    length: float = 2.0,
    diameter: float = 2e-3,
    control_points: int = 9,
    ends: Literal["sliding", "pinned", "clamped"] = "sliding",
    spring: float = 50.0,
    damping: float = 0.0,
    force: float = 0.0,
    frequency: float = 1.0,
    integrator: str = "generalised_alpha",
    dt: float = 2e-3,
    duration: float = 2.0,
    save_every: int = 5,
    output: Path = Path("outputs"),
    figure: bool = True,
    film: Literal["gif", "mp4", "none"] = "gif",
    npz: bool = True,
    progress: bool = False,
    overwrite: bool = False,
) -> int:
    """Simulate a rod, straight at first, released under its weight.

    Prints a summary and writes rod.png, rod_motion.png, rod.gif and rod.npz to the output folder.

    Args:
        material: modulus, Poisson's ratio and density.
        length: in m.
        diameter: in m.
        control_points: of the spline, 5 or more.
        ends: sliding along x against springs, pinned, or clamped.
        spring: stiffness of sliding ends in N/m.
        damping: of Kelvin and Voigt, in s.
        force: amplitude of a sideways force at the middle in N.
        frequency: of that force in Hz.
        integrator: see `cordax list`.
        dt: step in seconds.
        duration: simulated time in seconds, a whole number of steps.
        save_every: store every n-th step.
        output: folder for the files.
        figure: write the shape at several instants, and control points and energy against time.
        film: write a film.
        npz: write the trajectory, exactly.
        progress: show a progress bar.
        overwrite: replace files that exist already.
    """
    claim(run_files(output / "rod", figure, film, npz), overwrite)
    young, poisson, density = MATERIALS[material]
    kinds = {"sliding": lambda: End.sliding(spring), "pinned": End.pinned, "clamped": End.clamped}
    rod = SplineRod(
        length,
        diameter,
        density,
        young,
        poisson,
        left=kinds[ends](),
        right=kinds[ends](),
        control_points=control_points,
        damping=damping,
        viscous=damping > 0,
        loads=(0.5,),
    )
    push = lambda t, state: jnp.stack(
        [0.0 * t, force * jnp.sin(2.0 * jnp.pi * frequency * t), 0.0 * t]
    )
    options = {"dt": dt, "duration": duration, "integrator": integrator, "save_every": save_every}
    go = lambda bar: simulate(rod, control=push, progress=bar, **options)
    run, wall_time = timed(go, duration, progress)
    print(f"SplineRod: {material}, {length:g} m, {diameter * 1e3:g} mm, {ends} ends")
    print(f"{integrator}, {round(duration / dt)} steps of {dt * 1e3:g} ms, {duration:g} s in all")
    print()
    for name, text in (summary(run, rod, dt, integrator) | {"wall time": wall_time}).items():
        print(f"  {name:24} {text}")
    print()
    for path in _write(run, output, figure, film, npz):
        print(f"wrote {path}")
    return 0


def summary(run: Trajectory, rod: SplineRod, dt: float, integrator: str) -> dict[str, str]:
    """What happened, name to text."""
    energy = np.asarray(run.energy()["total"])
    frequency = rod.fastest_frequency()
    lines = rod.summary(run) | {
        "energy": f"{energy[0]:.4e} J at first, changes by up to {np.ptp(energy):.1e} J",
    }
    if frequency is not None:
        limit = BY_NAME["forest_ruth_4"].oscillator_limit / frequency
        lines["explicit limit"] = f"{limit * 1e6:.3g} us for Forest-Ruth; dt is {dt * 1e6:g} us"
    return lines


def _write(run: Trajectory, output: Path, figure, film, npz) -> list[Path]:
    if figure or film != "none":
        import matplotlib

        matplotlib.use("Agg")  # files only: no window system needed
    written: list[Path] = []
    if npz:
        written.append(run.save(output / "rod.npz"))
    if figure:
        from ..plot import plot_snapshots, plot_states, save_figure

        t = np.asarray(run.t)
        picture = plot_snapshots(run, np.linspace(t[0], t[-1], 4).tolist())
        written.append(save_figure(picture, output / "rod.png"))
        written.append(save_figure(plot_states(run, ["centre", "sag"]), output / "rod_motion.png"))
    if film != "none":
        from ..plot import animate

        written.append(animate(run, output / f"rod.{film}", title="rod"))
    return written
