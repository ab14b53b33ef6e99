"""Summary of a run: text by name."""

import math

import numpy as np

from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .progress import Seconds


def facts(run: Trajectory, experiment: Experiment, seconds: Seconds) -> dict[str, str]:
    """Facts about the machine, its controller, its constraints and the computing time."""
    lines: dict[str, str] = {}
    control = experiment.inputs
    if hasattr(control, "tracking_error"):
        error = float(np.max(np.abs(control.tracking_error(run))))
        unit = getattr(control, "tracking_unit", "rad")
        degrees = f" ({math.degrees(error):.3f} deg)" if unit == "rad" else ""
        lines["largest tracking error"] = f"{error:.3e} {unit}{degrees}"
    lines |= run._known_system("summary").presentation().summary(run)
    if run.events is not None:
        lines |= _events(run)
    if np.any(np.asarray(run.violation)):
        lines["constraint violation"] = f"at most {float(np.max(np.asarray(run.drift()))):.1e}"
    in_summary = {"cable_pushes"} if "rigid cables" in lines else set()
    warnings = [
        f"{name.replace('_', ' ')} from t = {float(first):g} s"
        for name, first in run.warnings.items()
        if np.isfinite(first) and name not in in_summary
    ]
    if warnings:
        lines["warning"] = "; ".join(warnings)
    duration = float(run.t[-1] - run.t[0])
    faster = duration / max(seconds.run, 1e-9)
    times = f"{faster:.0f}" if faster > 10 else f"{faster:.2g}"
    lines["wall time"] = (
        f"{seconds.run * 1e3:.1f} ms to run ({times} times real time), "
        f"{seconds.compile:.2f} s to compile or load"
    )
    return lines


def _events(run: Trajectory, shown: int = 8) -> dict[str, str]:
    events = run.events
    assert events is not None
    times, kinds = np.asarray(events.time), np.asarray(events.kind)
    indices = np.flatnonzero(np.isfinite(times))
    lines = {"cables went slack": f"{np.sum(kinds[indices] < 0)} times"}
    for number, i in enumerate(indices[:shown], 1):
        event = (
            f"tightens, impulse {float(events.impulse[i]):.4f} N s" if kinds[i] > 0 else "slackens"
        )
        lines[f"  event {number}"] = f"t = {times[i]:.5f} s: cable {int(events.row[i]) + 1} {event}"
    if len(indices) > shown:
        lines["  and"] = f"{len(indices) - shown} more events"
    return lines
