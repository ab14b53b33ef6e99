"""A real robot on four cables, swinging with its winches locked: fitted, then predicted.

    python examples/real/uacdpr_swing.py DATA --predict 26.0 28.6         with the numbers shipped
    python examples/real/uacdpr_swing.py DATA --predict 31 41 --file longer.npz --figure swing.png
    python examples/real/uacdpr_swing.py DATA --fit [--numbers FILE.json] [--figure FILE.png]
    python examples/real/uacdpr_swing.py DATA --compare

DATA: as for `uacdpr.py`. A platform of 13 kg swings on four cables that are nearly redundant: what
is taken from two opposite cables and given to the others moves it many times as far. Rigid cables
make that singular; elastic ones leave three slow motions, not two. Lengths, stiffness, centre of
mass, inertia, damping and dry friction are fitted to motion capture in windows in which nobody
pushes. Load cells, swivel angles and the inclinometer are not fitted but predicted.

`--predict BEGIN END` [s] runs open loop through a window of any recording with the same fields,
twice: from the state measured at BEGIN, and from a state fitted to the first half second, because
motion capture was low-passed: at large swings its rates are off by a tenth. It prints errors of all
sensors in each second, half swings and phases. `--fit`, or no option, fits parts of the free
windows and predicts the rest, then fits all of them and writes the numbers. `--compare` leaves
parts of the free windows out in turn, with dry friction and without."""

import sys
import time
import warnings
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from uacdpr import CORNERS, FREE, asked, turned  # noqa: E402
from uacdpr_judge import by_amplitude, draw, swings, tell_errors, tell_swings  # noqa: E402
from uacdpr_machine import (  # noqa: E402
    Machine,
    Measured,
    MeasuredStart,
    StickingJoints,
    known,
    read,
    unfitted,
    write,
)

from cordax import Experiment, Parameter, Recording, identify  # noqa: E402
from cordax.math.rotations import euler_zyx  # noqa: E402

#: windows without pushes [s]; parts of them that are fitted, and left for prediction
FREELY = ((9.8, 11.7), (17.2, 19.1), (23.9, 28.6))
FITTED = ((24.0, 26.0), (17.1, 18.6), (10.4, 11.9))
LEFT = ((26.0, 28.6), (18.6, 19.1))
#: parts of the free windows that are left out in turn
FOLDS = (*FREELY[:2], (23.9, 26.0), (26.0, 28.6))
DT = 5e-3
#: a start is fitted to so much of a window [s]
SETTLE = 0.5
#: what fits and predictions are weighed by: [m], [rad]
NOISE = {"r_i_x": 2e-3, "r_i_y": 2e-3, "r_i_z": 2e-3, "euler": 8e-3}
SHIPPED = Path(__file__).with_suffix(".json")


def recording(part: Measured) -> Recording:
    values = {f"r_i_{c}": part.pose[:, i] for i, c in enumerate("xyz")}
    return Recording(part.t - part.t[0], values | {"euler": part.pose[:, 3:]})


def measured_start(part: Measured) -> MeasuredStart:
    # load cells read low: 1.145 times as much carries the weight at rest
    pull = jnp.asarray(1.145 * part.tension[0])
    first = jnp.asarray(part.pose[0]), jnp.asarray(part.rate[0])
    return MeasuredStart(*first, pull, jnp.zeros(6), jnp.zeros(6))


def experiment(machine: Machine, start, duration=None) -> Experiment:
    settings = {"dt": DT, "integrator": "rk4", "duration": duration, "save_every": 2}
    return Experiment(machine.robot, start, machine.joints, **settings)


START = [
    Parameter("state0.shift", prior=(0.0, 1.0)),
    Parameter("state0.push", prior=(0.0, 1.0)),
]
SMOOTH = [
    "drives.patterns",
    "cables.stiffness",
    Parameter("platform.centre", transform="linear"),
    *(f"platform.inertia[{i},{i}]" for i in range(3)),
    "angular_damping",
]
DRY = [
    Parameter("control.torque", bounds=(1e-3, 1.0), unit="N m"),
    Parameter("control.give", bounds=(3e-3, 0.3), unit="rad"),
]


def fit_windows(machine: Machine, parts: list[Measured], max_steps: int = 60):
    """`Fit` of all numbers of a machine, with a start in each window."""
    parameters = SMOOTH + (DRY if machine.joints is not None else []) + START
    return _fit(machine, parts, parameters, max_steps)


