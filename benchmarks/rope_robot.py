"""Speed of rope robots: `python benchmarks/rope_robot.py [part ...] [--out FILE] [--figure FILE]`.

Prints one JSON object. Parts: paper (two ropes of 20 segments and a platform over 15 s, through
slack and snap: error against time over methods and steps), reduced (the same without axial waves),
accuracy (the whole robot with steps that adapt), scaling (one acceleration and one linearly
implicit step, 5 to 160 segments), batch (256 robots with different ropes for 1 s), start (first
call at 20 and 160 segments, each in a process of its own), reverse (a gradient beside the run),
diffrax (an adaptive stiff method of diffrax on slack ropes), mujoco (the same robot in MuJoCo,
where it is installed).

Seconds are those of the processor, the least of several runs; of scaling and batch those that pass,
so on idle cores only; of start both. Errors are those against stored trajectories
(`tests/data/rope_robot.npz`): of all coordinates in space and time, relative, and of the motion of
the platform relative to that motion. `--out`: a file that is written after each part, and keeps
the parts that it had. `--figure`: work and precision of all in it; without parts nothing is run
anew."""

import argparse
import json
from pathlib import Path

import cordax

cordax.enable_x64()

import diffrax as dfx  # noqa: E402
import jax  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
import rope_robot_case as case  # noqa: E402
from rope_robot_cost import batch, reverse, scaling, start  # noqa: E402
from rope_robot_mujoco import mujoco  # noqa: E402

from cordax.systems import AxialRopes, RopeRobot  # noqa: E402

PAPER_S = 39.1
EXPLICIT = {"integrator": "rk4", "formulation": cordax.Baumgarte(20.0, 20.0)}
#: options and steps [s], of the whole robot and without axial waves
METHODS = {
    "linearly_implicit_euler": (case.EULER, (1e-3, 2.5e-4)),
    "generalised_alpha": ({"integrator": "generalised_alpha"}, (1e-3, 6.25e-4, 2.5e-4)),
    "generalised_alpha_once": ({"integrator": case.ONCE}, (0.025 / 30, 6.25e-4)),
}
REDUCED = {"axial_rk4": (EXPLICIT, (0.025 / 60, 2.5e-4))}


def tsitouras(tolerance: float) -> dict:
    """Explicit steps of order 5 that adapt. Stability limits them most of the time: a controller
    that also looks at the change of the error (Gustafsson's) refuses fewer of them, and takes a
    fifth less time."""
    steps = dfx.PIDController(rtol=tolerance, atol=tolerance, pcoeff=0.4, icoeff=0.3)
    return {**EXPLICIT, "integrator": cordax.Diffrax(dfx.Tsit5(), steps)}


def timed(machine, state, dt: float, repeats: int = 3, **options) -> dict:
    """15 s of the paper's case: processor seconds and errors."""
    go = lambda: cordax.simulate(
        machine, state, dt=dt, duration=15.0, control=case.lift, throw=False, **options
    )
    run = go()
    seconds = measure.processor(lambda: go().q, repeats=repeats)
    q = run.q if isinstance(machine, RopeRobot) else jax.vmap(machine._whole)(run.q)
    counted = {k: int(v) for k, v in run.statistics.items()}
    good = bool(run.result == cordax.Result.SUCCESSFUL)
    return {"s": seconds, "ended_well": good, **counted, **case.errors(q, run.violation)}


def fixed(machine, state, methods) -> list[dict]:
    """Of each method and step; each is compiled anew, which takes most of the time."""
    rows = []
    for name, (options, steps) in methods.items():
        for dt in steps:
            found = timed(machine, state, dt, save_every=round(case.STORED / dt), **options)
            rows.append({"method": name, "dt": dt, **found})
    return rows


def paper() -> dict:
    """Error against time of the 15 s case."""
    return {"rows": fixed(case.robot(), case.start(), METHODS), "paper_s": PAPER_S}


