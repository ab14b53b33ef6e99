"""Total error against computing time on a metal wire, for several programs.

    python benchmarks/wire_precision.py --exudyn PYTHON [--plot docs/images/wire_precision.svg]

The damped wire of `benchmarks/rod.py` (Kelvin and Voigt, 1 ms) through its first 0.5 s, by cordax,
by MuJoCo (edges of fixed length, implicit) and, where `--exudyn` names an interpreter that has it,
by Exudyn (ANCF cables in space, generalised alpha, modified Newton). Each program runs with several
numbers of elements and several steps. All are compared with one reference: cordax with many control
points and short steps. `reference_mm` states how far the reference is from one with fewer control
points, from one with longer steps, and from fine runs of the other programs.

Prints one JSON object: for each run the processor time (minimum of several) and the largest and the
mean error of the height of the centre, every 10 ms: errors of space and time together. `front`
lists the runs of each program that no other run of it beats in both time and error. Without damping
the motion is chaotic, and no total error exists. `ten_seconds`: the damped wire until it has nearly
settled, at 2 ms."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
import rod  # noqa: E402

END, EVERY, DAMPING = 0.5, 0.01, 1e-3
TIMES = EVERY * np.arange(round(END / EVERY) + 1)
STEPS = (5e-4, 1e-3, 2e-3, 5e-3)
#: control points and step [s]: of the reference, and of runs that show how far it has converged
REFERENCE = (67, 1e-4)
CHECKS = {"fewer_control_points": (51, 1e-4), "longer_steps": (67, 2e-4)}
#: elements by program
POINTS = (11, 15, 19, 27, 35)
ELEMENTS = (8, 16, 32)
EDGES = (8, 16, 32, 64)
#: elements and step [s] of fine runs of other programs
FINE = {"exudyn": (64, 2e-4), "mujoco": (128, 1e-4)}
METHOD = cordax.GeneralisedAlpha()
ANCHORS = Path(__file__).parent / "anchors"


def centre(points: int, dt: float, end: float = END):
    """Height after every step: one compiled program serves all steps; to store them all and compute
    all outputs is part of the time."""
    wire, state = rod.wire(points, damping=DAMPING, viscous=True)
    run = cordax.simulate(wire, state, integrator=METHOD, dt=dt, duration=end)
    return run["centre"][:, 2]


def seconds(function, repeats: int = 5) -> float:
    """Processor time of a call, the minimum of several: other programs do not count."""
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(function())
        least = min(least, time.process_time() - start)
    return least


def heights(points: int, dt: float) -> np.ndarray:
    return np.asarray(centre(points, dt))[:: round(EVERY / dt)]


def other(
    program: str, python: str, count: int, *steps: float
) -> list[tuple[float, float, np.ndarray]]:
    """Step, processor time and heights of runs of another program. It may take shorter steps than
    asked; heights are interpolated between its instants."""
    given = {"exudyn": (END, DAMPING, 0.5, count), "mujoco": (DAMPING, count)}[program]
    command = [python, str(ANCHORS / f"wire_{program}.py"), *map(str, (*given, *steps))]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    runs = json.loads(shown.stdout.strip().splitlines()[-1])
    return [(run["dt"], run["s"], np.interp(TIMES, run["t"], run["z"])) for run in runs]


def row(program: str, count: int, dt: float, cost: float, z, exact) -> dict:
    off = 1e3 * np.abs(np.asarray(z) - exact)
    off = np.where(np.isfinite(off), off, np.inf)
    return {
        "program": program,
        "elements": count,
        "dt": dt,
        "ms": round(1e3 * cost, 2),
        "off_mm": {"largest": round(float(off.max()), 3), "mean": round(float(off.mean()), 3)},
    }


def front(rows: list[dict]) -> list[dict]:
    """Rows that no other row beats in both time and largest error, fastest first."""
    kept = []
    for candidate in sorted(rows, key=lambda r: r["ms"]):
        if not kept or candidate["off_mm"]["largest"] < kept[-1]["off_mm"]["largest"]:
            kept.append(candidate)
    return kept


def ten_seconds(python: str | None) -> dict:
    dt, end = 2e-3, 10.0
    found = {"cordax": seconds(lambda: centre(19, dt, end), repeats=3)}
    if python is not None:
        command = [python, str(ANCHORS / "wire_exudyn.py"), *map(str, (end, DAMPING, 0.8, 16, dt))]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        found["exudyn"] = json.loads(shown.stdout.strip().splitlines()[-1])[0]["s"]
    return {f"{name}_us_per_step": round(1e6 * s * dt / end, 1) for name, s in found.items()}


def main(python: str | None) -> dict:
    exact = heights(*REFERENCE)
    largest = lambda z: round(1e3 * float(np.abs(z - exact).max()), 3)
    apart = {name: largest(heights(*check)) for name, check in CHECKS.items()}
    rows = [
        row("cordax", n, dt, seconds(lambda n=n, dt=dt: centre(n, dt)), heights(n, dt), exact)
        for n in POINTS
        for dt in STEPS
    ]
    programs = {"mujoco": (sys.executable, EDGES)}
    if python is not None:
        programs["exudyn"] = python, ELEMENTS
    for program, (interpreter, counts) in programs.items():
        count, dt = FINE[program]
        apart[program] = largest(other(program, interpreter, count, dt)[0][2])
        for n in counts:
            runs = other(program, interpreter, n, *STEPS)
            rows += [row(program, n, *run, exact) for run in runs]
    fronts = {
        name: front([r for r in rows if r["program"] == name]) for name in ("cordax", *programs)
    }
    return {
        "about": measure.about(),
        "reference": dict(zip(("control_points", "dt"), REFERENCE, strict=True)),
        "reference_mm": apart,
        "rows": rows,
        "front": fronts,
        "ten_seconds": ten_seconds(python),
    }


def plot(found: dict, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    for name, marker in (("cordax", "o"), ("exudyn", "s"), ("mujoco", "^")):
        pairs = lambda rows: zip(*((r["ms"], r["off_mm"]["largest"]) for r in rows), strict=True)
        mine = [r for r in found["rows"] if r["program"] == name]
        if mine:
            (dots,) = axes.plot(*pairs(mine), marker, alpha=0.3, markersize=4)
            axes.plot(
                *pairs(found["front"][name]), marker + "-", color=dots.get_color(), label=name
            )
    axes.set(xscale="log", yscale="log", xlabel="processor time of 0.5 s [ms]")
    axes.set_ylabel("largest error of the height of the centre [mm]")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exudyn", default=None, help="an interpreter that has Exudyn")
    parser.add_argument("--plot", default=None, help="a file for the figure")
    arguments = parser.parse_args()
    result = main(arguments.exudyn)
    print(json.dumps(result, indent=1))
    if arguments.plot:
        plot(result, arguments.plot)
