"""Inputs that are a given function of time."""

from .._base.checks import require
from ..mechanics import Controller
from ..mechanics.reference_motion import Reference


class InputPath(Controller):
    """Inputs along a `path`, positions (n_u,) in their units: a `BSpline`, say, whose values are
    optimised."""

    path: Reference

    def __check_init__(self):
        known = isinstance(self.path, Reference) or type(self.path) is object
        require(known, "path", self.path, "a Reference, such as a BSpline")

    def __call__(self, t, state, memory):
        return self.path.position(t), memory
