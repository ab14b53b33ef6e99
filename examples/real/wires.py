"""Five real wires moved by two grippers: fit six numbers per wire, predict other runs.

    python examples/real/wires.py DATA --predict                all runs, with the numbers shipped
    python examples/real/wires.py DATA --wire DLO1 --predict test test:2
    python examples/real/wires.py DATA --wire DLO1 --fit        to outputs/wires.json, then predict
    python examples/real/wires.py DATA --wire DLO1 --cross      how well a fit does on other runs
    python examples/real/wires.py DATA --predict test --figure wires.png

DATA is a file NAME.npz or a folder of them, with arrays (runs, frames, markers, 3) [m], 100 Hz, z
up; those called `train` are fitted. They are made from the data set of DEFORM (Chen et al.,
"Differentiable discrete elastic rods for real-time modeling of deformable linear objects", CoRL
2024, arXiv 2406.05931), data_set/DLO1 to DLO5 of the repository roahmlab/DEFORM: stack the
trajectories of a wire, frames first, and numpy.savez(NAME, train=..., test=...). The data set has
no licence and is not part of cordax.

Two markers at each end are held by grippers: they are the input. The others start where frame 0 has
them, with velocity (frame 1 - frame 0)/dt, and are predicted open loop by `DiscreteRod`. Masses are
unknown, so only ratios to the mass per length are found. Rolls of grippers are unknown too: the
wire is taken to begin untwisted, and grippers to turn no more than their tangents. Friction within
the wire does nothing at the start.

The first prediction compiles for about a minute, the first fit for two; later processes find
both programs in the cache of cordax. They serve all wires and runs of one length."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from wires_fit import START, fit, say
from wires_model import predicted, resting, rigid, stations

import cordax

SHIPPED = Path(__file__).with_suffix(".json")


def read(path: Path, wire: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Arrays (runs, frames, markers, 3) of each wire, by the names of wires and their own."""
    if not path.exists():
        sys.exit(f"DATA: there is no file or folder {path}\n\n{__doc__}")
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    there = ", ".join(file.stem for file in files)
    if path.is_dir() and wire:
        files = [file for file in files if file.stem == wire]
    if not files:
        what = f"no {wire}.npz in {path}, only {there}" if there else f"no .npz files in {path}"
        sys.exit(f"DATA: {what}\n\n{__doc__}")
    found = {}
    for file in files:
        try:
            with np.load(file) as data:
                arrays = {k: np.asarray(data[k], float) for k in data.files if data[k].ndim == 4}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            sys.exit(f"{file}: not a file of arrays as numpy.savez writes them ({error})")
        if not arrays:
            sys.exit(f"{file}: no array of shape (runs, frames, markers, 3)")
        for name, runs in arrays.items():
            if runs.shape[1] < 5 or runs.shape[2] < 6 or runs.shape[3] != 3:
                wanted = "(runs, frames, markers, 3), 5 frames and 6 markers or more"
                sys.exit(f"{file}: {name} has shape {runs.shape}, expected {wanted}")
            lost = np.unique(np.nonzero(~np.isfinite(runs))[0])
            if lost.size:
                sys.exit(f"{file}: {name} has markers that are not finite in runs {lost.tolist()}")
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


def cross(wire, runs, places, iterations: int) -> float:
    """Fits to every other run, judged by those between, and the other way round: mean error of runs
    that were not fitted [mm]."""
    errors = np.zeros(len(runs))
    for fitted in (0, 1):
        numbers = fit(runs[fitted::2], places, START, iterations, progress=False)
        print(f"{wire}: {say(numbers)}", flush=True)
        for i in range(1 - fitted, len(runs), 2):
            errors[i] = distances(predicted(numbers, runs[i], places)[0], runs[i]).mean()
    each = ", ".join(f"{x:.1f}" for x in errors)
    print(
        f"{wire}: runs of `train` left out of the fit {errors.mean():.2f} mm ({each})", flush=True
    )
    return float(errors.mean())


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
        "run": run,
        "found": found,
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
            begin = time.perf_counter()
            predicted(known["numbers"], run, places)  # compiles, or finds the program: not counted
            print(
                f"first rollout, with its program: {time.perf_counter() - begin:.1f} s", flush=True
            )
        found.append(judge(known["numbers"], places, run) | {"label": label})
        line(wire, label, found[-1:])
    by_name = {}
    for (label, _), one in zip(runs, found, strict=True):
        by_name.setdefault(label.partition(":")[0], []).append(one)
    for name, several in by_name.items():
        line(wire, f"{name}, mean", several)
    return found


