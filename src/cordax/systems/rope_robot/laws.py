"""Material laws of ropes: energies per length, from which forces and stiffnesses follow."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_one_or_each, require_positive
from ..._base.precision import float_field


class RopeLaw(eqx.Module):
    """Energies per unstretched length [J/m] as functions of strain and curvature. A subclass
    defines both, for arrays of any shape; tension and moment follow by differentiation."""

    @abc.abstractmethod
    def axial_energy(self, EA, strain) -> Array:
        """Energy [J/m] of a strain [-]; `EA` [N] at small strain."""

    @abc.abstractmethod
    def bending_energy(self, EI, curvature) -> Array:
        """Energy [J/m] of a curvature [1/m]; `EI` [N m^2] at small curvature."""

    def tension(self, EA, strain):
        """Tension [N]."""
        return jax.grad(lambda e: jnp.sum(self.axial_energy(EA, e)))(strain)

    def moment(self, EI, curvature):
        """Bending moment [N m]."""
        return jax.grad(lambda k: jnp.sum(self.bending_energy(EI, k)))(curvature)


class LinearRope(RopeLaw):
    """Hooke's law in tension, compression and bending."""

    def axial_energy(self, EA, strain):
        return 0.5 * EA * strain**2

    def bending_energy(self, EI, curvature):
        return 0.5 * EI * curvature**2

    def tension(self, EA, strain):
        return EA * strain

    def moment(self, EI, curvature):
        return EI * curvature


class ProgressiveRope(RopeLaw):
    """Stiffnesses that grow with deformation, as strands settle and press on each other:

        tension EA e (1 + axial e^2),    moment EI k (1 + bending k^2)

    `axial` [-] and `bending` [m^2], one value for all or one per cable."""

    axial: Float[Array, "..."] = float_field(unit="-", default=0.0)
    bending: Float[Array, "..."] = float_field(unit="m^2", default=0.0)

    def __check_init__(self):
        for name in ("axial", "bending"):
            require_one_or_each(name, getattr(self, name))
            require_positive(name, getattr(self, name), zero_allowed=True)

    def axial_energy(self, EA, strain):
        square = strain**2
        return 0.5 * EA * square * (1.0 + 0.5 * self.axial * square)

    def bending_energy(self, EI, curvature):
        square = curvature**2
        return 0.5 * EI * square * (1.0 + 0.5 * self.bending * square)
