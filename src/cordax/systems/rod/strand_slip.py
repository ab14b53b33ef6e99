"""Dry friction within a bent rod: strands that stick to each other and slip."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._checks import require, require_positive
from ..._fields import part_field
from ..._precision import float_field
from ...math.safe import safe_norm
from ...mechanics import Controller
from .discrete_rod import DiscreteRod


class StrandSlip(Controller):
    """Return mapping between steps, for a `DiscreteRod` with `stick`.

    Friction resists curvature that has not slipped. Where that would exceed `curvature` [1/m], in
    any direction across the rod, the rest has slipped: friction moments are `stick EI curvature` at
    most, and a rod bent to and fro takes the energy of its hysteresis. At the start friction does
    nothing."""

    rod: DiscreteRod = part_field()
    curvature: Float[Array, ""] = float_field()

    def __check_init__(self):
        require(self.rod.stick is not None, "rod", "stick=None", "a rod with stick")
        require_positive("curvature", self.curvature)

    def _bent(self, t, state):
        return self.rod.strains(t, state.q)[0][:2]

    def init(self, state):
        return self._bent(jnp.zeros((), state.q.dtype), state)

    def __call__(self, t, state, memory):
        """`memory`: the slipped curvature (2, s + 1) [1/m]."""
        bent = self._bent(t, state)
        stuck = bent - memory
        share = jnp.minimum(1.0, self.curvature / jnp.maximum(safe_norm(stuck, axis=0), 1e-9))
        slipped = bent - share * stuck
        return slipped.reshape(-1), slipped
