"""Work and precision on a metal wire: `python benchmarks/wire_precision.py [--exudyn PYTHON]`.

The wire of `benchmarks/rod.py` through its first 0.5 s, without damping and with (1 ms, Kelvin and
Voigt), by cordax, by MuJoCo (16 edges of fixed length, implicit) and, where `--exudyn` names an
interpreter that has it, by Exudyn (16 ANCF cables in space, generalised alpha, modified Newton).
Prints one JSON object: for each method and step the CPU time of a run (minimum of several) and how
far the height of the centre, every 10 ms, is from a run of the same program and method at 50 us:
programs discretise the wire in their own ways, so that errors of time steps can be told only
against themselves; `apart_mm` says how far those finest runs are from each other. Without damping
the motion is chaotic: below some millimetres nothing converges. `ten_seconds`: the damped wire
until it has nearly settled, at 2 ms.

Measured beside other work (CPU time): errors of generalised alpha are those of Exudyn's at equal
steps, for a tenth of its time without damping (1 ms: 41 ms against 366) and 0.4 of it with (2 ms:
85 against 213), before the damping was in closed form. Over ten seconds of the damped wire, both in
one run on idle cores, a step takes 106 us and Exudyn's 211 us. MuJoCo's steps are
cheaper and of order 1."""

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

END, EVERY = 0.5, 0.01
TIMES = EVERY * np.arange(round(END / EVERY) + 1)
#: of the runs that count as converged, and of those compared [s]
FINEST = 5e-5
STEPS = (5e-4, 1e-3, 2e-3, 5e-3)
#: of Kelvin and Voigt [s]
DAMPING = {"undamped": 0.0, "damped": 1e-3}
METHODS = {
    "generalised_alpha": cordax.GeneralisedAlpha(),
    "linearly_implicit_euler": cordax.LinearlyImplicitEuler(),
}
ANCHORS = Path(__file__).parent / "anchors"


def centre(method, dt: float, damping: float, end: float = END):
    """Its height after every step: one compiled program serves all steps; to store them all and
    compute all outputs is part of the time."""
    wire, state = rod.wire(19, damping=damping, viscous=damping > 0)
    run = cordax.simulate(wire, state, integrator=method, dt=dt, duration=end)
    return run["centre"][:, 2]


def seconds(function, repeats: int = 5) -> float:
    """CPU time of a call, the minimum of several: other programs do not count."""
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(function())
        least = min(least, time.process_time() - start)
    return least


def row(name: str, dt: float, height, cost: float, exact) -> dict:
    off = 1e3 * np.abs(np.asarray(height) - exact)
    return {
        "method": name,
        "dt": dt,
        "ms": round(1e3 * cost, 2),
        "us_per_step": round(1e6 * cost * dt / END, 1),
        "off_mm": {"largest": round(float(off.max()), 3), "mean": round(float(off.mean()), 3)},
    }


def own(name: str, damping: float) -> tuple[list[dict], np.ndarray]:
    """Rows of a method of cordax, and the heights of its finest run."""
    method = METHODS[name]
    at_times = lambda dt: np.asarray(centre(method, dt, damping))[:: round(EVERY / dt)]
    exact = at_times(FINEST)
    cost = lambda dt: seconds(lambda: centre(method, dt, damping))
    return [row(name, dt, at_times(dt), cost(dt), exact) for dt in STEPS], exact


def other(name: str, python: str, script: str, *arguments) -> tuple[list[dict], np.ndarray]:
    """The same of another program; it may take shorter steps than asked, and heights are
    interpolated between its instants."""
    command = [python, str(ANCHORS / script), *map(str, (*arguments, FINEST, *STEPS))]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    runs = json.loads(shown.stdout.strip().splitlines()[-1])
    exact, *heights = (np.interp(TIMES, run["t"], run["z"]) for run in runs)
    both = zip(runs[1:], heights, strict=True)
    return [row(name, run["dt"], z, run["s"], exact) for run, z in both], exact


def ten_seconds(python: str | None) -> dict:
    damping, dt, end = DAMPING["damped"], 2e-3, 10.0
    method = METHODS["generalised_alpha"]
    found = {"cordax": seconds(lambda: centre(method, dt, damping, end), repeats=3)}
    if python is not None:
        command = [python, str(ANCHORS / "wire_exudyn.py"), *map(str, (end, damping, 0.8, dt))]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        found["exudyn"] = json.loads(shown.stdout.strip().splitlines()[-1])[0]["s"]
    return {f"{name}_us_per_step": round(1e6 * s * dt / end, 1) for name, s in found.items()}


def case(damping: float, python: str | None) -> dict:
    programs = {name: lambda name=name: own(name, damping) for name in METHODS}
    programs["mujoco"] = lambda: other("mujoco", sys.executable, "wire_mujoco.py", damping)
    for rho in (0.5, 0.8) if python is not None else ():
        name, given = f"exudyn_rho_{rho}", (END, damping, rho)
        programs[name] = lambda n=name, g=given: other(n, python, "wire_exudyn.py", *g)  # pyright: ignore
    found = {name: program() for name, program in programs.items()}
    first = found["generalised_alpha"][1]
    apart = lambda z: round(1e3 * float(np.abs(z - first).max()), 2)
    return {
        "rows": [row for rows, _ in found.values() for row in rows],
        "apart_mm": {name: apart(z) for name, (_, z) in found.items()},
    }


def main(python: str | None) -> dict:
    cases = {name: case(damping, python) for name, damping in DAMPING.items()}
    about = {"about": measure.about(), "finest_s": FINEST}
    return about | cases | {"ten_seconds": ten_seconds(python)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exudyn", default=None, help="an interpreter that has Exudyn")
    print(json.dumps(main(parser.parse_args().exudyn), indent=1))
