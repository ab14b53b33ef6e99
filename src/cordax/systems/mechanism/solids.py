"""Mass, centre and inertia of rigid bodies composed of primitives."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import (
    known_values,
    require,
    require_finite,
    require_inertia,
    require_positive,
    require_rotation,
    require_shape,
)
from ..._base.precision import as_float_array, declare_units, float_field


class Solid(eqx.Module):
    """Rigid part of a body: `mass` [kg], `centre` (3,) [m] in body axes and `inertia`, shape
    (3, 3) [kg m^2], about that centre in body axes."""

    mass: Float[Array, ""] = float_field(unit="kg")
    centre: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    inertia: Float[Array, "3 3"] = float_field(unit="kg m^2", default=((0.0, 0.0, 0.0),) * 3)

    def __check_init__(self):
        require_shape("mass", self.mass, ())
        require_positive("mass", self.mass, zero_allowed=True)
        require_shape("centre", self.centre, (3,))
        require_finite("centre", self.centre)
        require_inertia("inertia", self.inertia)

    def turned(self, rotation) -> "Solid":
        """Copy of this solid, rotated about the body's origin by a rotation matrix (3, 3)."""
        R = as_float_array(rotation)
        require_rotation("rotation", R)
        return Solid(self.mass, R @ self.centre, R @ self.inertia @ R.T)

    def moved(self, by) -> "Solid":
        """Copy of this solid, shifted by a vector (3,) [m]."""
        return Solid(self.mass, self.centre + as_float_array(by), self.inertia)


@declare_units(mass="kg", centre="m")
def point_mass(mass, centre=(0.0, 0.0, 0.0)) -> Solid:
    """Point mass of `mass` [kg] at a point (3,) [m]."""
    return Solid(mass, centre)


@declare_units(radius="m", length="m", density="kg/m^3", mass="kg", centre="m")
def cylinder(radius, length, *, density=None, mass=None, centre=(0.0, 0.0, 0.0), axis="z") -> Solid:
    """Solid cylinder along an axis, with dimensions in [m] and its centre at `centre`; give
    `density` [kg/m^3] or `mass`."""
    return tube(radius, 0.0, length, density=density, mass=mass, centre=centre, axis=axis)


@declare_units(outer="m", inner="m", length="m", density="kg/m^3", mass="kg", centre="m")
def tube(
    outer, inner, length, *, density=None, mass=None, centre=(0.0, 0.0, 0.0), axis="z"
) -> Solid:
    """Hollow cylinder along an axis, with `outer` and `inner` radius [m]."""
    outer, inner, length = (as_float_array(x) for x in (outer, inner, length))
    require_positive("outer", outer)
    require_positive("inner", inner, zero_allowed=True)
    wall = known_values(outer - inner)
    require(wall is None or bool((wall > 0).all()), "inner", inner, f"less than outer, {outer}")
    require_positive("length", length)
    m = _mass(density, mass, jnp.pi * (outer**2 - inner**2) * length)
    square = outer**2 + inner**2
    across = m * (square / 4.0 + length**2 / 12.0)
    return _about(axis, m, centre, across, m * square / 2.0)


@declare_units(sizes="m", density="kg/m^3", mass="kg", centre="m")
def box(sizes, *, density=None, mass=None, centre=(0.0, 0.0, 0.0)) -> Solid:
    """Cuboid with edges `sizes` (3,) [m] along the body axes."""
    sizes = as_float_array(sizes)
    require_shape("sizes", sizes, (3,))
    require_positive("sizes", sizes)
    m = _mass(density, mass, jnp.prod(sizes))
    square = sizes**2
    return Solid(m, centre, jnp.diag(m / 12.0 * (jnp.sum(square) - square)))


@declare_units(edge="m", density="kg/m^3", mass="kg", centre="m")
def cube(edge, *, density=None, mass=None, centre=(0.0, 0.0, 0.0)) -> Solid:
    """Cube with edge length `edge` [m]."""
    return box(as_float_array(edge) * jnp.ones(3), density=density, mass=mass, centre=centre)


@declare_units(radius="m", density="kg/m^3", mass="kg", centre="m")
def sphere(radius, *, density=None, mass=None, centre=(0.0, 0.0, 0.0)) -> Solid:
    """Solid ball with a `radius` [m]."""
    radius = as_float_array(radius)
    require_positive("radius", radius)
    m = _mass(density, mass, 4.0 / 3.0 * jnp.pi * radius**3)
    return Solid(m, centre, 0.4 * m * radius**2 * jnp.eye(3))


@declare_units(length="m", mass="kg", centre="m")
def rod(length, *, mass, centre=(0.0, 0.0, 0.0), axis="x") -> Solid:
    """Thin rod with a `length` [m] and `mass` [kg], and no inertia about its own axis."""
    length, m = as_float_array(length), as_float_array(mass)
    require_positive("length", length)
    return _about(axis, m, centre, m * length**2 / 12.0, 0.0 * m)


def _about(axis, m, centre, across, along) -> Solid:
    require(axis in ("x", "y", "z"), "axis", repr(axis), "'x', 'y' or 'z'")
    diagonal = [across] * 3
    diagonal["xyz".index(axis)] = along
    return Solid(m, centre, jnp.diag(jnp.stack(diagonal)))


def _mass(density, mass, volume):
    require(
        (density is None) != (mass is None),
        "density, mass",
        f"{density}, {mass}",
        "exactly one of them",
    )
    if mass is not None:
        return as_float_array(mass)
    require_positive("density", as_float_array(density), zero_allowed=True)
    return as_float_array(density) * volume
