"""Inverse dynamics: forces for a given motion, by one pass from the roots to the ends and one back,
in O(s)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from .laws import RopeLaw
from .segments import Field, Motion, Segments, Vectors, dot


class Accelerations(NamedTuple):
    """Accelerations of the centres of both rods [m/s^2], (2, s, m) each."""

    upper: Vectors
    lower: Vectors


def accelerations(seg: Segments, x: Motion, a) -> Accelerations:
    """Accelerations for second derivatives `a` (2, s, m) of stretches and angles; roots are at
    rest."""
    spin2 = x.angle_rate**2
    radial = a[0] - x.length * spin2
    tangential = x.length * a[1] + 2.0 * x.stretch_rate * x.angle_rate
    step = radial * x.along + tangential * x.across
    node = lax.cumsum(step, axis=1)
    swing = a[1] * x.across - spin2 * x.along
    return Accelerations(node - step + seg.upper_arm * swing, node - seg.lower_arm * swing)


class Loads(NamedTuple):
    """Forces [N] on the rods of each segment, and on everything that hangs `below` its gap,
    including the lower rod: (2, s, m) each."""

    upper: Vectors
    lower: Vectors
    below: Vectors


def inertia_rows(seg: Segments, x: Motion, a, at: Accelerations, gravity, tip):
    """Generalised forces (2, s, m) on stretches and angles that produce the given accelerations of
    the rods against `gravity` [m/s^2] and the forces `tip` (2, m) [N] with which ropes pull at
    their ends; and the loads that segments carry."""
    up = jnp.stack([0.0 * gravity, gravity])[:, None, None]
    upper, lower = seg.upper_mass * (at.upper + up), seg.lower_mass * (at.lower + up)
    both = upper + lower
    load = lower + lax.cumsum(both, axis=1, reverse=True) - both + tip[:, None]
    turn = seg.upper_arm * dot(x.across, upper) - seg.lower_arm * dot(x.across, lower)
    along = dot(x.along, load)
    angular = x.length * dot(x.across, load) + turn + seg.spin * a[1]
    return jnp.stack([along, angular]), Loads(upper, lower, load)


class Rope(NamedTuple):
    """Material of the ropes, (m,) each: EA [N], EI [N m^2], retardation times [s], the angle at the
    root [rad], and the law."""

    EA: Field
    EI: Field
    axial_time: Field
    bending_time: Field
    root_angle: Field
    law: RopeLaw


def before(angle, first):
    """Angles (s, m) of the segments above, with that of the root (m,) first."""
    return jnp.concatenate([jnp.broadcast_to(first, angle.shape[1:])[None], angle[:-1]])


def elastic_rows(seg: Segments, rope: Rope, x: Motion):
    """Tension [N] and, on angles, the moments [N m] of both joints of each segment, including
    damping: shape (2, s, m)."""
    tension = rope.law.tension(rope.EA, x.stretch / seg.rest)
    tension = tension + rope.axial_time * rope.EA / seg.rest * x.stretch_rate
    bend = (x.angle - before(x.angle, rope.root_angle)) * seg.joint
    rate = (x.angle_rate - before(x.angle_rate, 0.0)) * seg.joint
    moment = rope.law.moment(rope.EI, bend) + rope.bending_time * rope.EI * rate
    below = jnp.concatenate([moment[1:], jnp.zeros_like(moment[:1])])
    return jnp.stack([tension, moment - below])
