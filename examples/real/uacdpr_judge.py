"""How well `uacdpr_swing.py` predicts: errors in each second, half swings, phases, pictures."""

from itertools import pairwise

import numpy as np
from uacdpr_machine import Measured

ROLL = ("roll", "pitch", "yaw")


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


def seconds(t) -> list[slice]:
    """Rows of each second; a rest below half a second goes with the one before."""
    count = max(1, round(t[-1] - t[0]))
    edges = [*np.searchsorted(t, t[0] + np.arange(count) - 1e-6), len(t)]
    return [slice(a, b) for a, b in pairwise(edges)]


def sizes(x) -> str:
    return np.array2string(np.sqrt(np.mean(np.square(x), axis=0)), precision=1, floatmode="fixed")


def tell_errors(found, part: Measured) -> None:
    for quantity, x in residuals(found, part).items():
        digits = [sizes(x[rows]) for rows in seconds(part.t)]
        print(f"    {quantity}, RMS in each second: {', '.join(digits)}", flush=True)


def swings(t, angle) -> np.ndarray:
    """Half swings (n, 2): how far [deg], and one over twice how long [Hz]; angles about rest."""
    at = np.flatnonzero(np.diff(np.sign(angle)) != 0)
    zero = t[at] - angle[at] * (t[at + 1] - t[at]) / (angle[at + 1] - angle[at])
    far = [np.abs(angle[i : j + 1]).max() for i, j in pairwise(at)]
    return np.column_stack([np.degrees(far), 0.5 / np.diff(zero)]) if len(far) else np.ones((0, 2))


def by_amplitude(found: np.ndarray, edges=(1.0, 4.0, 8.0, 16.0, 22.0, 40.0)) -> str:
    """Median frequency of the half swings between these amplitudes."""
    said = []
    for low, high in pairwise(edges):
        inside = found[(found[:, 0] >= low) & (found[:, 0] < high), 1]
        if len(inside):
            said.append(f"{low:.0f} to {high:.0f} deg {np.median(inside):.2f} Hz ({len(inside)})")
    return ", ".join(said)


def phases(t, measured, predicted, frequency: float) -> np.ndarray:
    """In each second (n, 3): by how much the prediction is ahead [deg], how far it swings compared
    with the measurement, and how far that does [as given]; both by their part of one frequency
    [Hz], under a bell."""
    rows = []
    for row in seconds(t):
        bell = np.hanning(row.stop - row.start)
        turn = bell * np.exp(-2j * np.pi * frequency * t[row]) / bell.sum()
        free = lambda x, bell=bell: x - np.average(x, weights=bell)
        a, b = (2.0 * np.sum(free(x[row]) * turn) for x in (measured, predicted))
        rows.append([np.degrees(np.angle(b / a)), abs(b / a), abs(a)])
    return np.array(rows)


def tell_swings(found, part: Measured, rest, least: float = 0.2) -> None:
    """Half swings and phases of all three angles, about `rest` (3,) [rad]; those below `least`
    [deg] have no phase."""
    for i, name in enumerate(ROLL):
        pair = part.pose[:, 3 + i] - rest[i], found["euler"][:, i] - rest[i]
        half = [swings(part.t, x) for x in pair]
        for said, x in zip(("measured", "predicted"), half, strict=True):
            print(f"    {name}, half swings {said}: {by_amplitude(x) or 'none of 1 deg'}")
        large = half[0][half[0][:, 0] >= least, 1]
        if not len(large):
            continue
        measured, predicted = np.degrees(pair)
        rows = phases(part.t, measured, predicted, float(np.median(large)))
        said = [f"{p:+.0f} ({r:.2f})" if far >= least else "-" for p, r, far in rows]
        print(f"    {name}, ahead by [deg] (swings so many times as far): {', '.join(said)}")


def draw(part: Measured, found, counted, file: str) -> None:
    """A window, and half swings of pitch, if counted."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11 if counted else 8, 6), layout="constrained")
    widths = (3, 2) if counted else (1,)
    sides = figure.subfigures(1, len(widths), squeeze=False, width_ratios=widths)[0]
    axes = sides[0].subplots(3, 2, sharex=True)
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
    if counted:
        axis = sides[1].subplots()
        for (name, x), style in zip(counted.items(), ("ko", "C1x"), strict=True):
            axis.plot(x[:, 0], x[:, 1], style, label=name)
        axis.set(xlabel="pitch, how far [deg]", ylabel="half swings [Hz]")
        axis.legend(frameon=False)
    figure.savefig(file, dpi=80)
