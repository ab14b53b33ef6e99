"""Inputs that are functions of time."""

import jax.numpy as jnp

from .._base.checks import require
from .._base.fields import part_field
from ..mechanics import Controller
from ..mechanics.reference_motion import Reference, merged, require_position


class Programme(Controller):
    """Inputs given by one scalar `Reference` for each input, in the unit of that input.

    For example a force that grows, or a torque that oscillates. `inputs`: n_u references."""

    inputs: tuple[Reference, ...] = part_field()

    def __check_init__(self):
        require(len(self.inputs) > 0, "inputs", "none", "one Reference per input")
        for i, reference in enumerate(self.inputs):
            if type(reference) is not object:  # a placeholder of a JAX transformation
                require_position(f"inputs[{i}]", reference, ())

    def switching_times(self):
        return merged(*(reference.switching_times() for reference in self.inputs))

    def __call__(self, t, state, memory):
        return jnp.stack([reference.position(t) for reference in self.inputs]), memory


class InputPath(Controller):
    """Inputs given by one `Reference`, `path`, with positions of shape (n_u,).

    Positions are in the units of the inputs. `path` is for example a `BSpline` whose control values
    are optimised."""

    path: Reference

    def __check_init__(self):
        valid = isinstance(self.path, Reference) or type(self.path) is object
        require(valid, "path", self.path, "a Reference, such as a BSpline")

    def switching_times(self):
        return self.path.switching_times()

    def __call__(self, t, state, memory):
        return self.path.position(t), memory
