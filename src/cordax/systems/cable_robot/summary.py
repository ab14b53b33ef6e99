"""Text summary of a run of a cable robot."""

import numpy as np


def summary(run, shown: int = 8) -> dict[str, str]:
    """Summary lines of a run, as a dictionary from name to text."""
    out = {name: np.asarray(x) for name, x in run.outputs.items()}
    t, tension = np.asarray(run.t), out["tension"]
    moved = 1e3 * np.abs(out["position"] - out["position"][0]).max(axis=0)
    row, cable = np.unravel_index(np.argmin(tension), tension.shape)
    x, y, z = out["position"][-1]
    roll, pitch, yaw = np.degrees(out["euler"][-1])
    lines = {
        "position at the end": f"x = {x:.4f} m, y = {y:.4f} m, z = {z:.4f} m",
        "rotation at the end": f"roll {roll:.2f}, pitch {pitch:.2f}, yaw {yaw:.2f} deg",
        "largest displacement": " / ".join(f"{d:.2f}" for d in moved) + " mm along x / y / z",
        "tension": f"{tension.min():.3f} to {tension.max():.3f} N, least in cable {cable + 1} at "
        f"t = {t[row]:g} s",
    }
    if "cable_pushes" in run.warnings:
        first = float(run.warnings["cable_pushes"])
        lines["rigid cables"] = (
            f"one would have to push from t = {first:g} s: what follows is unphysical"
            if np.isfinite(first)
            else "pull throughout"
        )
    return lines
