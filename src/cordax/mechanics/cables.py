"""What a cable does between its ends."""

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._checks import require_positive
from .._precision import float_field
from ..math.smooth import ramp, ramp_integral


class Cables(eqx.Module):
    """n cables."""

    rigid: ClassVar[bool]

    def tension(self, stretch, stretch_rate) -> Float[Array, " n"]:
        """[N] at a stretch beyond the unstretched length (n,) [m] and its rate [m/s]."""
        raise NotImplementedError

    def energy(self, stretch) -> Float[Array, " n"]:
        """[J]"""
        raise NotImplementedError


class RigidCables(Cables):
    """Inextensible: each is a constraint, its tension a multiplier, `f = 2 L lambda`, negative
    where the cable would have to push. Pushes below `push_threshold` [N] are round-off."""

    push_threshold: Float[Array, ""] = float_field(default=1e-9)
    rigid = True


class ElasticCables(Cables):
    """`stiffness` (n,) [N/m] and `damping` (n,) [N s/m] where taut, nothing where slack, with a
    smooth passage of `width` [m]:

        T = k w log(1 + exp(e/w)) + d de/dt / (1 + exp(-e/w))

    for a stretch e: at e = 0 the tension is k w log 2."""

    stiffness: Float[Array, " n"] = float_field()
    damping: Float[Array, " n"] = float_field(default=0.0)
    width: Float[Array, ""] = float_field(default=1e-5)
    rigid = False

    def __check_init__(self):
        require_positive("stiffness", self.stiffness)
        require_positive("damping", self.damping, zero_allowed=True)
        require_positive("width", self.width)

    def tension(self, stretch, stretch_rate):
        elastic = self.stiffness * ramp(stretch, self.width)
        return elastic + self.damping * stretch_rate * jax.nn.sigmoid(stretch / self.width)

    def energy(self, stretch):
        return self.stiffness * ramp_integral(stretch, self.width)