def over_wires(judged: dict[str, list[dict]]) -> list[str]:
    """For each array of runs: mean over the wires of their mean errors, and median of all runs."""
    errors: dict[str, dict[str, list[float]]] = {}
    for wire, runs in judged.items():
        for one in runs:
            by_wire = errors.setdefault(one["label"].partition(":")[0], {})
            by_wire.setdefault(wire, []).append(float(np.mean(one["model"])))
    lines = []
    for name, by_wire in errors.items():
        means, runs = [np.mean(x) for x in by_wire.values()], np.concatenate([*by_wire.values()])
        each = ", ".join(f"{x:.1f}" for x in means)
        lines.append(
            f"{name}: mean of {len(means)} wires {np.mean(means):.1f} mm ({each}), "
            f"median of {len(runs)} runs {np.median(runs):.1f} mm"
        )
    return lines


def line(wire, label, found) -> None:
    mean = lambda key: np.mean([np.mean(one[key]) for one in found])
    numbers = f"{mean('model'):8.2f} {mean('coordinate'):10.2f} {mean('rigid'):8.2f}"
    failed = "   FAILED" if any(one["failed"] for one in found) else ""
    rest = f" {mean('quasi'):8.2f} {mean('seconds'):9.3f}{failed}"
    print(f"{wire:10s} {label:10s} {numbers}{rest}", flush=True)


def main(arguments=None) -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("data", type=Path, metavar="DATA", help="folder of recordings, or one of them")
    which = "in a folder it picks the file, for a file of another name the numbers; all if none"
    ask.add_argument("--wire", help=f"DLO1 ... DLO5: {which}")
    ask.add_argument("--fit", action="store_true", help="six numbers to all runs called train")
    ask.add_argument("--cross", action="store_true", help="fit to one half of them, judge by other")
    ask.add_argument("--iterations", type=int, default=12, help="of a fit, at most (12)")
    ask.add_argument("--predict", nargs="*", metavar="RUN", help="test, test:2 ...; all if none")
    ask.add_argument("--figure", type=Path, help="shapes and errors of predicted runs")
    ask.add_argument("--numbers", type=Path, help="file of fitted numbers, read and written")
    given = ask.parse_args(arguments)
    if given.iterations < 1:
        ask.error(f"--iterations {given.iterations}: expected 1 or more")
    wires = read(given.data, given.wire)
    out = given.numbers or Path("outputs/wires.json")
    if given.numbers and not out.exists() and not given.fit:
        ask.error(f"--numbers {out}: there is no such file; --fit writes one")
    source = out if given.numbers and out.exists() else SHIPPED
    known = json.loads(source.read_text()) if source.exists() else {}
    judged, asked = {}, given.predict is not None or given.figure
    if not (asked or given.fit or given.cross):
        for name, arrays in wires.items():
            print(f"{name}:", ", ".join(f"{k} {runs.shape}" for k, runs in arrays.items()))
        print("Say what to do with them: --predict, --fit, --cross or --figure FILE")
    for name, arrays in wires.items():
        if given.fit or given.cross:
            if "train" not in arrays:
                what = f"needs an array called train, there are {', '.join(arrays)}"
                sys.exit(f"{name}: --fit and --cross {what}")
            runs = arrays["train"]
            places = stations(runs)
        if given.cross:
            print(f"{name}: two fits to halves of {len(runs)} runs", flush=True)
            cross(name, runs, places, given.iterations)
        if given.fit:
            start = known.get(name, {}).get("numbers", START)
            print(f"{name}: {len(runs)} runs, {given.iterations} iterations at most", flush=True)
            numbers = fit(runs, places, start, given.iterations)
            known[name] = {"places": places.round(5).tolist(), "numbers": rounded(numbers)}
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(known, indent=1) + "\n")
            print(f"{name}: {say(numbers)}  -> {out}")
        if not (asked or given.fit):
            continue
        if name not in known:
            sys.exit(f"{name}: no numbers in {source}; there are {', '.join(known)}. --fit them")
        judged[name] = report(name, known[name], chosen(arrays, given.predict))
    if len(judged) > 1:
        print("\n".join(over_wires(judged)))
    if given.figure:
        from wires_figure import draw

        draw(judged, given.figure)
        print(f"-> {given.figure}")


def rounded(numbers) -> dict[str, float]:
    return {name: float(f"{x:.4g}") for name, x in numbers.items()}


if __name__ == "__main__":
    cordax.enable_cache()
    main()
