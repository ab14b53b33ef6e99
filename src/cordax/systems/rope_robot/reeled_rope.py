"""Ropes with a variable length outside the drum."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.precision import float_field
from ...mechanics import State
from . import inverse
from .robot import RopeRobot
from .segments import Motion, Segments, motion


class PaidOut(RopeRobot):
    """Ropes with `payout` (m,) [m] more rope at their roots than `length`, changing by
    `payout_rate` (m,) [m/s]. All of the payout is in the upper rod of the first segment, which is
    straight between the exit and the first gap.

    The first coordinate of a rope is D + payout instead of its elongation D: the total lengthening
    of the first segment. So the motion of everything below is unchanged, and drums enter only the
    equations of the first segment."""

    payout: Float[Array, " m"] = float_field(unit="m", default=0.0)
    payout_rate: Float[Array, " m"] = float_field(unit="m/s", default=0.0)

    @property
    def density(self) -> Float[Array, " m"]:
        return jnp.broadcast_to(self.line_density, (self.n_ropes,))

    @property
    def rod(self) -> Float[Array, " m"]:
        """Length [m] of the upper rod of the first segment."""
        return 0.5 * self.length / self.count + self.payout

    @property
    def free_length(self):
        return self.length + self.payout

    def segments(self) -> Segments:
        seg = super().segments()
        spread = lambda y: jnp.broadcast_to(y, (self.count, self.n_ropes))
        first = lambda y, x: spread(y).at[0].set(x)
        mass, half = self.density * self.rod, seg.lower_arm[0] * 2.0
        lower = seg.lower_mass[0] * half**2 / 12.0
        return seg._replace(
            rest=spread(seg.rest).at[0].add(self.payout),
            upper_mass=first(seg.upper_mass, mass),
            upper_arm=first(seg.upper_arm, 0.5 * self.rod),
            spin=first(seg.spin, mass * self.rod**2 / 12.0 + lower),
        )

    def motion(self, q, v) -> tuple[Segments, Motion]:
        seg = self.segments()
        ropes = self.split(q)[0].at[0, 0].add(-self.payout)
        return seg, motion(seg.rest, ropes, self.split(v)[0])

    def elastic_rows(self, seg, x):
        """Generalised forces of deformation, including the moment that keeps a growing rod turning:
        its moment of inertia, rho b^3/3, grows by rho b^2 per payout."""
        rows = inverse.elastic_rows(seg, self.rope, x)
        turn = self._growth * x.angle_rate[0]
        return rows.at[:, 0].add(jnp.stack([-self.drag(seg) * self.payout_rate, turn]))

    @property
    def _growth(self) -> Float[Array, " m"]:
        """Growth rate of the moments of inertia of upper rods [kg m^2/s]."""
        return self.density * self.rod**2 * self.payout_rate

    def sweep_rows(self, seg, x, a, loads, h, h2):
        rows = super().sweep_rows(seg, x, a, loads, h, h2)
        return rows._replace(own=rows.own.at[1, 1, 0].add(h * self._growth))

    def drag(self, seg: Segments) -> Float[Array, " m"]:
        """Damping coefficients of the first gaps [N s/m]."""
        return self.axial_time * self.EA / seg.rest[0]

    def dissipation(self, q, v):
        ropes, platform = self.split(v)
        own = self.join(ropes.at[0, 0].add(-self.payout_rate), platform)
        return super().dissipation(q, own)

    def unwinding(self, q, v) -> Float[Array, " m"]:
        """Force [N] along the payout that winches need against tension, weight and the rotation of
        the first segment, without the force that accelerates the rope. Holding a tension T, it is
        -T."""
        seg, x = self.motion(q, v)
        stretch = x.stretch[0] / seg.rest[0]
        tension = self.law.tension(self.EA, stretch)
        # derivative of the energy of the gap by the payout, at a given length of the segment
        elastic = self.law.axial_energy(self.EA, stretch) - tension * (1.0 + stretch)
        damping = self.drag(seg) * (self.payout_rate - x.stretch_rate[0])
        weight = self.density * self.gravity * self.rod * x.along[1, 0]
        return elastic + damping + weight - 0.5 * self.density * self.rod**2 * x.angle_rate[0] ** 2

    def hanging(self, pose=None, t=0.0):
        state = super().hanging(pose, t)
        ropes, platform = self.split(state.q)
        q = self.join(ropes.at[0, 0].add(self.payout), platform)
        return State(q, state.v)
