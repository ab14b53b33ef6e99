"""Dry friction within a bent rod: strands that stick to each other and slip."""

import jax.numpy as jnp

from ..._base.checks import require
from ..._base.fields import part_field
from ...mechanics import Controller
from .discrete_rod import DiscreteRod
from .joints import resisted


class StrandSlip(Controller):
    """Controller that stores the slipped curvature of a `DiscreteRod` with `stick` and `slip`.

    Friction resists curvature that has not slipped, up to `slip` [1/m] in any direction across the
    rod; the excess slips. Within a step the rod computes this itself, from the curvature that had
    slipped before the step; this controller updates that curvature from step to step. Friction
    moments are at most `stick EI slip`, and a rod that is bent back and forth dissipates the energy
    of its hysteresis loop. Friction is zero in the initial state."""

    rod: DiscreteRod = part_field()

    def __check_init__(self):
        require(self.rod.stick is not None, "rod", "stick=None", "a rod with stick and slip")

    def _bent(self, t, state):
        return self.rod.strains(t, state.q)[0][:2]

    def init(self, state):
        # grippers move with time, and the time is only available in the first call
        return jnp.full((2, self.rod.segments + 1), jnp.nan, state.q.dtype)

    def __call__(self, t, state, memory):
        """Update the slipped curvature. `memory`: the slipped curvature (2, s + 1) [1/m]; NaN
        before the first call, at which friction is zero."""
        bent = self._bent(t, state)
        memory = jnp.where(jnp.isnan(memory), bent, memory)
        slipped = bent - resisted(bent - memory, self.rod.slip)
        return slipped.reshape(-1), slipped
