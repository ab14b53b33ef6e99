"""A real robot on four cables, swinging with its winches locked: fitted, then predicted.

    python examples/real/uacdpr_swing.py DATA [--figure FILE.png] [--compare yes]

DATA: as for `uacdpr.py`. A platform of 13 kg swings on four cables that are nearly redundant: what
is taken from two opposite cables and given to the others moves it many times as far. Rigid cables
make that singular; elastic ones leave three slow motions, not two. Lengths, stiffness, centre of
mass, inertia and damping are fitted to motion capture in windows in which nobody pushes. Load
cells, swivel angles and the inclinometer are not fitted but predicted, also in windows of their
own, from the state measured where these begin. How fast it pitches depends on how far: half swings
are counted in both. `--compare yes` fits with the given inertia, and with cables nearly rigid, too:
what is left out shows in what was not fitted."""

import time
from itertools import pairwise

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from uacdpr import CORNERS, FREE, asked, turned  # noqa: E402
from uacdpr_machine import Measured, MeasuredStart, read, unfitted  # noqa: E402

from cordax import Experiment, Parameter, Recording, identify  # noqa: E402

#: windows without pushes [s]: fitted, and left for prediction
FITTED = ((24.0, 26.0), (17.1, 18.6), (10.4, 11.9))
LEFT = ((26.0, 28.6), (18.6, 19.1))
#: of any amplitude, for counting swings [s]
SWINGS = ((8.8, 12.2), (17.1, 19.1), (23.9, 28.6))
DT = 5e-3
#: what fits and predictions are weighed by: [m], [rad]
NOISE = {"r_i_x": 2e-3, "r_i_y": 2e-3, "r_i_z": 2e-3, "euler": 8e-3}
ROLL = ("roll", "pitch", "yaw")


def recording(part: Measured) -> Recording:
    values = {f"r_i_{c}": part.pose[:, i] for i, c in enumerate("xyz")}
    return Recording(part.t - part.t[0], values | {"euler": part.pose[:, 3:]})


def experiment(robot, part: Measured, duration=None) -> Experiment:
    # load cells read low: 1.145 times as much carries the weight at rest
    pull = jnp.asarray(1.145 * part.tension[0])
    first = jnp.asarray(part.pose[0]), jnp.asarray(part.rate[0])
    start = MeasuredStart(*first, pull, jnp.zeros(6), jnp.zeros(6))
    return Experiment(robot, start, dt=DT, integrator="rk4", duration=duration, save_every=2)


PARAMETERS = [
    "drives.patterns",
    "cables.stiffness",
    Parameter("platform.centre", transform="linear"),
    *(f"platform.inertia[{i},{i}]" for i in range(3)),
    "angular_damping",
    Parameter("state0.shift", prior=(0.0, 1.0)),
    Parameter("state0.push", prior=(0.0, 1.0)),
]


def fit_windows(robot, parts: list[Measured], parameters=PARAMETERS, max_steps: int = 60):
    experiments = [experiment(robot, part) for part in parts]
    records = [recording(part) for part in parts]
    options = {"noise": NOISE, "max_steps": max_steps, "tolerance": 1e-3, "check_step": False}
    return identify(experiments, records, parameters, **options)


def predict(robot, part: Measured) -> dict[str, np.ndarray]:
    """Open loop from the measured start: what sensors would read at the instants of `part`."""
    run = cordax.simulate(experiment(robot, part, float(part.t[-1] - part.t[0])))
    b = run.q[:, None, :3] + jax.vmap(lambda e: robot.attachments @ turned(e).T)(run["euler"])
    delta = np.asarray(b) - FREE
    return {
        "position": np.asarray(run.q[:, :3]),
        "euler": np.asarray(run["euler"]),
        "tension": np.asarray(run["tension"]),
        "swivel": CORNERS[:, 0] * np.arctan2(delta[..., 1], -delta[..., 2]),
    }


def residuals(found, part: Measured) -> dict[str, np.ndarray]:
    """Predicted less measured; of swivels and inclinometer what is not constant."""
    free = lambda x: x - x.mean(0)
    return {
        "position [mm]": 1e3 * (found["position"] - part.pose[:, :3]),
        "euler [deg]": np.degrees(found["euler"] - part.pose[:, 3:]),
        "inclinometer [deg]": np.degrees(free(found["euler"] - part.tilt)),
        "swivel [deg]": np.degrees(free(found["swivel"] - part.swivel)),
        "tension [N]": found["tension"] - part.tension,
    }


def sizes(x) -> str:
    return np.array2string(np.sqrt(np.mean(np.square(x), axis=0)), precision=1, floatmode="fixed")


def at_rest(name: str, robot) -> None:
    state = cordax.equilibrium(robot)
    found = cordax.modes(robot, state)
    place = state.q[:3], robot.platform.rotation(state.q[:12])
    tension = robot.cables.tension(robot.lengths(*place) - robot.drives.length(0.0, None), 0.0)
    print(f"{name}: {found.frequency[:6:2].round(3)} Hz, damping {found.damping[:6:2].round(3)}")
    print(f"    tensions at rest {np.asarray(tension).round(1)} N")


