"""What a cable does between its ends."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._precision import float_field
from .checks import require_positive


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
    """Inextensible: each is a constraint, its tension a multiplier, `f = 2 L lambda`, negative where
    the cable would have to push. Pushes below `push_threshold` [N] are round-off."""

    push_threshold: Float[Array, ""] = float_field(default=1e-9)
    rigid = True


class ElasticCables(Cables):
    """`stiffness` (n,) [N/m] and `damping` (n,) [N s/m] where taut, nothing where slack, with a smooth
    passage of `width` [m]:

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
        x = stretch / self.width
        elastic = self.stiffness * self.width * jax.nn.softplus(x)
        return elastic + self.damping * stretch_rate * jax.nn.sigmoid(x)

    def energy(self, stretch):
        # the integral of softplus is the dilogarithm -Li2(-e^x); by quadrature-free reflection:
        # for x > 0: x^2/2 + pi^2/6 + Li2(-e^-x)
        x = stretch / self.width
        small = jnp.exp(-jnp.abs(x))
        tail = -_dilogarithm_of_minus(small)
        area = jnp.where(x > 0, 0.5 * x * x + jnp.pi**2 / 6.0 - tail, tail)
        return self.stiffness * self.width**2 * area


def _dilogarithm_of_minus(z):
    """Li2(-z) for 0 <= z <= 1, by the alternating series in w = z/(1 + z) <= 1/2 (Landen):
    `Li2(-z) = -Li2(w) - log(1 + z)^2/2`."""
    w = z / (1.0 + z)
    k = jnp.arange(1.0, 50.0)
    return -jnp.sum(w[..., None] ** k / k**2, axis=-1) - 0.5 * jnp.log1p(z) ** 2
