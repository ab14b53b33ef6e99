"""What a motion must keep."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._base.checks import require
from ..recordings.recording import observe


class Constraint(eqx.Module):
    """`low <= quantity <= high`, entry by entry.

    **Arguments:**

    - `quantity`: a name of the trajectory ("tension"), at every stored instant, or a function from
      a `Trajectory` (or a machine, where only that is optimised) to an array of numbers of any
      shape.
    - `low`, `high`: bounds in the quantity's unit; equal ones ask for equality.
    - `name`: for reports; that of the quantity by default.
    - `scale`: what counts as one unit of violation, such as 1 N or 1 mm: violations are weighed,
      and called kept, relative to it.

    **Example:**

    ```python
    import cordax

    gentle = cordax.Constraint("d_angle", low=-1.0, high=1.0)  # rad/s at all instants
    turned = cordax.Constraint(lambda run: run["angle"][-1], low=0.0, high=0.0, name="end")
    ```
    """

    quantity: str | Callable[[Any], Any] = eqx.field(static=True)
    low: float = eqx.field(static=True, default=-math.inf)
    high: float = eqx.field(static=True, default=math.inf)
    name: str = eqx.field(static=True, default="")
    scale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        known = isinstance(self.quantity, str) or callable(self.quantity)
        require(known, "quantity", self.quantity, "a name, or a function of a Trajectory")
        for name in ("low", "high"):
            bound = getattr(self, name)
            number = isinstance(bound, (int, float)) and not math.isnan(bound)
            require(number, f"{self.label}: {name}", bound, "a number")
        ends, which = (self.low, self.high), f"{self.label}: bounds"
        require(self.low <= self.high, which, ends, "low <= high")
        require(math.isfinite(self.low) or math.isfinite(self.high), which, ends, "low or high")
        ok = isinstance(self.scale, (int, float)) and 0 < self.scale < math.inf
        require(ok, f"{self.label}: scale", self.scale, "a finite number > 0")

    @property
    def label(self) -> str:
        if self.name:
            return self.name
        quantity: Any = self.quantity
        named = isinstance(quantity, str)
        return quantity if named else getattr(quantity, "__name__", "constraint")

    def values(self, run: Any):
        """The quantity as one row of numbers."""
        quantity: Any = self.quantity
        found = observe(run, quantity, "constraint") if isinstance(quantity, str) else quantity(run)
        return jnp.ravel(jnp.asarray(found))
