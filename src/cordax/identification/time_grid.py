"""Positions of recorded instants among the steps of a simulation."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require


class Grid(eqx.Module):
    """Time grid of a simulation and recorded instants in it: `steps` steps of `dt` [s] from `t0`
    [s], every `save_every`-th stored. An instant lies the fraction `beyond`, shape (k,), of a
    stored interval after the stored row `rows`, shape (k,); with `on_rows` all fractions are
    zero."""

    t0: float = eqx.field(static=True)
    dt: float = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    on_rows: bool = eqx.field(static=True)
    rows: jax.Array
    beyond: jax.Array

    def refined(self) -> "Grid":
        """The same grid with half the time step."""
        dt, steps, every = 0.5 * self.dt, 2 * self.steps, 2 * self.save_every
        return Grid(self.t0, dt, steps, every, self.on_rows, self.rows, self.beyond)

    def coarse(self) -> "Grid":
        """The same grid with one step per stored interval."""
        dt, steps = self.save_every * self.dt, self.steps // self.save_every
        return Grid(self.t0, dt, steps, 1, self.on_rows, self.rows, self.beyond)


def grid(t: np.ndarray, dt: float | None, t0: float | None, default_dt: float) -> Grid:
    """Place the instants `t` [s] among steps `dt`; the time step, if not given, is the largest up
    to `default_dt` that divides the median sampling interval."""
    t0 = float(t[0]) if t0 is None else float(t0)
    require(t0 <= t[0], "t0", t0, f"a start not after the first recorded instant {t[0]:g} s")
    if dt is None:
        interval = float(f"{np.median(np.diff(t)):.9g}")
        dt = interval / math.ceil(interval / default_dt * (1.0 - 1e-9))
    require(np.isfinite(dt) and dt > 0, "dt", dt, "a finite step > 0 s")
    dt = float(dt)
    position = (t - t0) / dt
    steps = np.round(position).astype(int)
    if np.all(np.abs(position - steps) <= 1e-6 * np.maximum(1.0, position)):
        stride = int(np.gcd.reduce(steps))
        zero = jnp.zeros(t.size)
        return Grid(t0, dt, int(steps[-1]), stride, True, jnp.asarray(steps // stride), zero)
    last = math.ceil(position[-1] * (1.0 - 1e-9))
    rows = np.clip(np.floor(position).astype(int), 0, last - 1)
    beyond = jnp.asarray(np.clip(position - rows, 0.0, 1.0))
    return Grid(t0, dt, last, 1, False, jnp.asarray(rows), beyond)
