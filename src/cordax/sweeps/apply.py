"""An experiment with other numbers."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._checks import require_shape
from ..experiment import Experiment
from ..parameters import collect


class Vary(eqx.Module):
    """From a row of numbers, by name, to the experiment that has them."""

    base: Experiment

    def __call__(self, row: Mapping[str, Any]) -> Experiment:
        return varied(self.base, row)


def varied(base: Experiment, row: Mapping[str, Any]) -> Experiment:
    """`base` with the numbers of `row`, by the names of `Parameter`; a single number fills an
    array."""
    for name, value in row.items():
        place = collect([name], base).places[0]
        old = place.read(base)
        new = jnp.asarray(value, old.dtype)
        if new.ndim:
            require_shape(name, new, old.shape)
        base = place.write(base, jnp.broadcast_to(new, old.shape))
    return base
