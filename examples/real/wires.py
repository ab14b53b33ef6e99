"""Five real wires moved by two grippers: fit at most six numbers per wire, predict other runs.

    python examples/real/wires.py DATA --fit               writes outputs/wires.json
    python examples/real/wires.py DATA --predict           of every run in DATA, with those numbers
    python examples/real/wires.py DATA --cross-validate 4  fitted without the runs that are judged

DATA: a file or folder of `NAME.npz` with arrays (runs, frames, markers, 3) [m], 100 Hz, z up; those
called `train` are fitted. They are made from the data set of DEFORM (Chen et al., "Differentiable
discrete elastic rods for real-time modeling of deformable linear objects", CoRL 2024, arXiv
2406.05931), data_set/DLO1 to DLO5 of the repository roahmlab/DEFORM. It has no licence and is
not part of cordax.

Two markers at each end are held by grippers: they are the input. The others start where frame 0 has
them, with velocity (frame 1 - frame 0)/dt, and are predicted open loop by `DiscreteRod`. Masses are
unknown, so only ratios to the mass per length are. Rolls of grippers are unknown too: the
wire is taken to begin untwisted, and grippers to turn no more than their tangents."""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from scipy.optimize import least_squares  # noqa: E402
from scipy.signal import savgol_filter  # noqa: E402

from cordax.control import Hermite  # noqa: E402
from cordax.systems import DiscreteRod, Gripper  # noqa: E402

FRAME, STEP, SEGMENTS = 0.01, 5e-3, 10
#: fitted, per mass per length: EI, GJ [m^4/s^2], damping of bending [s], of the air [1/s], and the
#: size of rest curvatures [1/m]; where a fit begins
NAMES = ("EI", "GJ", "bending_time", "drag", "curvature")
START = {"EI": 0.03, "GJ": 0.03, "bending_time": 0.07, "drag": 0.1, "curvature": 1.0}
unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)


# --- from markers to what a rod needs
def read(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Arrays (runs, frames, markers, 3) of each file, by the name of the file and their own."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        sys.exit(f"{path}: no .npz files there.\n\n{__doc__}")
    found = {}
    for file in files:
        with np.load(file) as data:
            arrays = {k: np.asarray(data[k], float) for k in data.files if data[k].ndim == 4}
        if not arrays:
            sys.exit(f"{file}: no array of shape (runs, frames, markers, 3)")
        found[file.stem] = arrays
    return found


def stations(runs) -> np.ndarray:
    """Where markers sit along the wire [m]: mean arc lengths of splines through them."""
    shapes, lengths = runs[:, ::50].reshape(-1, *runs.shape[2:]), []
    for m in shapes:
        s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(m, axis=0), axis=1))])
        fine = CubicSpline(s, m)(np.linspace(s[:-1], s[1:], 21))  # (21, segments, 3)
        lengths.append(np.linalg.norm(np.diff(fine, axis=0), axis=2).sum(0))
    return np.concatenate([[0.0], np.cumsum(np.mean(lengths, axis=0))])


def carried(tangents, first):
    """Directors (k, 3) that turn no more than their tangents (k, 3), from the first on."""
    found = [first]
    for a, b in itertools.pairwise(tangents):
        axis, c, x = np.cross(a, b), a @ b, found[-1]
        found.append(unit(c * x + np.cross(axis, x) + axis * (axis @ x) / (1.0 + c)))
    return np.array(found)


def prepared(run, places) -> dict[str, np.ndarray]:
    """Inputs and start of a run (frames, markers, 3), from its grippers and first two frames."""
    window = min(9, len(run) - (len(run) + 1) % 2)
    smooth = savgol_filter(run[:, [0, 1, -2, -1]], window, 3, axis=0)
    ends, along = smooth[:, 1:3], unit(smooth[:, [1, 3]] - smooth[:, [0, 2]])
    s = places[1:-1] - places[1]
    at = np.linspace(0.0, s[-1], SEGMENTS + 1)

    def shape(i):
        points = np.concatenate([ends[i, :1], run[i, 2:-2], ends[i, 1:]])
        return CubicSpline(s, points, bc_type=((1, along[i, 0]), (1, along[i, 1])))(at)

    nodes = shape(0)
    chain = np.concatenate([along[0, :1], unit(np.diff(nodes, axis=0)), along[0, 1:]])
    across = carried(chain, unit(np.cross(chain[0], np.eye(3)[np.argmin(abs(chain[0]))])))
    directors = np.stack([carried(along[:, i], across[-i]) for i in (0, 1)], axis=1)
    wide = min(15, window)
    bend = savgol_filter(run[:, [1, -2]], wide, 3, deriv=2, delta=FRAME, axis=0)[0]
    share = (at / at[-1])[:, None]
    held = np.stack([ends, along, directors], axis=1)  # (frames, 3 kinds, 2 ends, 3)
    return {
        "nodes": nodes,
        "speed": (shape(1) - nodes)[1:-1] / FRAME,
        "acceleration": (1 - share) * bend[0] + share * bend[1],
        "held": held,
        "rates": np.gradient(held, FRAME, axis=0, edge_order=2),
    }


