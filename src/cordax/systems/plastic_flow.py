"""Wires that keep a bend: the plastic curvature of a rod grows where it is bent too far."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._precision import float_field
from ..math.safe import safe_norm
from ..mechanics import Controller
from ..mechanics.checks import require, require_positive
from . import spline_rod_energy as elastic
from .spline_rod import SplineRod


class PlasticFlow(Controller):
    """Return mapping between steps, for a rod made with `plastic=True`.

    Where the elastic part of the curvature, that beyond the plastic one, exceeds `yield_curvature`
    [1/m], the plastic part takes up the rest: perfectly plastic bending. A fibre strain eps_y at
    the surface of a round wire yields at 2 eps_y/D. `load`: the constant inputs of the rod's loads,
    or a function of time returning them."""

    rod: SplineRod
    yield_curvature: Float[Array, ""] = float_field()
    load: object = None

    def __check_init__(self):
        require(self.rod.plastic, "rod", "plastic=False", "a rod made with plastic=True")
        require_positive("yield_curvature", self.yield_curvature)

    def init(self, state):
        return jnp.zeros(self.rod.points.weights.size, state.q.dtype)

    def __call__(self, t, state, memory):
        P = self.rod.control(t, state.q)
        at = self.rod.points.local(P, self.rod.span)
        bent = elastic.strains(at, self.rod.elasticity)[2]
        curvature = self.rod.points.along(safe_norm(bent, axis=0))
        beyond = curvature - memory
        excess = jnp.maximum(jnp.abs(beyond) - self.yield_curvature, 0.0)
        memory = jnp.maximum(memory + jnp.sign(beyond) * excess, 0.0)
        load = self.load(t) if callable(self.load) else self.load
        load = jnp.zeros(3 * len(self.rod.loads)) if load is None else load
        return jnp.concatenate([jnp.asarray(load), memory]), memory
