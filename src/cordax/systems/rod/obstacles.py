"""Things a rod can lie on: smooth penalty contact with friction.

Laws per length of rod; every rounding has a named width."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_direction, require_positive
from ..._base.precision import float_field
from ...math.safe import safe_norm
from ...math.smooth import ramp, ramp_integral


class Obstacle(eqx.Module):
    """A solid that pushes: `stiffness` [N/m^2], force per length of rod and depth; `damping` [s/m]:
    a pressure p grows to p (1 + damping * approach speed) (Hunt and Crossley); `friction` [-], full
    above about `slip_speed` [m/s]; `width` [m] over which contact sets in."""

    stiffness: eqx.AbstractVar[Float[Array, ""]]
    damping: eqx.AbstractVar[Float[Array, ""]]
    friction: eqx.AbstractVar[Float[Array, ""]]
    slip_speed: eqx.AbstractVar[Float[Array, ""]]
    width: eqx.AbstractVar[Float[Array, ""]]

    def distance(self, r) -> Float[Array, " k"]:
        """From points (3, k) [m] to the surface, negative inside."""
        raise NotImplementedError

    def energy(self, r, radius) -> Float[Array, " k"]:
        """Per length [J/m] for a rod of a radius [m]."""
        return self.stiffness * ramp_integral(radius - self.distance(r), self.width)

    def force(self, r, dr, radius) -> Float[Array, "3 k"]:
        """Per length [N/m] on points (3, k) with velocities (3, k)."""
        distance, back = jax.vjp(self.distance, r)
        normal = back(jnp.ones_like(distance))[0]  # a unit vector: distances have unit gradients
        speed = jnp.sum(normal * dr, axis=0)
        press = self.stiffness * ramp(radius - distance, self.width)
        press = press * jnp.maximum(1.0 - self.damping * speed, 0.0)
        along = dr - normal * speed
        slip = along / jnp.sqrt(jnp.sum(along * along, axis=0) + self.slip_speed**2)
        return press * (normal - self.friction * slip)


def _check(obstacle) -> None:
    for name in ("stiffness", "slip_speed", "width"):
        require_positive(name, getattr(obstacle, name))
    for name in ("damping", "friction"):
        require_positive(name, getattr(obstacle, name), zero_allowed=True)


class Plane(Obstacle):
    """The half-space behind a plane through `point` (3,) [m] with outward `normal` (3,)."""

    point: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 0.0))
    normal: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))
    stiffness: Float[Array, ""] = float_field(default=1e4)
    damping: Float[Array, ""] = float_field(default=0.0)
    friction: Float[Array, ""] = float_field(default=0.0)
    slip_speed: Float[Array, ""] = float_field(default=1e-3)
    width: Float[Array, ""] = float_field(default=1e-4)

    def __check_init__(self):
        _check(self)
        require_direction("normal", self.normal)

    def distance(self, r):
        return (self.normal / safe_norm(self.normal)) @ (r - self.point[:, None])


class Sphere(Obstacle):
    """A ball of `radius` [m] about `centre` (3,) [m]."""

    centre: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()
    stiffness: Float[Array, ""] = float_field(default=1e4)
    damping: Float[Array, ""] = float_field(default=0.0)
    friction: Float[Array, ""] = float_field(default=0.0)
    slip_speed: Float[Array, ""] = float_field(default=1e-3)
    width: Float[Array, ""] = float_field(default=1e-4)

    def __check_init__(self):
        _check(self)
        require_positive("radius", self.radius)

    def distance(self, r):
        return safe_norm(r - self.centre[:, None], axis=0) - self.radius


class Cylinder(Obstacle):
    """An endless cylinder of `radius` [m] along `axis` (3,) through `point` (3,) [m]."""

    point: Float[Array, " 3"] = float_field()
    axis: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()
    stiffness: Float[Array, ""] = float_field(default=1e4)
    damping: Float[Array, ""] = float_field(default=0.0)
    friction: Float[Array, ""] = float_field(default=0.0)
    slip_speed: Float[Array, ""] = float_field(default=1e-3)
    width: Float[Array, ""] = float_field(default=1e-4)

    def __check_init__(self):
        _check(self)
        require_positive("radius", self.radius)
        require_direction("axis", self.axis)

    def distance(self, r):
        axis = self.axis / safe_norm(self.axis)
        arm = r - self.point[:, None]
        across = arm - axis[:, None] * (axis @ arm)
        return safe_norm(across, axis=0) - self.radius
