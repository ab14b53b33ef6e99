"""Contact shapes: distances, normals, and the points by which a shape touches another.

A shape is given in the axes of its body, or of the world for obstacles. Distances are negative
inside, normals are outward unit vectors, and both are finite everywhere: at the centre of a sphere,
where the direction is not unique, the normal is the z axis."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    require,
    require_direction,
    require_finite,
    require_positive,
    require_rotation,
)
from ..._base.precision import float_field
from ...math.safe import safe_norm, safe_unit

_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
#: below this radial part of a unit direction, the deepest point of a rim is not unique
_FLAT = 1e-6


class Shape(eqx.Module):
    """Contact geometry in body axes."""

    #: whether `surface` is defined; sets of points have none
    has_surface: ClassVar[bool] = True

    @property
    def bounded(self) -> bool:
        """Whether `points` is defined; planes, height fields and endless cylinders have none."""
        return True

    def surface(self, x) -> tuple[Float[Array, ""], Float[Array, " 3"]]:
        """Distance [m] of a point (3,) and the outward unit normal (3,) there."""
        raise NotImplementedError

    def middle(self) -> Float[Array, " 3"]:
        """A point inside (3,) [m]."""
        raise NotImplementedError

    def points(self, direction) -> Float[Array, "k 3"]:
        """Points (k, 3) [m] that, as balls with the radius `roundness`, touch a surface which lies
        in a `direction` (3,), a unit vector, from the shape."""
        raise NotImplementedError

    def roundness(self) -> Any:
        """Radius [m] of the balls about `points`."""
        return 0.0

    def thickness(self) -> Any:
        """Half of the smallest size [m], for comparison with the penetration."""
        return jnp.inf


class Sphere(Shape):
    """A ball of `radius` [m] about `centre` (3,) [m]."""

    radius: Float[Array, ""] = float_field(unit="m")
    centre: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))

    def __check_init__(self):
        require_positive("radius", self.radius)

    def surface(self, x):
        return round_surface(x - self.centre, self.radius)

    def middle(self):
        return self.centre

    def points(self, direction):
        return self.centre[None]

    def roundness(self):
        return self.radius

    def thickness(self):
        return self.radius


class Capsule(Shape):
    """All points within `radius` [m] of the segment from `start` to `end` (3,) [m]."""

    radius: Float[Array, ""] = float_field(unit="m")
    start: Float[Array, " 3"] = float_field(unit="m")
    end: Float[Array, " 3"] = float_field(unit="m")

    def __check_init__(self):
        require_positive("radius", self.radius)

    def surface(self, x):
        along = self.end - self.start
        square = jnp.sum(along * along)
        share = jnp.sum((x - self.start) * along) / jnp.where(square > 0, square, 1.0)
        return round_surface(x - self.start - jnp.clip(share, 0.0, 1.0) * along, self.radius)

    def middle(self):
        return 0.5 * (self.start + self.end)

    def points(self, direction):
        return self.segment(direction)

    def segment(self, direction) -> Float[Array, "2 3"]:
        """Ends of the line that touches in a `direction` (3,)."""
        return jnp.stack([self.start, self.end])

    def roundness(self):
        return self.radius

    def thickness(self):
        return self.radius


class Box(Shape):
    """A cuboid with edges `sizes` (3,) [m] about `centre` (3,) [m], with the rotation `turned`
    (3, 3)."""

    sizes: Float[Array, " 3"] = float_field(unit="m")
    centre: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    turned: Float[Array, "3 3"] = float_field(default=_IDENTITY)

    def __check_init__(self):
        require_positive("sizes", self.sizes)
        require_rotation("turned", self.turned)

    def surface(self, x):
        y = jnp.sum(self.turned * (x - self.centre)[:, None], axis=0)
        sign = jnp.where(y >= 0, 1.0, -1.0)
        over = jnp.abs(y) - 0.5 * self.sizes
        outside = jnp.maximum(over, 0.0)
        away = safe_norm(outside)
        face = jnp.eye(3, dtype=over.dtype)[jnp.argmax(over)]
        distance = jnp.where(away > 0, away, jnp.max(over))
        normal = sign * jnp.where(away > 0, safe_unit(outside), face)
        return distance, jnp.sum(self.turned * normal, axis=1)

    def middle(self):
        return self.centre

    def points(self, direction):
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2.0
        corners = jnp.asarray(signs, self.sizes.dtype) * self.sizes
        return self.centre + jnp.sum(self.turned[None] * corners[:, None, :], axis=2)

    def thickness(self):
        return 0.5 * jnp.min(self.sizes)


class Cylinder(Shape):
    """A cylinder of `radius` [m] and `length` [m] along `axis` (3,) about `centre` (3,) [m];
    of infinite length if `length` is None."""

    radius: Float[Array, ""] = float_field(unit="m")
    length: Float[Array, ""] | None = float_field(unit="m", default=None)
    centre: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    axis: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_positive("radius", self.radius)
        if self.length is not None:
            require_positive("length", self.length)
        require_direction("axis", self.axis)

    @property
    def bounded(self) -> bool:
        return self.length is not None

    def direction(self) -> Float[Array, " 3"]:
        """Unit vector along the axis."""
        return self.axis / safe_norm(self.axis)

    def surface(self, x):
        axis, arm = self.direction(), x - self.centre
        height = jnp.sum(axis * arm)
        side, outwards = round_surface(arm - axis * height, self.radius, _across(axis))
        if self.length is None:
            return side, outwards
        sign = jnp.where(height >= 0, 1.0, -1.0)
        over = jnp.stack([side, jnp.abs(height) - 0.5 * self.length])
        outside = jnp.maximum(over, 0.0)
        away = safe_norm(outside)
        inside = jnp.where(over[0] >= over[1], jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
        share = jnp.where(away > 0, safe_unit(outside), inside)
        distance = jnp.where(away > 0, away, jnp.max(over))
        return distance, share[0] * outwards + share[1] * sign * axis

    def middle(self):
        return self.centre

    def points(self, direction):
        """Four points of each rim, the first being the farthest in the `direction`. With four
        points, forces on an upright cylinder do not change when the points turn with the
        direction."""
        rim, end = self._rim(direction)
        return self.centre + jnp.concatenate([rim + end, rim - end])

    def segment(self, direction) -> Float[Array, "2 3"]:
        """Ends of the line on its side that touches in a `direction` (3,)."""
        rim, end = self._rim(direction)
        return self.centre + jnp.stack([rim[0] + end, rim[0] - end])

    def _rim(self, direction):
        """Four points of a rim relative to its centre, and half of the axis vector."""
        if self.length is None:
            raise ValueError("length: got None, expected a number for a cylinder on a body")
        axis = self.direction()
        radial = direction - axis * jnp.sum(axis * direction)
        square = jnp.sum(radial * radial)
        steep = square > _FLAT**2
        first = radial / jnp.sqrt(jnp.where(steep, square, 1.0))
        first = jnp.where(steep, first, _across(axis))
        second = jnp.cross(axis, first)
        rim = self.radius * jnp.stack([first, second, -first, -second])
        return rim, 0.5 * self.length * axis

    def thickness(self):
        if self.length is None:
            return self.radius
        return jnp.minimum(self.radius, 0.5 * self.length)


class ConvexPoints(Shape):
    """The convex hull of `corners` (k, 3) [m], rounded by balls of `radius` [m]. Its corners touch
    other shapes; two such sets do not touch each other."""

    corners: Float[Array, "k 3"] = float_field(unit="m")
    radius: Float[Array, ""] = float_field(unit="m", default=0.0)

    has_surface = False

    def __check_init__(self):
        shape = np.shape(self.corners)
        good = len(shape) == 2 and shape[0] >= 1 and shape[1] == 3
        require(good, "corners", f"shape {shape}", "shape (k, 3)")
        require_finite("corners", self.corners)
        require_positive("radius", self.radius, zero_allowed=True)

    def middle(self):
        return jnp.mean(self.corners, axis=0)

    def points(self, direction):
        return self.corners

    def roundness(self):
        return self.radius

    def thickness(self):
        arms = safe_norm(self.corners - self.middle())
        return self.radius + jnp.min(arms)


class Plane(Shape):
    """The half-space behind a plane through `point` (3,) [m] with outward `normal` (3,)."""

    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    normal: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    @property
    def bounded(self):
        return False

    def __check_init__(self):
        require_direction("normal", self.normal)

    def surface(self, x):
        normal = self.normal / safe_norm(self.normal)
        return jnp.sum(normal * (x - self.point)), normal


class HeightField(Shape):
    """Ground of `heights` (n_x, n_y) [m] on a grid that begins at `origin` (2,) [m] with `spacing`
    (2,) [m] along x and y; flat beyond its edges.

    Between grid points it is interpolated by cubic splines (Catmull and Rom) with a continuous
    slope. The distance is measured to the tangent plane below the point, which is accurate if the
    slope changes little over the depth of a contact."""

    heights: Float[Array, "n_x n_y"] = float_field(unit="m")
    spacing: Float[Array, " 2"] = float_field(unit="m")
    origin: Float[Array, " 2"] = float_field(unit="m", default=(0.0, 0.0))

    @property
    def bounded(self):
        return False

    def __check_init__(self):
        shape = np.shape(self.heights)
        good = len(shape) == 2 and min(shape) >= 2
        require(good, "heights", f"shape {shape}", "a grid of at least 2 x 2 points")
        require_finite("heights", self.heights)
        require_positive("spacing", self.spacing)

    def height(self, xy) -> Float[Array, ""]:
        """Height [m] at (2,) [m]."""
        size = np.array(self.heights.shape)
        place = (xy - self.origin) / self.spacing
        place = jnp.clip(place, 0.0, size - 1.0)
        cell = jnp.clip(jnp.floor(jax.lax.stop_gradient(place)), 0, size - 2).astype(int)
        rows, columns = (jnp.clip(cell[i] + np.arange(-1, 3), 0, size[i] - 1) for i in (0, 1))
        near = self.heights[rows][:, columns]
        x, y = (_catmull_rom(place[i] - cell[i]) for i in (0, 1))
        return jnp.sum(x[:, None] * near * y)

    def surface(self, x):
        height, slope = jax.value_and_grad(self.height)(x[:2])
        normal = jnp.concatenate([-slope, jnp.ones(1, slope.dtype)])
        normal = normal / jnp.sqrt(jnp.sum(normal * normal))
        return (x[2] - height) * normal[2], normal


def round_surface(arm, radius, otherwise=None):
    """Distance and normal of a round surface with a `radius`, for the vector `arm` (3,) from its
    centre or axis; the normal is `otherwise` if `arm` is zero."""
    square = jnp.sum(arm * arm)
    somewhere = square > 0
    length = jnp.sqrt(jnp.where(somewhere, square, 1.0))
    otherwise = jnp.array([0.0, 0.0, 1.0], arm.dtype) if otherwise is None else otherwise
    normal = jnp.where(somewhere, arm / length, otherwise)
    return jnp.where(somewhere, length, 0.0) - radius, normal


def _across(axis):
    """A unit vector (3,) perpendicular to a unit vector."""
    away = jnp.eye(3, dtype=axis.dtype)[jnp.argmin(jnp.abs(axis))]
    across = away - axis * jnp.sum(axis * away)
    return across / jnp.sqrt(jnp.sum(across * across))


def _catmull_rom(s):
    """Weights (4,) of neighbouring points at a fraction `s` of the cell between the inner two."""
    cubic = [
        -0.5 * s + s**2 - 0.5 * s**3,
        1.0 - 2.5 * s**2 + 1.5 * s**3,
        0.5 * s + 2.0 * s**2 - 1.5 * s**3,
        -0.5 * s**2 + 0.5 * s**3,
    ]
    return jnp.stack(cubic)
