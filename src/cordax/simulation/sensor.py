"""Sensors: what an instrument shows of a simulated quantity."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_number, require_positive, require_whole
from .._base.precision import float_field
from ..math.interpolation import lagrange_weights
from .trajectory import Trajectory


def _wrapped(x):
    from .experiment import Recipe  # which imports this module

    return Recipe(x) if callable(x) and not isinstance(x, eqx.Module) else x


class Sensor(eqx.Module):
    """A measured channel: `gain x + offset + drift (t - t0)`, where x is a simulated quantity after
    a `delay` and a low-pass.

    - `quantity`: name of a quantity of the machine, by default that of the channel; or a function
      `(machine, t, q, v) -> array`, such as `cordax.systems.BodyPoint("arm", (0.2, 0, 0))` or
      `RodPoint(0.12)`, which may have parameters.
    - `offset` in the unit of the channel, `gain` [-], `drift` in that unit per second.
    - `delay` [s]: time by which the sensor is late. Values before the beginning of the simulation
      are extrapolated along a straight line.
    - `time_constant` [s] of a first-order low-pass; it starts in the steady state of a ramp.
    - `cutoff` [Hz], `order`: for recordings that were filtered with `Recording.filter(cutoff,
      order)`: the simulated values are filtered in the same way.

    Parameters of a fit are `"sensors.NAME.offset"` and so on, with priors if the data do not
    determine them. A gain cannot be identified beside a parameter that scales the motion.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    import numpy as np
    from cordax.systems import Pendulum

    run = cordax.simulate(Pendulum(length=0.8), dt=0.01, duration=2.0)
    noise = 1e-3 * np.random.default_rng(0).normal(size=201)  # rad
    log = cordax.Recording(run.t, {"angle": run["angle"] + 0.02 + noise})
    sensors = {"angle": cordax.Sensor()}
    swing = cordax.Experiment(Pendulum(), dt=0.01, integrator="rk4", sensors=sensors)
    fit = cordax.identify(swing, log, ["length", "sensors.angle.offset"])
    print(fit.summary())  # 0.8 m, 0.02 rad
    ```
    """

    quantity: Any = eqx.field(converter=_wrapped, default=None)
    offset: Float[Array, "..."] = float_field(default=0.0)
    gain: Float[Array, "..."] = float_field(unit="-", default=1.0)
    drift: Float[Array, "..."] = float_field(default=0.0)
    delay: Float[Array, ""] | None = float_field(unit="s", default=None)
    time_constant: Float[Array, ""] | None = float_field(unit="s", default=None)
    cutoff: float | None = eqx.field(static=True, default=None)
    order: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        known = self.quantity is None or isinstance(self.quantity, str) or callable(self.quantity)
        expected = "the name of a quantity, or a function (machine, t, q, v) -> array"
        require(known, "quantity", self.quantity, expected)
        if self.time_constant is not None:
            require_positive("time_constant", self.time_constant)
        if self.delay is not None:
            require_positive("delay", self.delay, zero_allowed=True)
        if self.cutoff is not None:
            require_number("cutoff", self.cutoff)
        require_whole("order", self.order, 1)

    @property
    def dynamic(self) -> bool:
        """Whether the sensor needs values at other instants than its own."""
        return self.delay is not None or self.time_constant is not None

    def of(self, run: Trajectory, quantity: Callable[[Trajectory, str], Array], name: str):
        """The quantity at the instants of `run`, shape (k, ...); `quantity(run, name)` looks names
        up."""
        if not callable(self.quantity):
            return quantity(run, self.quantity or name)
        require(run.system is not None, "sensors", name, "a trajectory with its machine")
        return jax.vmap(lambda t, q, v: self.quantity(run.system, t, q, v))(run.t, run.q, run.v)

    def late(self, t: Float[Array, " n"], x: Float[Array, "n ..."], position: Float[Array, " k"]):
        """Values (k, ...) at `position` (in steps of the even times `t`), from values `x` at `t`,
        through delay and low-pass."""
        flat, h = x.reshape(x.shape[0], -1), t[1] - t[0]
        if self.time_constant is not None:
            flat = _low_pass(flat, h, self.time_constant)
        if self.delay is not None:
            position = position - self.delay / h
        count = min(4, flat.shape[0])
        row = jax.lax.stop_gradient(jnp.clip(jnp.floor(position), 0, flat.shape[0] - 2))
        first = jnp.clip(row - 1, 0, flat.shape[0] - count)
        nodes = flat[first.astype(int)[:, None] + np.arange(count)]
        inside = jnp.clip(position, 0.0, flat.shape[0] - 1.0)
        weights = jax.vmap(lambda s: lagrange_weights(s, range(count)))(inside - first)
        found = jnp.einsum("kn,knm->km", weights, nodes)
        before = jnp.minimum(position, 0.0)[:, None] * (flat[1] - flat[0])
        return (found + before).reshape(-1, *x.shape[1:])

    def shown(self, t: Float[Array, " k"], x: Float[Array, "k ..."], t0) -> Float[Array, "k ..."]:
        """What the instrument shows of values `x` at times `t` [s]; drift begins at `t0` [s]."""
        column = (t - t0).reshape(-1, *(1,) * (x.ndim - 1))
        return self.gain * x + self.offset + self.drift * column


def _low_pass(x: Float[Array, "n m"], h, time) -> Float[Array, "n m"]:
    """First-order low-pass, exact for values `x` that change linearly within steps `h` [s]."""
    a = jnp.exp(-h / time)
    slope = x[1:] - x[:-1]
    drive = x[1:] - a * x[:-1] - (1.0 - a) * (time / h) * slope

    def step(y, drive):
        y = a * y + drive
        return y, y

    first = x[0] - (time / h) * slope[0]
    return jnp.concatenate([first[None], jax.lax.scan(step, first, drive)[1]])
