"""What a cable does between its ends."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_one_or_each, require_positive, require_shape
from ..._base.precision import float_field
from ...math.smooth import ramp, ramp_integral


class Cables(eqx.Module):
    """n cables."""

    rigid: ClassVar[bool]

    def tension(self, stretch, stretch_rate) -> Float[Array, " n"]:
        """[N] at a stretch beyond the unstretched length (n,) [m] and its rate [m/s]."""
        raise NotImplementedError

    def energy(self, stretch) -> Float[Array, " n"]:
        """[J]"""
        raise NotImplementedError

    def check_count(self, n: int) -> None:
        """Raise where what is given per cable is not given for `n`."""

    def stretch(self, tension) -> Float[Array, " n"]:
        """[m] beyond the unstretched length at which cables at rest carry a tension (n,) [N]."""
        raise NotImplementedError


#: an unstretched cable carries at most this [N], and passes from slack to taut over at most this
#: [m], unless a width is given
SLACK_TENSION, WIDEST = 1.0, 1e-5


class RigidCables(Cables):
    """Inextensible: each is a constraint, its tension a multiplier, `f = 2 L lambda`, negative
    where the cable would have to push. Pushes below `push_threshold` [N] are round-off."""

    push_threshold: Float[Array, ""] = float_field(unit="N", default=1e-9)
    rigid = True

    def __check_init__(self):
        require_positive("push_threshold", self.push_threshold, zero_allowed=True)

    def stretch(self, tension):
        return jnp.zeros_like(tension)


class ElasticCables(Cables):
    """`stiffness` (n,) [N/m] and `damping` (n,) [N s/m] where taut, nothing where slack, with a
    smooth passage of `width` [m], one for all or (n,):

        T = k w log(1 + exp(e/w)) + d de/dt / (1 + exp(-e/w)), at least 0

    for a stretch e: at e = 0 the tension is k w log 2. Without a width that is 1 N, or less where
    the passage would be wider than 0.01 mm. A cable that goes slack quickly does so where damping
    outweighs its stretch: it does not push."""

    stiffness: Float[Array, " n"] = float_field(unit="N/m")
    damping: Float[Array, " n"] = float_field(unit="N s/m", default=0.0)
    width: Float[Array, "..."] | None = float_field(unit="m", default=None)
    rigid = False

    def __check_init__(self):
        for name in ("stiffness", "damping", "width"):
            require_one_or_each(name, getattr(self, name))
        require_positive("stiffness", self.stiffness)
        require_positive("damping", self.damping, zero_allowed=True)
        if self.width is not None:
            require_positive("width", self.width)

    def check_count(self, n):
        for name in ("stiffness", "damping", "width"):
            require_shape(f"cables.{name}", getattr(self, name), (), (n,))

    @property
    def passage(self) -> Float[Array, "..."]:
        """The `width`, given or chosen [m]."""
        if self.width is not None:
            return self.width
        return jnp.minimum(WIDEST, SLACK_TENSION / (math.log(2.0) * self.stiffness))

    @property
    def unstretched_tension(self) -> Float[Array, "..."]:
        """What counts as slack [N]."""
        return math.log(2.0) * self.stiffness * self.passage

    def tension(self, stretch, stretch_rate):
        w = self.passage
        elastic = self.stiffness * ramp(stretch, w)
        damped = self.damping * stretch_rate * jax.nn.sigmoid(stretch / w)
        return jnp.maximum(elastic + damped, 0.0)

    def energy(self, stretch):
        return self.stiffness * ramp_integral(stretch, self.passage)

    def stretch(self, tension):
        """The inverse of `tension`; zero where that counts as slack."""
        w = self.passage
        y = jnp.maximum(tension / (self.stiffness * w), math.log(2.0))
        return w * (y + jnp.log1p(-jnp.exp(-y)))