def _fit(machine, parts, parameters, max_steps):
    experiments = [experiment(machine, measured_start(part)) for part in parts]
    records = [recording(part) for part in parts]
    options = {"noise": NOISE, "max_steps": max_steps, "tolerance": 1e-3, "check_step": False}
    return identify(experiments, records, parameters, **options)


def machine_of(fit) -> Machine:
    return Machine(fit.system, fit.experiments[0].control)


def settled_start(machine: Machine, part: Measured) -> MeasuredStart:
    """The start that fits the first `SETTLE` of a window best."""
    head = part.rows(part.t[0], part.t[0] + SETTLE)
    with warnings.catch_warnings():
        # what half a second does not show of a start is not asked for
        warnings.simplefilter("ignore")
        fit = _fit(machine, [head], START, 30)
    if not bool(fit.succeeded):
        print(f"  start at {part.t[0]:g} s: {fit.reason}")
    return fit.experiment.state0


def predict(machine: Machine, part: Measured, start=None) -> dict[str, np.ndarray]:
    """Open loop from the measured or another start: what sensors would read at the instants of
    `part`."""
    start = measured_start(part) if start is None else start
    run = cordax.simulate(experiment(machine, start, float(part.t[-1] - part.t[0])))
    local = machine.robot.attachments
    b = run.q[:, None, :3] + jax.vmap(lambda e: local @ turned(e).T)(run["euler"])
    delta = np.asarray(b) - FREE
    return {
        "position": np.asarray(run.q[:, :3]),
        "euler": np.asarray(run["euler"]),
        "tension": np.asarray(run["tension"]),
        "swivel": CORNERS[:, 0] * np.arctan2(delta[..., 1], -delta[..., 2]),
    }


def both(machine: Machine, part: Measured) -> dict:
    """Predictions from both starts, with the rows in which they are judged; short windows have one
    start."""
    measured = {"start as measured": (predict(machine, part), part)}
    if part.t[-1] - part.t[0] < 2 * SETTLE - 1e-6:
        return measured
    later = part.rows(part.t[0] + SETTLE, part.t[-1])
    settled = predict(machine, part, settled_start(machine, part))
    late = {name: x[-len(later.t) :] for name, x in settled.items()}
    return measured | {f"start fitted to {SETTLE} s, judged after them": (late, later)}


def size(found, part: Measured) -> float:
    """RMS of the pose over noise."""
    off = np.hstack([found["position"], found["euler"]]) - part.pose
    return float(np.sqrt(np.mean((off / ([2e-3] * 3 + [8e-3] * 3)) ** 2)))


def at_rest(name: str, robot):
    """Prints what it does near rest; returns roll, pitch and yaw there (3,) [rad]."""
    state = cordax.equilibrium(robot)
    assert isinstance(state, cordax.State)
    found = cordax.modes(robot, state)
    place = state.q[:3], robot.platform.rotation(state.q[:12])
    tension = robot.cables.tension(robot.lengths(*place) - robot.drives.length(0.0, None), 0.0)
    ratios = found.damping[:6:2].round(3)
    print(f"{name}: {found.frequency[:6:2].round(3)} Hz, damping {ratios} without dry friction")
    print(f"    tensions at rest {np.asarray(tension).round(1)} N")
    return np.asarray(euler_zyx(place[1]))


def tell(name: str, machine: Machine, data: Measured, windows=LEFT, starts=both) -> None:
    """What a machine predicts in windows."""
    rest = at_rest(name, machine.robot)
    for begin, end in windows:
        for start, (found, part) in starts(machine, data.rows(begin, end)).items():
            print(f"  {begin:g} to {end:g} s, {start}: RMS over noise {size(found, part):.2f}")
            tell_errors(found, part)
            if part.t[-1] - part.t[0] > 1.0:
                tell_swings(found, part, rest)


def fitted(name: str, machine: Machine, parts: list[Measured]) -> Machine:
    begin = time.process_time()
    fit = fit_windows(machine, parts)
    print(f"{name}: fitted in {time.process_time() - begin:.0f} processor seconds")
    lines = fit.summary().splitlines() + fit.residual_summary().splitlines()
    print("\n".join(line for line in lines if not line.startswith("state0")), flush=True)
    return machine_of(fit)


def begun(data: Measured) -> Machine:
    """Where searches begin."""
    robot = unfitted(data.rows(4.4, 5.3))
    return Machine(robot, StickingJoints(robot.platform, DT, [0.1, 0.05, 0.3], 0.03))


