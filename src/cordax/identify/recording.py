"""Measured data, and where they fall on the grid of a simulation."""

import math
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import require, require_shape
from .._precision import as_float_array
from ..trajectory import Trajectory


class Recording(eqx.Module):
    """What was measured.

    `t` [s], shape (k,), increasing; `values`: arrays of shape (k,), or (k, ...) as the machine's
    outputs, by the names a trajectory knows: coordinates, velocities (`d_` + name), inputs,
    outputs, and single components of outputs counted from one (`tension_2`). NaN marks what is
    missing, so that gaps and different sampling rates are possible. Observe as little as is known:
    names that are left out are not compared.
    """

    t: np.ndarray
    values: dict[str, Float[Array, "k ..."]]

    def __init__(self, t, values):
        self.t = np.asarray(t, dtype=float)
        self.values = {name: as_float_array(x) for name, x in dict(values).items()}
        require(self.t.ndim == 1 and self.t.size > 1, "recording.t", self.t, "shape (k,), k > 1")
        increasing = bool(np.all(np.isfinite(self.t)) and np.all(np.diff(self.t) > 0))
        require(increasing, "recording.t", self.t, "finite, increasing times")
        require(len(self.values) > 0, "recording.values", "nothing", "at least one name")
        k = self.t.size
        for name, x in self.values.items():
            require_shape(f"recording.values[{name!r}]", x, (k, *x.shape[1:]))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values)

    def select(self, names) -> "Recording":
        """Only these names."""
        missing = [n for n in names if n not in self.values]
        require(not missing, "recording", ", ".join(missing), f"some of {', '.join(self.names)}")
        return Recording(self.t, {n: self.values[n] for n in names})


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


def observe(trajectory: Trajectory, name: str):
    """A recorded quantity of a trajectory by its name, shape (k, ...)."""
    if name not in trajectory.names:
        component = re.fullmatch(r"(.+)_(\d+)", name)
        if component and component[1] in trajectory.outputs:
            whole = trajectory.outputs[component[1]]
            whole = whole.reshape(whole.shape[0], -1)
            index = int(component[2]) - 1
            if 0 <= index < whole.shape[1]:
                return whole[:, index]
        raise ValueError(
            f"recording: got {name!r}, expected names of the machine: {', '.join(trajectory.names)}"
        )
    return trajectory[name]
