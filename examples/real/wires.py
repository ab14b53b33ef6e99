"""Five real wires moved by two grippers: fit six numbers per wire, predict other runs.

    python examples/real/wires.py DATA --predict                all runs, with the numbers shipped
    python examples/real/wires.py DATA --wire DLO1 --predict test test:2
    python examples/real/wires.py DATA --wire DLO1 --fit        to outputs/wires.json, then predict
    python examples/real/wires.py DATA --figure errors.png      of the runs called test

DATA: a file NAME.npz or a folder of them, with arrays (runs, frames, markers, 3) [m], 100 Hz, z up;
those called `train` are fitted. `--wire` says which wire is meant: in a folder it picks the file,
for a file of another name the numbers. They are made from the data set of DEFORM (Chen et al.,
"Differentiable discrete elastic rods for real-time modeling of deformable linear objects", CoRL
2024, arXiv 2406.05931), data_set/DLO1 to DLO5 of the repository roahmlab/DEFORM. It has no licence
and is not part of cordax.

Two markers at each end are held by grippers: they are the input. The others start where frame 0 has
them, with velocity (frame 1 - frame 0)/dt, and are predicted open loop by `DiscreteRod`. Masses are
unknown, so only ratios to the mass per length are. Rolls of grippers are unknown too: the
wire is taken to begin untwisted, and grippers to turn no more than their tangents. Friction within
the wire does nothing at the start."""

import argparse
import json
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares
from wires_model import (
    AS_RECORDED,
    NAMES,
    STEPS,
    fast,
    markers,
    predicted,
    prepared,
    resting,
    rigid,
    stations,
)

import cordax

SHIPPED = Path(__file__).with_suffix(".json")
#: where a fit begins, and how far a search moves each at first, in its logarithm but for tilts
START = {
    "EI": 0.02,
    "bending_time": 0.05,
    "slip": 1.0,
    "length": 0.985,
    "left_tilt": 0.0,
    "right_tilt": 0.0,
}
REACH = np.array([0.5, 0.5, 0.5, 0.02, 0.05, 0.05])
RATIOS = np.array([True, True, True, True, False, False])
#: of misses [m]: beyond, they count by their size instead of its square; frames between samples
FAR, EVERY = 0.02, 10
#: steps of differences, in units of `REACH`
H = 0.02