def fit_all(data: Measured, numbers: Path, figure: str | None) -> Machine:
    """Parts of the free windows, and what is predicted of the rest; then all, to a file."""
    machine = begun(data)
    bare = lambda machine, part: {"start as measured": (predict(machine, part), part)}
    tell("unfitted, no dry friction", Machine(machine.robot, None), data, starts=bare)
    part = fitted("parts", machine, [data.rows(*window) for window in FITTED])
    tell("parts", part, data)
    found = fitted("all", machine, [data.rows(*window) for window in FREELY])
    numbers.parent.mkdir(parents=True, exist_ok=True)
    write(numbers, found)
    print(f"numbers: {numbers}")
    tell("all", found, data, FREELY)
    if figure:
        last = data.rows(*LEFT[0])
        draw(last, predict(part, last), pitch_swings(part, data), figure)
    return found


def pitch_swings(machine: Machine, data: Measured) -> dict[str, np.ndarray]:
    """In all free windows, from fitted starts, measured and predicted."""
    rest = float(data.rows(4.4, 5.3).pose[:, 4].mean())
    found = {"measured": [], "predicted": []}
    for part in (data.rows(*window) for window in FREELY):
        run = predict(machine, part, settled_start(machine, part))
        found["measured"].append(swings(part.t, part.pose[:, 4] - rest))
        found["predicted"].append(swings(part.t, run["euler"][:, 1] - rest))
    found = {name: np.concatenate(x) for name, x in found.items()}
    for name, x in found.items():
        print(f"pitch, {name}: {by_amplitude(x)}")
    return found


def leave_out(data: Measured) -> None:
    """Each part of the free windows predicted by numbers of the others."""
    stuck = begun(data)
    for name, machine in {"dry": stuck, "no dry friction": Machine(stuck.robot, None)}.items():
        for left in FOLDS:
            others = [data.rows(*window) for window in FOLDS if window != left]
            found = machine_of(fit_windows(machine, others))
            said = f"{name}, without {left[0]} to {left[1]} s"
            try:
                tell(said, found, data, [left])
            except ValueError as error:  # a search may end with numbers that no body has
                print(f"{said}: {error}")


def window(data: Measured, begin: str, end: str) -> Measured:
    """As asked for, or an end with a word."""
    try:
        first, last = float(begin), float(end)
    except ValueError:
        sys.exit(f"--predict {begin} {end}: two times [s] are needed")
    if not (data.t[0] <= first < last <= data.t[-1] + 1e-6):
        sys.exit(f"--predict {begin} {end}: there are {data.t[0]:g} to {data.t[-1]:g} s")
    part = data.rows(first, last)
    if last - first < 2 * SETTLE:
        sys.exit(f"--predict {begin} {end}: needs {2 * SETTLE} s or more")
    if not np.allclose(np.diff(part.t), 2 * DT, atol=1e-6):
        sys.exit(f"--predict {begin} {end}: motion capture is not at {0.5 / DT:.0f} Hz there")
    if not all(np.isfinite(x).all() for x in part):
        sys.exit(f"--predict {begin} {end}: numbers are missing there")
    return part


def main(folder: str, file: str | None = None, figure: str | None = None, **ask):
    """`ask`: `predict` [BEGIN, END] [s], `fit` or `compare`; `numbers`, a file."""
    data = read(folder, file or "free_motion_25s.npz")
    if ask.get("compare"):
        return leave_out(data)
    if not ask.get("predict"):
        return fit_all(data, Path(ask.get("numbers") or "outputs/uacdpr_swing.json"), figure)
    part = window(data, *ask["predict"])
    machine = known(Path(ask.get("numbers") or SHIPPED), DT)
    tell("stored numbers", machine, data, [(part.t[0], part.t[-1])])
    if figure:
        draw(part, predict(machine, part, settled_start(machine, part)), None, figure)
    return machine


OPTIONS = {
    "predict": {"nargs": 2, "metavar": ("BEGIN", "END"), "help": "a window [s], stored numbers"},
    "file": {"metavar": "NAME", "help": "another recording in DATA with the same fields (.npz)"},
    "fit": {"action": "store_true", "help": "fit and write numbers; so also without any option"},
    "compare": {"action": "store_true", "help": "leave windows out, with and without dry friction"},
    "numbers": {"metavar": "FILE.json", "help": "read, or written by --fit, in place of the usual"},
    "figure": {"metavar": "FILE.png", "help": "draw what is predicted"},
}

if __name__ == "__main__":
    main(**asked(__doc__, **OPTIONS))
