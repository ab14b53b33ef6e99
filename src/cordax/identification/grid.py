"""Where recorded instants fall on the grid of a simulation."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._checks import require


class Grid(eqx.Module):
    """The simulation on which recorded instants lie: `steps` steps of `dt` [s] from `t0` [s], every
    `save_every`-th stored, and the stored `rows` that were recorded, shape (k,)."""

    t0: float = eqx.field(static=True)
    dt: float = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    rows: jax.Array


def grid(t: np.ndarray, dt: float | None, t0: float | None, default_dt: float) -> Grid:
    """Place the instants `t` [s] on a grid of steps `dt`; the step, if not given, is the largest up
    to `default_dt` that divides the first sampling interval."""
    t0 = float(t[0]) if t0 is None else float(t0)
    require(t0 <= t[0], "t0", t0, f"a start not after the first recorded instant {t[0]:g} s")
    if dt is None:
        interval = float(t[1] - t[0])
        dt = interval / math.ceil(interval / default_dt * (1.0 - 1e-9))
    require(np.isfinite(dt) and dt > 0, "dt", dt, "a finite step > 0 s")
    position = (t - t0) / dt
    steps = np.round(position).astype(int)
    off = np.abs(position - steps) > 1e-6 * np.maximum(1.0, position)
    if np.any(off):
        first = t[np.argmax(off)]
        require(
            False,
            "recording.t",
            f"{first:.9g} s, {position[np.argmax(off)]:.6g} steps after t0 = {t0:g} s",
            f"instants on the grid t0 + n dt of the simulation, dt = {dt:g} s; choose dt as a "
            "divisor of the sampling interval, or resample the recording",
        )
    stride = int(np.gcd.reduce(steps))
    return Grid(t0, float(dt), int(steps[-1]), stride, jnp.asarray(steps // stride))