def stack(runs, places):
    """Of all runs, with a leading axis."""
    each = [prepared(run, places) for run in runs]
    return {k: jnp.asarray(np.stack([one[k] for one in each])) for k in each[0]}


# --- the model
def rod(numbers, data, length, slow=1.0, bent=True) -> DiscreteRod:
    t = slow * FRAME * jnp.arange(data["held"].shape[0])
    path = lambda kind, end: Hermite(
        t, data["held"][:, kind, end], data["rates"][:, kind, end] / slow
    )
    left, right = (Gripper(*(path(kind, end) for kind in range(3))) for end in (0, 1))
    own = {name: numbers[name] for name in ("EI", "GJ", "bending_time", "drag")}
    wire = DiscreteRod(data["nodes"], left, right, length, axial_time=5e-3, **own)
    if not bent:
        return wire
    rest = wire.balanced_rest(data["acceleration"], curvature=numbers["curvature"])
    return DiscreteRod(
        data["nodes"], left, right, length, axial_time=5e-3, rest_curvature=rest, **own
    )


def rollout(numbers, data, length, step=STEP):
    """Nodes (frames, s + 1, 3) [m] and whether the run went through."""
    wire, frames = rod(numbers, data, length), data["held"].shape[0]
    q = wire.default_state().q
    v = jnp.zeros_like(q).at[: data["speed"].size].set(data["speed"].reshape(-1))
    run = cordax.simulate(
        wire,
        cordax.State(q, v),
        dt=step,
        duration=(frames - 1) * FRAME,
        save_every=round(FRAME / step),
        integrator=cordax.GeneralisedAlpha(0.3, tolerance=1e-6, max_iterations=12),
        throw=False,
        adjoint="forward",
    )
    return run["nodes"], run.succeeded


def quasi_static(numbers, data, length, slow=20.0):
    """Nodes of the straight wire moved so slowly that nothing swings."""
    frames = data["held"].shape[0]
    calm = dict(numbers, drag=jnp.asarray(5.0))
    run = cordax.simulate(
        rod(calm, data, length, slow, bent=False),
        dt=0.25 * slow * FRAME,
        duration=slow * (frames - 1) * FRAME,
        save_every=4,
        integrator="linearly_implicit_euler",
        throw=False,
    )
    return run["nodes"], run.succeeded


def mapped(function):
    """Over runs, with one set of numbers, compiled once."""
    return jax.jit(jax.vmap(function, in_axes=(None, 0, None)))


every_rollout, every_rest = mapped(rollout), mapped(quasi_static)
finer = mapped(lambda *x: rollout(*x, step=0.25 * STEP))


def at_markers(places) -> np.ndarray:
    """What nodes contribute to free markers, by cubic splines, shape (markers, s + 1)."""
    s = np.linspace(places[1], places[-2], SEGMENTS + 1)
    return CubicSpline(s, np.eye(SEGMENTS + 1))(places[2:-2])


def predicted(numbers, runs, places, rest: bool = False):
    """Free markers (runs, frames, markers, 3) [m], and which runs went through; those that did not
    are repeated with a quarter of the step."""
    data, length = stack(runs, places), places[-2] - places[1]
    numbers = {name: jnp.asarray(float(numbers[name])) for name in NAMES}
    nodes, good = map(np.array, (every_rest if rest else every_rollout)(numbers, data, length))
    if not rest and not good.all():
        again, fine = map(np.array, finer(numbers, data, length))
        nodes[~good], good = again[~good], good | fine
    return np.einsum("mi,rkic->rkmc", at_markers(places), nodes), good


