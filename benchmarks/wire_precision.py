"""Work and precision on a metal wire: `python benchmarks/wire_precision.py [--exudyn PYTHON]`.

The wire of `benchmarks/rod.py` through its first 0.5 s, undamped, by cordax and, where `--exudyn`
names an interpreter that has it, by Exudyn (16 ANCF cables in space, generalised alpha, rho 0.5,
modified Newton). Prints one JSON object: for each method and step the CPU time of a run (minimum of
several) and how far the height of the centre is from a converged run of cordax, every 10 ms.
Both discretise alike (19 control points, 16 cables), so that errors are those of time steps as long
as they are above a few tenths of a millimetre."""

import argparse
import json
import subprocess
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
#: of the run that counts as converged, and of those compared [s]
FINEST = 5e-5
STEPS = (5e-4, 1e-3, 2e-3, 5e-3)
METHODS = {
    "generalised_alpha": cordax.GeneralisedAlpha(),
    "linearly_implicit_euler": cordax.LinearlyImplicitEuler(),
}


def centre(method, dt: float):
    """Its height after every step: one compiled program serves all steps; to store them all and
    compute all outputs is part of the time."""
    wire, state = rod.wire(19)
    run = cordax.simulate(wire, state, integrator=method, dt=dt, duration=END)
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


def exudyn(python: str, exact) -> list[dict]:
    """Its own steps may be shorter than asked; heights are interpolated between its instants."""
    script = Path(__file__).parent / "anchors" / "wire_exudyn.py"
    command = [python, str(script), *map(str, STEPS)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    runs = json.loads(shown.stdout.strip().splitlines()[-1])
    heights = [np.interp(TIMES, run["t"], run["z"]) for run in runs]
    return [
        row("exudyn", run["dt"], z, run["s"], exact) for run, z in zip(runs, heights, strict=True)
    ]


def main(python: str | None) -> dict:
    at_times = lambda height, dt: np.asarray(height)[:: round(EVERY / dt)]
    exact = at_times(centre(METHODS["generalised_alpha"], FINEST), FINEST)
    rows = []
    for name, method in METHODS.items():
        for dt in STEPS:
            height = at_times(centre(method, dt), dt)
            cost = seconds(lambda m=method, h=dt: centre(m, h))
            rows.append(row(name, dt, height, cost, exact))
    if python is not None:
        rows += exudyn(python, exact)
    return {"about": measure.about(), "finest_s": FINEST, "rows": rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exudyn", default=None, help="an interpreter that has Exudyn")
    print(json.dumps(main(parser.parse_args().exudyn), indent=1))
