"""Segments of ropes. Each consists of two slender rigid rods with a gap between them that
stretches; joints between segments, the nodes, bend.

Quantities of segments have the shape (s, m): s segments from root to end, m cables. Vectors in the
plane (x, z) have their components first."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.trigonometry import sincos

Field = Float[Array, "s m"]
Vectors = Float[Array, "2 s m"]


def dot(a, b):
    """Dot product of vectors with components first."""
    return a[0] * b[0] + a[1] * b[1]


def is_reached(place, roots, length):
    """Whether ropes from `roots` (m, d) [m] end at `place` (m, d) without being stretched by more
    than half of their `length` (m,) [m]."""
    return ((place - roots) ** 2).sum(1) <= (1.5 * length) ** 2


class Segments(NamedTuple):
    """Constant properties of segments, shape (s, m) or (1, m) where all segments are equal.

    `rest` unstretched length [m]; of the upper rod, towards the root, and of the lower one: `mass`
    [kg] and `arm` [m], half of its length; `spin`: sum of both moments of inertia [kg m^2] about
    their centres; `joint` [1/m], shape (s, m): curvature per angle at the node above."""

    rest: Field
    upper_mass: Field
    lower_mass: Field
    upper_arm: Field
    lower_arm: Field
    spin: Field
    joint: Field


def segments(length, line_density, root_stiffness, count: int) -> Segments:
    """Create equal segments; `length` [m], `line_density` [kg/m] and `root_stiffness` [-] (m,)."""
    rest = length[None] / count
    mass, half = 0.5 * line_density * rest, 0.5 * rest
    joint = jnp.concatenate([root_stiffness[None] / rest, jnp.tile(1.0 / rest, (count - 1, 1))])
    return Segments(rest, mass, mass, 0.5 * half, 0.5 * half, mass * half**2 / 6.0, joint)


class Motion(NamedTuple):
    """Motion of segments, shape (s, m) each: `stretch` D [m], `angle` phi [rad] and their rates;
    `length` l [m]; `along` u and `across` n, unit vectors (2, s, m): u(0) points down, n to +x."""

    stretch: Field
    angle: Field
    stretch_rate: Field
    angle_rate: Field
    length: Field
    along: Vectors
    across: Vectors


def motion(rest, q: Float[Array, "2 s m"], v: Float[Array, "2 s m"]) -> Motion:
    """Motion for coordinates D, phi and their rates."""
    s, c = materialise(sincos(q[1]))
    along, across = jnp.stack([s, -c]), jnp.stack([c, s])
    return Motion(q[0], q[1], v[0], v[1], rest + q[0], along, across)


class Layout(eqx.Module):
    """Positions of the coordinates of `count` segments of `n_ropes` ropes in vectors (n,)."""

    count: int = eqx.field(static=True)
    n_ropes: int = eqx.field(static=True)

    def split(self, x) -> tuple[Vectors, Float[Array, " p"]]:
        """Split a vector into the entries of stretches and angles, and the remaining entries."""
        n = 2 * self.count * self.n_ropes
        return x[:n].reshape(self.n_ropes, self.count, 2).transpose(2, 1, 0), x[n:]

    def join(self, ropes, platform=None) -> Float[Array, " n"]:
        """Inverse of `split`."""
        flat = ropes.transpose(2, 1, 0).reshape(-1)
        return flat if platform is None else jnp.concatenate([flat, platform])