def rigid(runs):
    """The first shape carried between the ends: turned with their chord, the shortest way."""
    first, last = runs[:, :, :1], runs[:, :, -1:]
    chord = unit(last - first)
    a, b, x = chord[:, :1], chord, runs[:, :1, 2:-2] - runs[:, :1, :1]
    axis, c = np.cross(a, b), np.sum(a * b, -1, keepdims=True)
    turned = c * x + np.cross(axis, x) + axis * np.sum(axis * x, -1, keepdims=True) / (1.0 + c)
    start = runs[:, :1, -1:] - runs[:, :1, :1]
    stretch = np.linalg.norm(last - first, axis=-1) / np.linalg.norm(start, axis=-1)
    along = np.sum(turned * b, -1, keepdims=True) * b
    return first + turned + (stretch[..., None] - 1.0) * along


# --- fit and report
def fit(runs, places, iterations: int = 8) -> dict[str, float]:
    """Logarithms of the numbers by least squares on every tenth frame, far misses counted by their
    size instead of its square; derivatives by differences, all runs side by side."""
    truth = runs[:, ::10, 2:-2]

    def misses(y):
        found, good = predicted(dict(zip(NAMES, np.exp(y), strict=True)), runs, places)
        off = np.nan_to_num(found[:, ::10] - truth, nan=1.0)
        return np.where(good[:, None, None, None], np.clip(off, -1, 1), 1.0).ravel()

    y = np.log([START[name] for name in NAMES])
    found = least_squares(
        misses, y, diff_step=2e-3, loss="soft_l1", f_scale=0.02, x_scale=0.5, max_nfev=iterations
    )
    return {name: float(x) for name, x in zip(NAMES, np.exp(found.x), strict=True)}


def errors(found, runs):
    """Mean distance [mm] and mean absolute error of coordinates [mm] of each run."""
    off = 1e3 * (found - runs[:, :, 2:-2])
    return np.linalg.norm(off, axis=-1).mean((1, 2)), np.abs(off).mean((1, 2, 3))


def report(name, kind, numbers, runs, places) -> np.ndarray:
    found, good = predicted(numbers, runs, places)
    begin = time.perf_counter()
    predicted(numbers, runs, places)  # compiled by now
    seconds = (time.perf_counter() - begin) / len(runs)
    distance, coordinate = errors(found, runs)
    slow, calm = predicted(numbers, runs, places, rest=True)
    fixed, still = errors(rigid(runs), runs)[0], errors(slow, runs)[0]
    print(
        f"{name} {kind}: {distance[good].mean():6.1f} mm ({coordinate[good].mean():.1f} per "
        f"coordinate); carried rigidly {fixed.mean():.1f} mm, quasi-static "
        f"{still[calm].mean():.1f} mm; {seconds:.2f} s per rollout; runs "
        f"{np.round(distance, 1).tolist()}"
    )
    if not good.all():
        print(f"   {np.flatnonzero(~good).tolist()} FAILED and are left out of the means")
    return distance


def main(arguments=None) -> None:
    say = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    say.add_argument("data", type=Path)
    say.add_argument("--fit", action="store_true")
    say.add_argument("--predict", action="store_true")
    say.add_argument("--cross-validate", type=int, metavar="FOLDS")
    say.add_argument("--numbers", type=Path, default=Path("outputs/wires.json"))
    given = say.parse_args(arguments)
    wires = read(given.data)
    known = json.loads(given.numbers.read_text()) if given.numbers.exists() else {}
    for name, arrays in wires.items():
        if given.cross_validate:
            runs, folds = arrays["train"], given.cross_validate
            for k in range(folds):
                out = np.arange(len(runs)) % folds == k
                places = stations(runs[~out])
                numbers = fit(runs[~out], places)
                report(name, f"left out, {k + 1} of {folds}", numbers, runs[out], places)
        if given.fit:
            places = stations(arrays["train"])
            known[name] = {"places": places.tolist(), "numbers": fit(arrays["train"], places)}
            given.numbers.parent.mkdir(parents=True, exist_ok=True)
            given.numbers.write_text(json.dumps(known, indent=1))
            print(name, {k: float(f"{x:.3g}") for k, x in known[name]["numbers"].items()})
        if given.predict or given.fit:
            if name not in known:
                sys.exit(f"{name}: no numbers in {given.numbers}; --fit them first")
            places, numbers = np.array(known[name]["places"]), known[name]["numbers"]
            for kind, runs in arrays.items():
                report(name, kind, numbers, runs, places)


if __name__ == "__main__":
    main()
