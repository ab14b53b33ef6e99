"""Solves and linearisation of spline rods, whose matrices are banded."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.materialise import materialise
from ...math.linalg import matvec
from ...mechanics import Structure
from .linearisation import RodLinearisation
from .quadrature import times_gram
from .uniform_modes import fastest_straight

if TYPE_CHECKING:
    from .spline_rod import SplineRod


class SplineStructure(Structure):
    """Structure of `SplineRod`."""

    system: "SplineRod"

    @property
    def separable(self):
        return not self.system.viscous and not self.system.contact

    def fastest_frequency(self):
        """Highest frequency [rad/s] of the straight rod, from its axial, bending and twisting
        stiffness."""
        return fastest_straight(self.system)

    def momentum(self, q, v):
        zero = jnp.zeros(4, v.dtype)
        P = times_gram(self.system.layout.join(v, zero, zero, zero, zero))
        return self.system.layout.split((self.system.densities() * self.system.span)[:, None] * P)

    def mass_solve(self, q, B):
        parts = np.cumsum([len(f) for f in self.system.layout.free])[:-1]
        J = self.system.densities() * self.system.span
        blocks = jnp.split(B, parts)
        return jnp.concatenate(
            [
                inverse @ b / J[c]
                for c, (inverse, b) in enumerate(
                    zip(self.system.layout.gram_inverses, blocks, strict=True)
                )
            ]
        )

    def acceleration(self, t, q, v, u):
        parts = np.cumsum([len(f) for f in self.system.layout.free])[:-1]
        J = self.system.densities() * self.system.span
        forces = jnp.split(self.system.total_force(t, q, v, u), parts)
        return jnp.concatenate(
            [
                matvec(jnp.asarray(inverse), f) / J[c]
                for c, (inverse, f) in enumerate(
                    zip(self.system.layout.gram_inverses, forces, strict=True)
                )
            ]
        )

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        """Linearise span by span; if quadrature points lie on knots, differentiate the whole
        force."""
        rod = self.system
        if rod.quadrature[0] != "gauss" or not rod.closed_form:
            # the mass matrix is constant and a single rod has no constraints
            return super().linearise(t, q, v, u)
        P, dP = rod.control(t, q), rod.control_rate(t, v)
        K, D = rod._span_matrices(P, dP, u)
        motion = RodLinearisation(  # pyright: ignore[reportCallIssue]
            rod.force(t, q, v, u),
            materialise(K),
            D,
            jnp.stack([rod.left.stiffness, rod.right.stiffness]),
            rod.densities() * rod.span,
            rod.layout,
        )
        contacts = rod.contacts_of_line()
        if not contacts.self_contact:
            return motion
        J = jax.jacfwd(lambda v: rod.line(P, rod.control_rate(t, v)).v.reshape(-1))(v)
        return contacts.dense(motion, rod.line(P, dP), J)
