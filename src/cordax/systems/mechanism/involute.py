"""Involute joint: a cable wound on a pulley. The successor frame is at the free end of the cable.

The predecessor frame is centred in the pulley, with z along its axis. The cable leaves the pulley
at the tangent point `r j` and runs along `+i` of the successor frame for a length l; q1 is the
angle by which it has unwound. Turning the pulley by +delta at a fixed direction of the cable winds
in `r delta`. The three elastic variants describe the same mechanical system in different
coordinates (J. Lieskovsky, "Positioning of tensegrity structures", 2022, eqs. 3.1.18 to 3.1.32)."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_positive, require_shape
from ..._base.precision import float_field
from ...math.trigonometry import sincos
from .joints import Joint, JointMotion


class CableState(NamedTuple):
    """State of one wound cable: unstretched free length `rest` [m], `stretch` u [m], its gradient
    `by_q` (2,), `strain` and `strain_rate` [1/s]."""

    rest: Float[Array, ""]
    stretch: Float[Array, ""]
    by_q: Float[Array, " 2"]
    strain: Float[Array, ""]
    strain_rate: Float[Array, ""]


class Involute(Joint):
    """Base class of the involute joints. `radius` r [m] of the pulley is measured to the centre
    line of the cable."""

    radius: Float[Array, ""] = float_field(unit="m")
    #: name of the coordinate that does not depend on the position of the cable end
    independent: ClassVar[str] = ""

    def __check_init__(self):
        require_shape("radius", self.radius, ())
        require_positive("radius", self.radius)

    def cable(self, q, v) -> CableState:
        """State of the cable at coordinates `q` (2,) and velocities `v` (2,)."""
        raise NotImplementedError

    def at_strain(self, unwound, strain) -> Float[Array, " 2"]:
        """Coordinates for a given unwound angle [rad] and strain."""
        raise NotImplementedError

    def velocities_at(self, q, unwound_rate, strain_rate) -> Float[Array, " 2"]:
        """Velocities for given rates of the unwound angle and of the strain."""
        raise NotImplementedError

    def _pose(self, angle, length):
        s, c = sincos(angle)
        zero, one = jnp.zeros_like(s), jnp.ones_like(s)
        R = jnp.stack(
            [jnp.stack([c, -s, zero]), jnp.stack([s, c, zero]), jnp.stack([zero, zero, one])]
        )
        r = self.radius
        return R, jnp.stack([c * length - s * r, s * length + c * r, zero])


class RigidInvolute(Involute):
    """Involute joint with an inextensible cable. Its only coordinate is the unwound angle [rad]."""

    coordinates = ("unwound",)
    units = ("rad",)
    velocities = ("unwound",)

    def motion(self, q, v):
        r, l = self.radius, self.radius * q[0]
        return JointMotion(
            *self._pose(q[0], l),
            _row(1.0, 0.0, l)[None],
            _row(0.0, 0.0, r * v[0] ** 2),
        )


class StretchInvolute(Involute):
    """Involute joint whose coordinates are the unwound angle [rad] and the stretch u [m]; l = r q1
    + u."""

    coordinates = ("unwound", "stretch")
    units = ("rad", "m")
    velocities = ("unwound", "stretch")
    independent = "stretch"

    def motion(self, q, v):
        r = self.radius
        l = r * q[0] + q[1]
        S = jnp.stack([_row(1.0, 0.0, l), _row(0.0, 1.0, 0.0 * l)])
        return JointMotion(*self._pose(q[0], l), S, _row(0.0, 0.0, v[0] * (r * v[0] + v[1])))

    def cable(self, q, v):
        rest = self.radius * q[0]
        rate = (q[0] * v[1] - v[0] * q[1]) / (rest * q[0])
        return CableState(rest, q[1], jnp.array([0.0, 1.0], q.dtype), q[1] / rest, rate)

    def at_strain(self, unwound, strain):
        return jnp.stack([unwound, self.radius * unwound * strain])

    def velocities_at(self, q, unwound_rate, strain_rate):
        strain = q[1] / (self.radius * q[0])
        u_rate = self.radius * (unwound_rate * strain + q[0] * strain_rate)
        return jnp.stack([unwound_rate, u_rate])


class StrainInvolute(Involute):
    """Involute joint whose coordinates are the unwound angle [rad] and the strain eps; l = r q1 (1
    + eps)."""

    coordinates = ("unwound", "strain")
    units = ("rad", "")
    velocities = ("unwound", "strain")
    independent = "strain"

    def motion(self, q, v):
        r = self.radius
        l = r * q[0] * (1.0 + q[1])
        S = jnp.stack([_row(1.0, r * q[1], l), _row(0.0, r * q[0], 0.0 * l)])
        product = v[0] * v[1]
        c = _row(0.0, 2.0 * r * product, r * ((1.0 + q[1]) * v[0] ** 2 + q[0] * product))
        return JointMotion(*self._pose(q[0], l), S, c)

    def cable(self, q, v):
        rest = self.radius * q[0]
        by_q = jnp.stack([self.radius * q[1], rest])
        return CableState(rest, rest * q[1], by_q, q[1], v[1])

    def at_strain(self, unwound, strain):
        return jnp.stack([unwound, strain])

    def velocities_at(self, q, unwound_rate, strain_rate):
        return jnp.stack([unwound_rate, strain_rate])


class LengthInvolute(Involute):
    """Involute joint whose coordinates are the unwound angle [rad] and the length l [m]."""

    coordinates = ("unwound", "length")
    units = ("rad", "m")
    velocities = ("unwound", "length")
    independent = "unwound"

    def motion(self, q, v):
        S = jnp.stack([_row(1.0, -self.radius, q[1]), _row(0.0, 1.0, 0.0 * q[1])])
        return JointMotion(*self._pose(q[0], q[1]), S, _row(0.0, 0.0, v[0] * v[1]))

    def cable(self, q, v):
        rest = self.radius * q[0]
        u, u_rate = q[1] - rest, v[1] - self.radius * v[0]
        by_q = jnp.stack([-self.radius, jnp.ones_like(self.radius)])
        return CableState(rest, u, by_q, u / rest, (q[0] * u_rate - v[0] * u) / (rest * q[0]))

    def at_strain(self, unwound, strain):
        return jnp.stack([unwound, self.radius * unwound * (1.0 + strain)])

    def velocities_at(self, q, unwound_rate, strain_rate):
        strain = q[1] / (self.radius * q[0]) - 1.0
        rate = self.radius * (unwound_rate * (1.0 + strain) + q[0] * strain_rate)
        return jnp.stack([unwound_rate, rate])


def _row(spin, along, across):
    """Spatial vector `[spin k; along i + across j]`."""
    spin, along, across = (jnp.asarray(x, float) for x in (spin, along, across))
    zero = jnp.zeros_like(across)
    return jnp.stack([zero, zero, spin + zero, along + zero, across, zero])


#: variants of the elastic cable by name
INVOLUTES: dict[str, type[Involute]] = {
    "stretch": StretchInvolute,
    "strain": StrainInvolute,
    "length": LengthInvolute,
}
