"""Things a rod can lie on: shapes with a law of contact, per length of rod."""

import jax
from jaxtyping import Array, Float

from ..._base.checks import require_direction, require_positive
from ..._base.fields import part_field
from ..._base.precision import float_field
from ...mechanics.parts import shapes
from ...mechanics.parts.contact_law import ContactLaw


class Obstacle(ContactLaw):
    """A fixed solid that pushes: a shape, and the law of contact as keywords (`ContactLaw`) with
    `stiffness` [N/m^2], force per length of rod and depth."""

    @property
    def solid(self) -> shapes.Shape:
        """Geometry."""
        raise NotImplementedError

    def distance(self, r) -> Float[Array, " k"]:
        """From points (3, k) [m] to the surface, negative inside."""
        return self._surface(r)[0]

    def _surface(self, r):
        return jax.vmap(self.solid.surface, in_axes=1, out_axes=(0, 1))(r)

    def energy(self, r, radius) -> Float[Array, " k"]:
        """Per length [J/m] for a rod of a radius [m]."""
        return self.elastic_energy(radius - self.distance(r))

    def force(self, r, dr, radius) -> Float[Array, "3 k"]:
        """Per length [N/m] on points (3, k) with velocities (3, k)."""
        distance, normal = self._surface(r)
        return self.surface_force(radius - distance, normal, dr, axis=0)


class FixedShape(Obstacle):
    """Any `shape`: `Box`, `Capsule`, `HeightField`..."""

    shape: shapes.Shape = part_field()

    @property
    def solid(self):
        return self.shape


class Plane(Obstacle):
    """The half-space behind a plane through `point` (3,) [m] with outward `normal` (3,)."""

    point: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 0.0))
    normal: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_direction("normal", self.normal)

    @property
    def solid(self):
        return shapes.Plane(self.point, self.normal)


class Sphere(Obstacle):
    """A ball of `radius` [m] about `centre` (3,) [m]."""

    centre: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()

    def __check_init__(self):
        require_positive("radius", self.radius)

    @property
    def solid(self):
        return shapes.Sphere(self.radius, self.centre)


class Cylinder(Obstacle):
    """An endless cylinder of `radius` [m] along `axis` (3,) through `point` (3,) [m]."""

    point: Float[Array, " 3"] = float_field()
    axis: Float[Array, " 3"] = float_field()
    radius: Float[Array, ""] = float_field()

    def __check_init__(self):
        require_positive("radius", self.radius)
        require_direction("axis", self.axis)

    @property
    def solid(self):
        return shapes.Cylinder(self.radius, None, self.point, self.axis)
