"""Platform that ropes carry."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_axes, require_positive, require_shape
from ..._base.precision import declare_units, float_field
from ...math.trigonometry import sincos
from ...mechanics import Bodies


class Platform(eqx.Module):
    """A rigid body in the plane (x, z), rotated counter-clockwise, from x to z.

    `mass` [kg], `inertia` [kg m^2] about the centre of mass, `attachments` (m, 2) [m] of the ropes
    relative to it; `size` (2,) [m], width and height, for drawings."""

    mass: Float[Array, ""] = float_field(unit="kg")
    inertia: Float[Array, ""] = float_field(unit="kg m^2")
    attachments: Float[Array, "m 2"] = float_field(unit="m")
    size: Float[Array, " 2"] = float_field(unit="m", default=(1.0, 0.3))

    def __check_init__(self):
        require_positive("platform.mass", self.mass)
        require_positive("platform.inertia", self.inertia)
        require_positive("platform.size", self.size, zero_allowed=True)
        require_axes("platform.attachments", self.attachments, 2, "shape (m, 2)")
        require_shape("platform.attachments", self.attachments, (self.attachments.shape[0], 2))

    @classmethod
    @declare_units(mass="kg", size="m", attachments="m")
    def plate(cls, mass, size, attachments) -> "Platform":
        """Create a uniform plate of `size` (2,) [m]."""
        width, height = size
        return cls(mass, mass * (width**2 + height**2) / 12.0, attachments, size)

    @property
    def inertias(self) -> Float[Array, " 3"]:
        return jnp.stack([self.mass, self.mass, self.inertia])

    def arms(self, angle) -> tuple[Float[Array, "2 m"], Float[Array, "2 m"]]:
        """Vectors from the centre to the attachments in world axes at an angle [rad], and their
        derivatives by this angle; components first."""
        s, c = sincos(angle)
        b = self.attachments.T
        arm = jnp.stack([c * b[0] - s * b[1], s * b[0] + c * b[1]])
        return arm, jnp.stack([-arm[1], arm[0]])

    def body(self, pose) -> Bodies:
        """Drawing of the platform: a rectangle."""
        corners = 0.5 * self.size * jnp.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        s, c = sincos(pose[2])
        return Bodies(pose[None, :2], jnp.array([[[c, -s], [s, c]]]), corners[None, None])
