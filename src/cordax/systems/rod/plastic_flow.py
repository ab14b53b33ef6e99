"""Plastic bending of wires: the plastic curvature of a rod grows where it is bent too far."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape, require_values
from ..._base.fields import part_field
from ..._base.precision import float_field
from ...math.safe import safe_norm
from ...mechanics import Controller
from . import energy as elastic
from .spline_rod import SplineRod


class PlasticFlow(Controller):
    """Return mapping between steps, for a rod created with `plastic=True`.

    The elastic curvature is the curvature minus the plastic curvature. Where it exceeds
    `yield_curvature` [1/m], the excess is added to the plastic curvature. The surface of a round
    wire of diameter D that yields at a fibre strain eps_y has the yield curvature 2 eps_y/D.

    - `load`: the constant inputs of the rod's loads, or a function of time that returns them;
    - `hardening`: share of the bending stiffness that remains beyond yield, in [0, 1). Material
      that has flowed yields later, in both directions (isotropic). At zero, bending is perfectly
      plastic: it concentrates at the weakest place, in a bend as sharp as the spline can represent;
    - `start`: initial plastic curvature at each quadrature point [1/m] from end to end, of a wire
      that was bent in one direction before; None for none."""

    rod: SplineRod = part_field()
    yield_curvature: Float[Array, ""] = float_field(unit="1/m")
    load: object = None
    hardening: Float[Array, ""] = float_field(default=0.0)
    start: Float[Array, " k"] | None = float_field(unit="1/m", default=None)

    def __check_init__(self):
        require(self.rod.plastic, "rod", "plastic=False", "a rod made with plastic=True")
        require_positive("yield_curvature", self.yield_curvature)
        share = lambda x: (x >= 0) & (x < 1)
        expected = "a share of the stiffness from 0 to below 1"
        require_values("hardening", share, self.hardening, expected=expected)
        if self.start is not None:
            require_shape("start", self.start, (self.rod.points.weights.size,))
            require_positive("start", self.start, zero_allowed=True)

    def init(self, state):
        if self.start is not None:
            return self.start, self.start
        none = jnp.zeros(self.rod.points.weights.size, state.q.dtype)
        return none, none

    def __call__(self, t, state, memory):
        """Update the plastic curvature. `memory`: the plastic curvature, and the accumulated
        plastic flow in both directions, (k,) each."""
        plastic, flowed = memory
        points = self.rod.points
        at = points.local(self.rod.control(t, state.q), self.rod.span)
        bent = elastic.strains(at, self.rod.elasticity)[2]
        beyond = points.gather(safe_norm(bent, axis=0)) - plastic
        soft = 1.0 - self.hardening
        limit = self.yield_curvature + flowed * self.hardening / soft
        flow = soft * jnp.maximum(jnp.abs(beyond) - limit, 0.0)
        plastic = jnp.maximum(plastic + jnp.sign(beyond) * flow, 0.0)
        load = self.load(t) if callable(self.load) else self.load
        load = jnp.zeros(3 * len(self.rod.loads)) if load is None else load
        return jnp.concatenate([jnp.asarray(load), plastic]), (plastic, flowed + flow)
