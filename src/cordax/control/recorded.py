"""Inputs that were recorded, played back."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import require, require_axes, require_finite, require_known
from .._precision import as_float_array
from ..math.lagrange import lagrange_weights
from ..math.linalg import vecmat
from ..mechanics import Controller


class RecordedInput(Controller):
    """Inputs from samples at equal intervals.

    **Arguments:**

    - `t` [s], shape (k,); `values`, shape (k, n_u).
    - `interpolation`: "cubic" through the four samples around an instant, for smooth signals (error
      0.02 (omega dt)^4 of a sinusoid), "linear", or "hold" for drives that keep a commanded value
      until the next one; the time step then divides the sampling interval.

    Before the first sample the first value applies, after the last sample the last.
    """

    start: Float[Array, ""]
    interval: float = eqx.field(static=True)
    values: Float[Array, "k n_u"]
    interpolation: Literal["cubic", "linear", "hold"] = eqx.field(static=True)

    def __init__(self, t, values, interpolation: Literal["cubic", "linear", "hold"] = "cubic"):
        require_known("interpolation", interpolation, ("cubic", "linear", "hold"))
        t, values = np.asarray(as_float_array(t, "t")), as_float_array(values, "values")
        require_axes("t", t, 1, "(k,), one instant per sample")
        fits = values.ndim == 2 and t.shape == (values.shape[0],)
        require(fits, "values", f"shape {values.shape}", f"shape ({t.size}, number of inputs)")
        least = {"cubic": 4, "linear": 2, "hold": 2}[interpolation]
        require(t.size >= least, "t", f"{t.size} samples", f"at least {least}")
        require_finite("values", values)
        interval = (t[-1] - t[0]) / (t.size - 1)
        even = interval > 0 and bool(np.all(np.abs(np.diff(t) - interval) < 1e-6 * interval))
        require(even, "t", t, "increasing times at equal intervals")
        self.start, self.values = as_float_array(t[0]), values
        # rounded, since the mean of differences is a whole number of steps only up to rounding
        self.interval = float(f"{interval:.12g}")
        self.interpolation = interpolation

    @property
    def period(self):
        return self.interval if self.interpolation == "hold" else None

    def otherwise(self):
        t = self.start + self.interval * np.arange(self.values.shape[0])
        ways: tuple[Literal["cubic", "linear", "hold"], ...] = ("cubic", "linear", "hold")
        return {
            f"inputs read as {way!r}": RecordedInput(t, self.values, way)
            for way in ways
            if way != self.interpolation
        }

    def __call__(self, t, state, memory):
        k = self.values.shape[0]
        x = jnp.clip((t - self.start) / self.interval, 0.0, k - 1.0)
        sample = jnp.floor(x + _ON_GRID).astype(int)
        if self.interpolation == "hold":
            return self.values[sample], memory
        n = 2 if self.interpolation == "linear" else 4
        first = jnp.clip(sample - (n // 2 - 1), 0, k - n)
        samples = jax.lax.dynamic_slice_in_dim(self.values, first, n)
        return vecmat(lagrange_weights(x - first, n), samples), memory


#: An instant on the grid falls above or below its sample by rounding, and a compiler that computes
#: `x` twice, once for the samples and once for their weights, may round both ways: samples of one
#: interval with the weights of the next. Intervals begin this share early, where no instant lies.
_ON_GRID = 1e-6
