"""Inputs that are known functions of time."""

import jax.numpy as jnp

from .._base.checks import require
from .._base.fields import part_field
from ..mechanics import Controller
from ..mechanics.reference_motion import Reference, require_position


class Programme(Controller):
    """One `Reference` of a number per input: a force that grows, a torque that swings."""

    inputs: tuple[Reference, ...] = part_field()

    def __check_init__(self):
        require(len(self.inputs) > 0, "inputs", "none", "one Reference per input")
        for i, reference in enumerate(self.inputs):
            if type(reference) is not object:  # a placeholder of a transformation
                require_position(f"inputs[{i}]", reference, ())

    def __call__(self, t, state, memory):
        return jnp.stack([reference.position(t) for reference in self.inputs]), memory
