"""Projection onto the constraints after every step."""

import jax.numpy as jnp

from .._base.fields import count_field, part_field
from .._base.results import GOOD, Result, code_unless
from ..mechanics import State
from ..mechanics.constraints import position_on_constraints, velocity_on_constraints
from .constrained import Constrained
from .index1 import Baumgarte


class Projected(Constrained):
    """Another formulation, `inner`, and after each step the nearest state, in the norm of the mass
    matrix, that satisfies the constraints and their rates.

    `iterations` Gauss-Newton steps for the positions: one reaches round-off where the drift of a
    step is below 1e-8. The default `inner` is the bare index-1 form, which then needs no
    stabilisation."""

    inner: Constrained = part_field(default_factory=lambda: Baumgarte(0.0, 0.0))
    iterations: int = count_field(default=2)
    projects = True

    def acceleration(self, system, t, q, v, u):
        return self.inner.acceleration(system, t, q, v, u)

    def linearise(self, system, t, q, v, u):
        return self.inner.linearise(system, t, q, v, u)

    def project(self, system, t, state, t_before, before):
        if system.n_constraints == 0:
            return state, GOOD
        q = position_on_constraints(system, t, state.q, self.iterations)
        v = velocity_on_constraints(system, t, q, state.v)[0]
        # from a finite state, only rows that have lost their rank lead to a NaN
        finite = lambda q, v: jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
        found = finite(q, v) | ~finite(state.q, state.v)
        return State(q, v), code_unless(found, Result.SINGULAR_CONSTRAINTS)
