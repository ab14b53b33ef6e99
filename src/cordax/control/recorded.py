"""Playback of recorded inputs."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_axes, require_finite, require_known
from .._base.precision import as_float_array
from ..math.interpolation import lagrange_weights
from ..math.linalg import vecmat
from ..mechanics import Controller


class RecordedInput(Controller):
    """Inputs interpolated from recorded samples.

    **Arguments:**

    - `t` [s], shape (k,), increasing; `values`, shape (k, n_u).
    - `interpolation`: "cubic" through the four samples around an instant, for smooth signals (error
      0.02 (omega dt)^4 of a sinusoid), "linear", or "hold" for drives that keep a commanded value
      until the next one. With "hold", samples must have equal intervals, which must be a whole
      number of time steps.

    Before the first sample the first value applies, after the last sample the last.
    """

    start: Float[Array, ""]
    #: interval between samples [s]; None for unequal intervals, with samples at `times`
    interval: float | None = eqx.field(static=True)
    times: Float[Array, " k"] | None
    values: Float[Array, "k n_u"]
    interpolation: Literal["cubic", "linear", "hold"] = eqx.field(static=True)

    def __init__(self, t, values, interpolation: Literal["cubic", "linear", "hold"] = "cubic"):
        require_known("interpolation", interpolation, ("cubic", "linear", "hold"))
        with jax.ensure_compile_time_eval():  # concrete instants stay concrete inside jit
            t = np.asarray(as_float_array(t, "t"))
        values = as_float_array(values, "values")
        require_axes("t", t, 1, "(k,), one instant per sample")
        fits = values.ndim == 2 and t.shape == (values.shape[0],)
        require(fits, "values", f"shape {values.shape}", f"shape ({t.size}, number of inputs)")
        least = {"cubic": 4, "linear": 2, "hold": 2}[interpolation]
        require(t.size >= least, "t", f"{t.size} samples", f"at least {least}")
        require_finite("values", values)
        require(bool(np.all(np.diff(t) > 0)), "t", t, "increasing times")
        interval = (t[-1] - t[0]) / (t.size - 1)
        even = bool(np.all(np.abs(np.diff(t) - interval) < 1e-6 * interval))
        expected = "increasing times at equal intervals, for inputs that are held"
        require(even or interpolation != "hold", "t", t, expected)
        self.start, self.values = as_float_array(t[0]), values
        # rounded, because the mean difference is a whole number of steps only up to rounding errors
        self.interval = float(f"{interval:.12g}") if even else None
        self.times = None if even else as_float_array(t)
        self.interpolation = interpolation

    @property
    def period(self):
        return self.interval if self.interpolation == "hold" else None

    def switching_times(self):
        if self.interval is None:
            return self.times
        return self.start + self.interval * np.arange(self.values.shape[0])

    def unsampled(self):
        return _Steps(self) if self.interpolation == "hold" else self

    def otherwise(self):
        ways: tuple[Literal["cubic", "linear", "hold"], ...] = ("cubic", "linear", "hold")
        t = self.switching_times()
        if self.interval is None:
            ways = ways[:2]
        return {
            f"inputs read as {way!r}": RecordedInput(t, self.values, way)
            for way in ways
            if way != self.interpolation
        }

    def __call__(self, t, state, memory):
        k = self.values.shape[0]
        n = 2 if self.interpolation == "linear" else 4
        if self.times is not None:
            early = _ON_GRID * jnp.diff(self.times)
            sample = jnp.searchsorted(self.times[1:] - early, t, side="right")
            first = jnp.clip(sample - (n // 2 - 1), 0, k - n)
            around = lambda x: jax.lax.dynamic_slice_in_dim(x, first, n)
            x = jnp.clip(t, self.times[0], self.times[-1])
            return vecmat(lagrange_weights(x, around(self.times)), around(self.values)), memory
        x = jnp.clip((t - self.start) / self.interval, 0.0, k - 1.0)
        sample = jnp.floor(x + _ON_GRID).astype(int)
        if self.interpolation == "hold":
            return self.values[sample], memory
        first = jnp.clip(sample - (n // 2 - 1), 0, k - n)
        samples = jax.lax.dynamic_slice_in_dim(self.values, first, n)
        return vecmat(lagrange_weights(x - first, range(n)), samples), memory


class _Steps(Controller):
    """Inputs of a recording with "hold", evaluated at any instant instead of once per sample."""

    recorded: RecordedInput

    def switching_times(self):
        return self.recorded.switching_times()

    def __call__(self, t, state, memory):
        values = self.recorded.values
        x = (t - self.recorded.start) / self.recorded.interval
        return values[jnp.clip(jnp.floor(x).astype(int), 0, values.shape[0] - 1)], memory


#: Rounding may place an instant on the grid just before or just after its sample. A compiler that
#: computes `x` twice, for the samples and for their weights, may round differently each time and
#: combine samples of one interval with weights of the next. So intervals begin early by this
#: fraction of their length, where no instant lies.
_ON_GRID = 1e-6
