"""Constraints of an optimisation."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._base.checks import require
from ..recordings.recording import observe


class Constraint(eqx.Module):
    """Bounds on a quantity: `low <= quantity <= high` for each of its entries.

    **Arguments:**

    - `quantity`: name of a quantity of the trajectory ("tension"), which is bounded at every stored
      instant; or a function from a `Trajectory` (or from a machine, if only a machine is optimised)
      to an array of any shape.
    - `low`, `high`: bounds in the unit of the quantity; equal bounds are an equality constraint.
    - `name`: name in reports; by default that of the quantity.
    - `scale`: size of one unit of violation, such as 1 N or 1 mm. Violations are weighted relative
      to it, and so is the tolerance up to which the constraint counts as satisfied.

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
        """Values of the quantity as a flat array."""
        quantity: Any = self.quantity
        found = observe(run, quantity, "constraint") if isinstance(quantity, str) else quantity(run)
        return jnp.ravel(jnp.asarray(found))
