"""Obstacles for a rod: fixed shapes with a contact law per length of rod."""

import jax
from jaxtyping import Array, Float

from ..._base.checks import require_direction, require_positive
from ..._base.fields import part_field
from ..._base.precision import float_field
from ...mechanics.parts import shapes
from ...mechanics.parts.contact_law import ContactLaw


class Obstacle(ContactLaw):
    """A fixed solid that pushes the rod away: a shape, and the contact law as keywords
    (`ContactLaw`) with `stiffness` [N/m^2], force per length of rod and depth."""

    stiffness: Float[Array, ""] = float_field(unit="N/m^2", default=1e4, kw_only=True)

    @property
    def solid(self) -> shapes.Shape:
        """Geometry of the obstacle."""
        raise NotImplementedError

    def distance(self, r) -> Float[Array, " k"]:
        """Distance from points (3, k) [m] to the surface, negative inside."""
        return self._surface(r)[0]

    def _surface(self, r):
        return jax.vmap(self.solid.surface, in_axes=1, out_axes=(0, 1))(r)

    def energy(self, r, radius) -> Float[Array, " k"]:
        """Contact energy per length [J/m] for a rod with a given radius [m]."""
        return self.elastic_energy(radius - self.distance(r))

    def force(self, r, dr, radius) -> Float[Array, "3 k"]:
        """Contact force per length [N/m] on points (3, k) with velocities (3, k)."""
        distance, normal = self._surface(r)
        return self.surface_force(radius - distance, normal, dr, axis=0)


class FixedShape(Obstacle):
    """Obstacle of any `shape`: `Box`, `Capsule`, `HeightField`..."""

    shape: shapes.Shape = part_field()

    @property
    def solid(self):
        return self.shape


class Plane(Obstacle):
    """Obstacle that fills the half-space behind a plane through `point` (3,) [m] with outward
    `normal` (3,)."""

    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    normal: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_direction("normal", self.normal)

    @property
    def solid(self):
        return shapes.Plane(self.point, self.normal)


class Sphere(Obstacle):
    """Obstacle in the shape of a ball of `radius` [m] about `centre` (3,) [m]."""

    centre: Float[Array, " 3"] = float_field(unit="m")
    radius: Float[Array, ""] = float_field(unit="m")

    def __check_init__(self):
        require_positive("radius", self.radius)

    @property
    def solid(self):
        return shapes.Sphere(self.radius, self.centre)


class Cylinder(Obstacle):
    """Obstacle in the shape of an infinite cylinder of `radius` [m] along `axis` (3,) through
    `point` (3,) [m]."""

    point: Float[Array, " 3"] = float_field(unit="m")
    axis: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field(unit="m")

    def __check_init__(self):
        require_positive("radius", self.radius)
        require_direction("axis", self.axis)

    @property
    def solid(self):
        return shapes.Cylinder(self.radius, None, self.point, self.axis)
