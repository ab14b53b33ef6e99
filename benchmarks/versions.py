"""Main benchmark rows on several interpreters, each with its own packages:
`python benchmarks/versions.py PYTHON PYTHON ...` prints a table with the ratio of the last column
to the first. The interpreters take turns, each row is the best of two rounds. Run it on an idle
machine: the load of the machine is printed."""

import json
import os
import subprocess
import sys

import measure

_ROWS = """
import json, sys
sys.path.insert(0, {here!r})
import cordax
cordax.enable_x64()
import batch, cable_robot, neck, jax, platform
gradient = cable_robot.gradient()["ms"]
print(json.dumps([f"{{platform.python_version()}}, jax {{jax.__version__}}", {{
    "neck, step [ns]": neck.step(anchors=False)["closed_form"]["ns"],
    "neck, controlled motion [ms]": neck.motion()["ms"],
    "1024 necks [ns per step]": 1e3 / neck.batch()["million_steps_per_s"],
    "4096 necks [ns per step]": 1e3 / batch.rate(batch.neck_batch(4096, 500), 4096 * 500),
    "1024 cable robots, 1 s [ms]": 1e3 * cable_robot.batch()["s"],
    "cable robot, 1 s [ms]": gradient["run"],
    "cable robot, forward mode [ms]": gradient["forward_mode"],
    "cable robot, reverse mode [ms]": gradient["reverse"],
}}]))
"""


def rows(python: str) -> tuple[str, dict[str, float]]:
    """Versions, and the time of each row by its name."""
    code = _ROWS.format(here=str(measure.HERE))
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    versions, times = json.loads(done.stdout.splitlines()[-1])
    return versions, times


def main() -> None:
    pythons = sys.argv[1:] or [sys.executable]
    columns: dict[str, dict[str, float]] = {}
    for _ in range(2):
        for python in pythons:
            versions, times = rows(python)
            best = columns.setdefault(versions, times)
            columns[versions] = {name: min(best[name], time) for name, time in times.items()}
    print("| row |", " | ".join(columns), "| ratio |")
    print("|---" * (len(columns) + 2) + "|")
    first, last = columns[next(iter(columns))], columns[next(reversed(columns))]
    for name in first:
        cells = [f"{times[name]:.3g}" for times in columns.values()]
        print(f"| {name} |", " | ".join(cells), f"| {last[name] / first[name]:.2f} |")
    if hasattr(os, "getloadavg"):  # not on Windows
        print(f"load of the last 15 minutes: {os.getloadavg()[2]:.1f}")


if __name__ == "__main__":
    main()