def reduced() -> dict:
    """The same without axial waves."""
    axial = AxialRopes(case.robot())
    begin = axial.project(case.start())
    rows = fixed(axial, begin, REDUCED)
    for tolerance in (1e-3, 1e-4, 1e-5):
        found = timed(axial, begin, case.STORED, **tsitouras(tolerance))
        rows.append({"method": "axial_tsit5", "accuracy": tolerance, **found})
    found = timed(axial, begin, case.STORED, accuracy=1e-4, **EXPLICIT)
    rows.append({"method": "axial_rk4_adaptive", "accuracy": 1e-4, **found})
    return {"rows": rows}


def accuracy() -> dict:
    """Steps that adapt: shorter in the snap, longer in the rest."""
    rows = []
    for wanted in (1e-3, 1e-4, 2e-5, 2e-6):
        options = {"accuracy": wanted, "integrator": case.ONCE}
        found = timed(case.robot(), case.start(), case.STORED, **options)
        rows.append({"method": "generalised_alpha_once_adaptive", "accuracy": wanted, **found})
    return {"rows": rows}


def diffrax() -> dict:
    """A stiff method of diffrax, with its dense Newton iterations, on the index-1 equations, beside
    ours: 0.1 s of slack ropes, from the stored state at 5.5 s. The whole 15 s would take it the
    better part of an hour."""
    ref, out = case.reference(), {}
    first = lambda t, of: int(np.argmin(np.abs(ref[of] - t)))
    begin = first(5.5, "t_full")
    state = cordax.State(ref["q_full"][begin], ref["v_full"][begin])
    there = ref["q32"][first(5.6, "t_q32")].astype(float)
    steps = dfx.PIDController(rtol=1e-3, atol=1e-6)
    method = cordax.Diffrax(dfx.Kvaerno3(), steps)
    cases = {
        "kvaerno3": {**EXPLICIT, "integrator": method, "dt": 1e-3, "save_every": 100},
        "generalised_alpha": {"dt": 2.5e-4, "save_every": 400},
    }
    given = {"t0": 5.5, "duration": 0.1, "control": case.lift, "throw": False}
    for name, options in cases.items():
        go = lambda options=options: cordax.simulate(case.robot(), state, **given, **options)
        off = np.abs(np.asarray(go().q)[-1] - there)
        seconds = measure.processor(lambda go=go: go().q, repeats=1)
        out[name] = {"s": seconds, "largest": off.max(), "platform": off[-3:].max()}
    return out


def figure(found: dict, file: str) -> None:
    """Error of the motion of the platform over seconds, all that ran; reduced models dashed,
    others' programs dotted."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = ("paper", "accuracy", "reduced")
    rows = [row for part in parts for row in found.get(part, {}).get("rows", [])]
    rows += [{"method": "mujoco", **row} for row in (found.get("mujoco") or {}).get("rows", [])]
    _, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        own.sort(key=lambda row: row.get("dt", row.get("accuracy")))
        seconds, off = [row["s"] for row in own], [row["platform_motion"] for row in own]
        style = ":" if name == "mujoco" else "--" if name.startswith("axial") else "-"
        label = name.replace("_", " ").replace("mujoco", "MuJoCo").replace("tsit5", "diffrax Tsit5")
        axes.loglog(seconds, [100.0 * x for x in off], style, marker="o", label=label)
    axes.set(xlabel="processor time of 15 s of motion [s]", ylabel="error of platform motion [%]")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
    axes.tick_params(which="minor", labelsize="x-small")
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize="small")
    plt.savefig(file, dpi=150)


PARTS = {
    f.__name__: f
    for f in (paper, reduced, accuracy, scaling, batch, start, reverse, diffrax, mujoco)
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--out", help="file for the results, kept part by part")
    parser.add_argument("--figure", help="file for a plot of work and precision")
    given = parser.parse_args()
    file = None if given.out is None else Path(given.out)
    found = json.loads(file.read_text()) if file is not None and file.exists() else {}
    for part in given.parts or ([] if given.figure and found else list(PARTS)):
        found[part] = {"about": measure.about(), **(PARTS[part]() or {})}
        if file is not None:
            file.write_text(json.dumps(found, indent=2))
    print(json.dumps(found, indent=2))
    if given.figure:
        figure(found, given.figure)
