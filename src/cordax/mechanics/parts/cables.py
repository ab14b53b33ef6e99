"""Force laws of cables: rigid or elastic."""

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
    """Force law of n cables."""

    rigid: ClassVar[bool]

    def tension(self, stretch, stretch_rate) -> Float[Array, " n"]:
        """Tension [N] at a stretch beyond the unstretched length (n,) [m] and its rate [m/s]."""
        raise NotImplementedError

    def energy(self, stretch) -> Float[Array, " n"]:
        """Elastic energy [J] at a stretch (n,) [m]."""
        raise NotImplementedError

    def check_count(self, n: int) -> None:
        """Raise if parameters given per cable are not given for `n` cables."""

    def stretch(self, tension) -> Float[Array, " n"]:
        """Stretch [m] beyond the unstretched length at which cables at rest have a tension (n,)
        [N]."""
        raise NotImplementedError


#: largest tension [N] of an unstretched cable, and largest width [m] of the transition from slack
#: to taut, unless a width is given
SLACK_TENSION, WIDEST = 1.0, 1e-5


class RigidCables(Cables):
    """Inextensible cables. Each is a constraint with its tension as multiplier, `f = 2 L lambda`,
    negative if the cable would have to push. A push below `push_threshold` [N] counts as
    round-off."""

    push_threshold: Float[Array, ""] = float_field(unit="N", default=1e-9)
    rigid = True

    def __check_init__(self):
        require_positive("push_threshold", self.push_threshold, zero_allowed=True)

    def stretch(self, tension):
        return jnp.zeros_like(tension)


class ElasticCables(Cables):
    """Elastic cables with `stiffness` (n,) [N/m] and `damping` (n,) [N s/m] if taut, no force if
    slack, and a smooth transition of `width` [m], one for all or (n,):

        T = k w log(1 + exp(e/w)) + d de/dt / (1 + exp(-e/w)), at least 0

    for a stretch e. At e = 0 the tension is k w log 2: without a given width 1 N, or less if the
    transition would be wider than 0.01 mm. A cable that shortens quickly goes slack as soon as the
    damping force exceeds the elastic force: it does not push."""

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
        """Width of the transition [m], given or chosen."""
        if self.width is not None:
            return self.width
        return jnp.minimum(WIDEST, SLACK_TENSION / (math.log(2.0) * self.stiffness))

    @property
    def unstretched_tension(self) -> Float[Array, "..."]:
        """Tension [N] at zero stretch; lower tensions count as slack."""
        return math.log(2.0) * self.stiffness * self.passage

    def tension(self, stretch, stretch_rate):
        w = self.passage
        elastic = self.stiffness * ramp(stretch, w)
        damped = self.damping * stretch_rate * jax.nn.sigmoid(stretch / w)
        return jnp.maximum(elastic + damped, 0.0)

    def energy(self, stretch):
        return self.stiffness * ramp_integral(stretch, self.passage)

    def stretch(self, tension):
        """Inverse of `tension` at rest; zero if the tension counts as slack."""
        w = self.passage
        y = jnp.maximum(tension / (self.stiffness * w), math.log(2.0))
        return w * (y + jnp.log1p(-jnp.exp(-y)))