def read(path: Path, wire: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Arrays (runs, frames, markers, 3) of each wire, by the names of wires and their own."""
    files = sorted(path.glob(f"{wire or '*'}.npz")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        sys.exit(f"{path}: no {wire or ''}.npz files there.\n\n{__doc__}")
    found = {}
    for file in files:
        with np.load(file) as data:
            arrays = {k: np.asarray(data[k], float) for k in data.files if data[k].ndim == 4}
        if not arrays:
            sys.exit(f"{file}: no array of shape (runs, frames, markers, 3)")
        for name, runs in arrays.items():
            if runs.shape[2] < 6 or runs.shape[3] != 3 or not np.isfinite(runs).all():
                sys.exit(f"{file}: {name} {runs.shape} are not finite points of 6 markers or more")
        found[wire or file.stem] = arrays
    return found


def chosen(arrays, wanted) -> list[tuple[str, np.ndarray]]:
    """Runs by label, from names of arrays and `name:index`; all if none are given."""
    found = []
    for what in wanted or arrays:
        name, _, index = what.partition(":")
        if name not in arrays or (index and not 0 <= int(index) < len(arrays[name])):
            sys.exit(f"--predict {what}: there are {', '.join(arrays)}, name or name:index")
        picked = [int(index)] if index else range(len(arrays[name]))
        found += [(f"{name}:{i}", arrays[name][i]) for i in picked]
    return found


def fit(runs, places, start=START, iterations: int = 12, progress: bool = True) -> dict[str, float]:
    """The numbers by least squares on all runs, far misses counted by their size. Derivatives are
    differences: those through the rollouts compile for longer than a whole fit takes so."""
    each = [prepared(run, places) for run in runs]
    truth = [run[:, 2:-2] for run in runs]

    def misses(z, progress=progress):
        numbers, off = jnp.asarray(moved(z)), []
        for data, measured in zip(each, truth, strict=True):
            nodes, good = fast(numbers, data, AS_RECORDED, STEPS)
            here = (markers(places, np.asarray(nodes), data) - measured)[::EVERY]
            off.append(np.clip(here, -1.0, 1.0) if good else np.ones_like(here))
        if progress:
            size = 1e3 * np.mean([np.linalg.norm(one, axis=-1).mean() for one in off])
            print(f"  {size:6.2f} mm at", say(dict(zip(NAMES, numbers, strict=True))), flush=True)
        return np.concatenate([one.ravel() for one in off])

    def derivatives(z):
        here = misses(z, False)
        return np.stack([(misses(z + h, False) - here) / H for h in H * np.eye(len(NAMES))], axis=1)

    y0 = np.array([start[name] for name in NAMES])
    moved = lambda z: np.where(RATIOS, y0 * np.exp(REACH * z), y0 + REACH * z)
    found = least_squares(
        misses,
        np.zeros(len(NAMES)),
        derivatives,
        loss="soft_l1",
        f_scale=FAR,
        max_nfev=iterations,
        ftol=1e-4,
        xtol=1e-3,
    )
    return dict(zip(NAMES, map(float, moved(found.x)), strict=True))


def say(numbers) -> str:
    return ", ".join(f"{name} {float(x):.3g}" for name, x in numbers.items())


def distances(found, run) -> np.ndarray:
    """Of free markers [mm], shape (frames, markers)."""
    return 1e3 * np.linalg.norm(found - run[:, 2:-2], axis=-1)


def judge(numbers, places, run) -> dict:
    """Errors of the free markers (frames, markers) [mm] of one run, and seconds of its rollout."""
    begin = time.perf_counter()
    found, good = predicted(numbers, run, places)
    seconds = time.perf_counter() - begin
    still, calm = resting(numbers, run, places)
    return {
        "model": distances(found, run),
        "rigid": distances(rigid(run), run),
        "quasi": distances(still, run) if calm else np.full_like(found[..., 0], np.nan),
        "coordinate": 1e3 * np.abs(found - run[:, 2:-2]).mean(),
        "seconds": seconds,
        "failed": not good,
    }


def report(wire, known, runs) -> list[dict]:
    """Prints a line for each run and one of means."""
    head = f"{wire:10s} {'run':10s} {'model':>8s} {'per coord.':>10s} {'rigid':>8s} {'static':>8s}"
    print(head + "   seconds   (mean errors of free markers [mm])")
    places, found = np.array(known["places"]), []
    for label, run in runs:
        if run.shape[1] != len(places):
            sys.exit(f"{label}: {run.shape[1]} markers, but {wire} was fitted with {len(places)}")
        if not found:
            predicted(known["numbers"], run, places)  # compiles: not counted
        found.append(judge(known["numbers"], places, run))
        line(wire, label, found[-1:])
    by_name = {}
    for (label, _), one in zip(runs, found, strict=True):
        by_name.setdefault(label.partition(":")[0], []).append(one)
    for name, several in by_name.items():
        line(wire, f"{name}, mean", several)
    return found


def line(wire, label, found) -> None:
    mean = lambda key: np.mean([np.mean(one[key]) for one in found])
    numbers = f"{mean('model'):8.2f} {mean('coordinate'):10.2f} {mean('rigid'):8.2f}"
    failed = "   FAILED" if any(one["failed"] for one in found) else ""
    rest = f" {mean('quasi'):8.2f} {mean('seconds'):9.3f}{failed}"
    print(f"{wire:10s} {label:10s} {numbers}{rest}", flush=True)


def main(arguments=None) -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    ask.add_argument("data", type=Path)
    ask.add_argument("--wire", help="DLO1 ... DLO5; all if not given")
    ask.add_argument("--fit", action="store_true")
    ask.add_argument("--iterations", type=int, default=12, help="of a fit, at most")
    ask.add_argument("--predict", nargs="*", metavar="RUN", help="test, test:2 ...; all if none")
    ask.add_argument("--figure", type=Path)
    ask.add_argument("--numbers", type=Path, help="file of fitted numbers")
    given = ask.parse_args(arguments)
    wires = read(given.data, given.wire)
    out = given.numbers or Path("outputs/wires.json")
    source = out if given.numbers and out.exists() else SHIPPED
    known = json.loads(source.read_text()) if source.exists() else {}
    judged = {}
    for name, arrays in wires.items():
        if given.fit:
            if "train" not in arrays:
                sys.exit(f"{name}: --fit needs an array called train, there are {list(arrays)}")
            places = stations(arrays["train"])
            start = known.get(name, {}).get("numbers", START)
            numbers = fit(arrays["train"], places, start, given.iterations)
            known[name] = {"places": places.round(5).tolist(), "numbers": numbers}
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(known, indent=1) + "\n")
            print(f"{name}: {say(numbers)}  -> {out}")
        if name not in known:
            sys.exit(f"{name}: no numbers in {source}; there are {', '.join(known)}. --fit them")
        if given.predict is not None or given.fit or given.figure:
            judged[name] = report(name, known[name], chosen(arrays, given.predict))
    if given.figure:
        from wires_figure import draw

        draw(judged, given.figure)


if __name__ == "__main__":
    cordax.enable_cache()  # compiling takes a minute, the first time
    main()
