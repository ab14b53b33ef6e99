"""Segments of ropes in space: those of the planar ropes, in terms of the positions of their nodes.

A segment from node a to node b, d = b - a, consists of two slender rods of half its unstretched
length along u = d/|d|, one from a, one to b, with a gap between them that stretches. Rods, springs
and dampers are the same as in the plane, so motion in a plane is exactly that of the planar ropes.
In addition, the joint bends in any direction; segments neither twist nor spin about their axes.

Vectors have the shape (3, s, m): components, s segments from root to end, m ropes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._jax.materialise import materialise
from ....math.safe import safe_sqrt
from ..laws import RopeLaw

Field = Float[Array, "s m"]
Vectors = Float[Array, "3 s m"]


def dot(a, b):
    """Dot product of vectors with components first."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """Cross product of vectors with components first."""
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


class Ropes(NamedTuple):
    """Constant properties of ropes, (m,), `joint` (s, m).

    `rest` length of a segment [m]; `mass` [kg] and `arm` [m], half the length, of each of its two
    rods; `spin`: sum of both moments of inertia [kg m^2] about their centres; `joint` [1/m]:
    curvature per angle at the node above; EA [N], EI [N m^2], retardation times [s] and the law."""

    rest: Float[Array, " m"]
    mass: Float[Array, " m"]
    arm: Float[Array, " m"]
    spin: Float[Array, " m"]
    joint: Field
    EA: Float[Array, " m"]
    EI: Float[Array, " m"]
    axial_time: Float[Array, " m"]
    bending_time: Float[Array, " m"]
    law: RopeLaw


def ropes(length, line_density, root_stiffness, count: int, *laws) -> Ropes:
    """Create ropes of equal segments; parameters have the shape (m,)."""
    rest = length / count
    mass, half = 0.5 * line_density * rest, 0.5 * rest
    joint = jnp.concatenate([(root_stiffness / rest)[None], jnp.tile(1.0 / rest, (count - 1, 1))])
    return Ropes(rest, mass, 0.5 * half, mass * half**2 / 6.0, joint, *laws)


class Direction(NamedTuple):
    """Direction of segments in motion: length l [m] and its rate, unit vector u and its rate."""

    length: Field
    stretch_rate: Field
    along: Vectors
    turn: Vectors


def direction(d, rate) -> Direction:
    """Direction of segments `d` [m] with given rates."""
    l = jnp.sqrt(dot(d, d))
    u = d / l
    stretch_rate = dot(u, rate)
    return Direction(l, stretch_rate, u, (rate - stretch_rate * u) / l)


class Segments(NamedTuple):
    """Segments in motion, (3, s, m) each: the segment above each joint, beginning with the
    direction of the root, and its rate [m/s]; the segment below it, with rate and second derivative
    [m/s^2]."""

    above: Vectors
    above_rate: Vectors
    below: Vectors
    below_rate: Vectors
    second: Vectors

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """Directions above and below the joints."""
        above = direction(self.above, self.above_rate)
        return materialise((above, direction(self.below, self.below_rate)))


def forces(r: Ropes, s: Segments) -> tuple[Vectors, Vectors]:
    """Forces [N] for a given motion, on the segments above joints and on those below. They include
    springs, dampers and the inertia of turning rods, but not the masses of the rods moving with
    their nodes."""
    x, y = s.directions
    on_above, on_below = bending(r, x, y)
    return on_above, on_below + stretching(r, y) + turning(r, y, s.second)


def stretching(r: Ropes, y: Direction) -> Vectors:
    """Force of the tension along each segment."""
    return tension(r, y) * y.along


def tension(r: Ropes, y: Direction) -> Field:
    """Tension [N], including damping."""
    spring = r.law.tension(r.EA, y.length / r.rest - 1.0)
    return spring + r.axial_time * r.EA / r.rest * y.stretch_rate


def turning(r: Ropes, y: Direction, acceleration) -> Vectors:
    """Inertia of the rods relative to their nodes: from `c1 = a + arm u`, `c2 = b - arm u`."""
    l, u, first = y.length, y.along, r.mass * r.arm
    across = acceleration - dot(u, acceleration) * u
    swing = (across - 2.0 * y.stretch_rate * y.turn) / l  # of u'', across u
    inertia = 2.0 * first * r.arm + r.spin
    outward = first * dot(y.turn, y.turn)
    return (inertia / l - first) * swing - (first / l) * across + outward * u


def bending(r: Ropes, x: Direction, y: Direction) -> tuple[Vectors, Vectors]:
    """Moments of joints between the segments x and y, as forces on both."""
    moment = joint_moment(r, x, y)
    moment = materialise(moment)
    return -cross(moment, x.along) / x.length, cross(moment, y.along) / y.length


def joint_moment(r: Ropes, x: Direction, y: Direction) -> Vectors:
    """Moment of each joint [N m], in world axes: from the bend, and from the difference of the
    angular velocities u x u' of segments that do not spin."""
    bend, square = bend_vector(x.along, y.along)
    spin = cross(y.along, y.turn) - cross(x.along, x.turn)
    stiffness = _secant(r, square * r.joint**2)
    return r.joint * (stiffness * bend + r.bending_time * r.EI * spin)


def bend_vector(u1, u2) -> tuple[Vectors, Field]:
    """Rotation vector [rad] that turns the unit vector u1 into u2, and its square; smooth where
    both are equal, and zero where they are opposite."""
    c, cosine = cross(u1, u2), dot(u1, u2)
    square = dot(c, c)
    small = (square < 1e-3) & (cosine > 0)
    safe = jnp.where(small | (square == 0), 1.0, square)
    sine = jnp.sqrt(safe)
    # series of asin(s)/s in s^2, exact to round-off where it is used
    series = 1.0 + square * (
        1 / 6 + square * (3 / 40 + square * (5 / 112 + square * (35 / 1152 + square * (63 / 2816))))
    )
    factor = jnp.where(small, series, jnp.arctan2(sine, cosine) / sine)
    return factor * c, factor**2 * square


#: squared curvatures [1/m^2] below which the stiffness is that of the straight rope
_STRAIGHT = 1e-14


def _secant(r: Ropes, square) -> Field:
    """Moment over curvature [N m^2] at a squared curvature [1/m^2]; laws are even functions."""
    bent = square > _STRAIGHT
    curvature = jnp.sqrt(jnp.where(bent, square, 1.0))
    zero, one = jnp.zeros_like(square), jnp.ones_like(square)
    _, straight = jax.jvp(lambda k: r.law.moment(r.EI, k), (zero,), (one,))
    return jnp.where(bent, r.law.moment(r.EI, curvature) / curvature, straight)


def elastic_energy(r: Ropes, s: Segments):
    """Energy [J] of the springs."""
    x, y = s.directions
    axial = r.rest * r.law.axial_energy(r.EA, y.length / r.rest - 1.0)
    _, square = bend_vector(x.along, y.along)
    per_joint = 1.0 / jnp.where(r.joint > 0, r.joint, 1.0)
    curvature = safe_sqrt(square) * r.joint
    return jnp.sum(axial) + jnp.sum(per_joint * r.law.bending_energy(r.EI, curvature))


def dissipated_power(r: Ropes, s: Segments):
    """Power [W] dissipated by damping."""
    x, y = s.directions
    spin = cross(y.along, y.turn) - cross(x.along, x.turn)
    axial = r.axial_time * r.EA / r.rest * y.stretch_rate**2
    return jnp.sum(axial) + jnp.sum(r.bending_time * r.EI * r.joint * dot(spin, spin))