def swings(t, angle) -> np.ndarray:
    """Half swings (n, 2): how far [deg], and one over twice how long [Hz]; angles about rest."""
    at = np.flatnonzero(np.diff(np.sign(angle)) != 0)
    zero = t[at] - angle[at] * (t[at + 1] - t[at]) / (angle[at + 1] - angle[at])
    far = [np.abs(angle[i : j + 1]).max() for i, j in pairwise(at)]
    return np.column_stack([np.degrees(far), 0.5 / np.diff(zero)]) if len(far) else np.ones((0, 2))


def pitch_swings(robot, data: Measured, rest: float) -> dict[str, np.ndarray]:
    """Of pitch in all windows, about `rest` [rad], measured and predicted."""
    found = {"measured": [], "predicted": []}
    for window in SWINGS:
        part = data.rows(*window)
        found["measured"].append(swings(part.t, part.pose[:, 4] - rest))
        found["predicted"].append(swings(part.t, predict(robot, part)["euler"][:, 1] - rest))
    return {name: np.concatenate(x) for name, x in found.items()}


def by_amplitude(found: np.ndarray, edges=(1.0, 4.0, 8.0, 16.0, 22.0, 40.0)) -> str:
    """Median frequency of the half swings between these amplitudes."""
    said = []
    for low, high in pairwise(edges):
        inside = found[(found[:, 0] >= low) & (found[:, 0] < high), 1]
        if len(inside):
            said.append(f"{low:.0f} to {high:.0f} deg {np.median(inside):.2f} Hz ({len(inside)})")
    return ", ".join(said)


def tell(name: str, robot, data: Measured) -> None:
    """What a machine predicts where nothing was fitted."""
    at_rest(name, robot)
    for window in LEFT:
        part = data.rows(*window)
        for quantity, x in residuals(predict(robot, part), part).items():
            parts = ", ".join(sizes(x[i : i + 100]) for i in range(0, len(x) - 1, 100))
            print(f"    {window} s, {quantity}, RMS in each second: {parts}", flush=True)


def fitted(name: str, robot, data: Measured, parameters=PARAMETERS):
    begin = time.process_time()
    fit = fit_windows(robot, [data.rows(*window) for window in FITTED], parameters)
    print(f"{name}: fitted in {time.process_time() - begin:.0f} processor seconds")
    lines = fit.summary().splitlines() + fit.residual_summary().splitlines()
    print("\n".join(line for line in lines if not line.startswith("state0")))
    tell(name, fit.system, data)
    return fit


def main(folder: str, figure: str | None = None, compare: str | None = None):
    data = read(folder)
    still = data.rows(4.4, 5.3)
    robot, rest = unfitted(still), float(still.pose[:, 4].mean())
    tell("unfitted", robot, data)
    fit = fitted("fitted", robot, data)
    found = pitch_swings(fit.system, data, rest)
    for name, x in found.items():
        print(f"pitch, {name}: {by_amplitude(x)}")
    if figure:
        draw(data.rows(*LEFT[0]), predict(fit.system, data.rows(*LEFT[0])), found, figure)
    if compare:
        named = lambda p: p if isinstance(p, str) else p.name
        without = lambda word: [p for p in PARAMETERS if word not in named(p)]
        fitted("inertia as given", robot, data, without("inertia"))
        stiff = eqx.tree_at(lambda r: r.cables.stiffness, fit.system, jnp.asarray(1e5))
        fitted("nearly rigid, 100 kN/m", stiff, data, without("stiffness"))
    return fit


def draw(part: Measured, found, counted, file: str) -> None:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = left.subplots(3, 2, sharex=True)
    free = lambda x: np.degrees(x - x.mean(0))
    shown = {f"{n} [deg]": (found["euler"][:, i], part.pose[:, 3 + i]) for i, n in enumerate(ROLL)}
    shown = {name: tuple(map(np.degrees, pair)) for name, pair in shown.items()}
    shown["x [mm]"] = 1e3 * found["position"][:, 0], 1e3 * part.pose[:, 0]
    shown["swivel 1 [deg]"] = free(found["swivel"][:, 0]), free(part.swivel[:, 0])
    shown["tension 1 [N]"] = found["tension"][:, 0], part.tension[:, 0]
    for axis, (name, (predicted, measured)) in zip(axes.T.ravel(), shown.items(), strict=True):
        axis.plot(part.t, measured, "k", lw=1.0, label="measured")
        axis.plot(part.t, predicted, "C1", lw=1.0, label="predicted")
        axis.set_ylabel(name)
    axes[0, 0].legend(frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("t [s]")
    axis = right.subplots()
    for (name, x), style in zip(counted.items(), ("ko", "C1x"), strict=True):
        axis.plot(x[:, 0], x[:, 1], style, label=name)
    axis.set(xlabel="pitch, how far [deg]", ylabel="half swings [Hz]")
    axis.legend(frameon=False)
    figure.savefig(file, dpi=80)


if __name__ == "__main__":
    main(**asked(__doc__, figure="file to draw into (.png)", compare="fit other models too"))
