"""Implicit steps of ropes in O(s): the matrix `A = M - h D - h2 K` eliminated segment by segment
from the ends to the roots.

In stretches and angles A is full, because every segment moves all that hangs on it. But its rows
are those of one pass along the rope and back (`inverse`), differentiated along a motion z that
changes second derivatives by z, rates by h z and positions by h2 z. That pass couples a segment to
what is above it through three numbers, the change w of the acceleration of its node and that of its
angle, and hands three back, a force and a moment. So the part of a rope below a node is condensed
to `(force, moment) = S (w, angle) - g` with S 3 by 3, and each segment costs one 2 by 2 inverse.
A is not symmetric: velocity terms are in it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...math.materialise import materialise
from .inverse import Loads, Rope, before
from .segments import Field, Motion, Segments, Vectors, dot


class Rows(NamedTuple):
    """What each segment adds, (s, m) or (2, s, m): the lever of its end along stretch and angle,
    and their changes (`by_stretch`, `by_angle`: of the acceleration of its end); first moments of
    its rods along the change of a swing; masses; stiffness of stretch, of angle, of the joint
    above, and between stretch and angle: of the former by the latter, and back."""

    along: Vectors
    lever: Vectors
    across: Vectors
    by_stretch: Vectors
    by_angle: Vectors
    upper_moment: Vectors
    lower_moment: Vectors
    upper_first: Field
    lower_first: Field
    upper_mass: Field
    lower_mass: Field
    axial: Field
    angular: Field
    joint: Field
    mixed: Field
    back: Field


def rows(seg: Segments, rope: Rope, x: Motion, a, loads: Loads, h, h2) -> Rows:
    """At second derivatives `a` (2, s, m), which may be zero for those left out."""
    l, u, n = x.length, x.along, x.across
    kept = 1.0 - h2 * x.angle_rate**2
    turned = h2 * a[1] + 2.0 * h * x.angle_rate
    by_stretch = kept * u + turned * n
    radial = -l * turned - 2.0 * h2 * x.stretch_rate * x.angle_rate
    tangential = l * kept + h2 * a[0] + 2.0 * h * x.stretch_rate
    by_angle = radial * u + tangential * n
    swing = kept * n - turned * u  # of a rod's arm, per angle
    first = seg.upper_mass * seg.upper_arm, seg.lower_mass * seg.lower_arm
    _, tension = jax.jvp(
        lambda e: rope.law.tension(rope.EA, e), (x.stretch / seg.rest,), (jnp.ones_like(l),)
    )
    bend = (x.angle - before(x.angle, rope.root_angle)) * seg.joint
    _, moment = jax.jvp(lambda k: rope.law.moment(rope.EI, k), (bend,), (jnp.ones_like(l),))
    axial = (h2 * tension + h * rope.axial_time * rope.EA) / seg.rest
    joint = (h2 * moment + h * rope.bending_time * rope.EI) * seg.joint
    inertia = seg.spin + kept * (first[0] * seg.upper_arm + first[1] * seg.lower_arm)
    tilt = seg.upper_arm * loads.upper - seg.lower_arm * loads.lower + l * loads.below
    spread = lambda y: jnp.broadcast_to(y, l.shape)
    mixed = h2 * dot(n, loads.below)
    return Rows(
        u,
        l * n,
        n,
        by_stretch,
        by_angle,
        first[0] * swing,
        first[1] * swing,
        spread(first[0]),
        spread(first[1]),
        spread(seg.upper_mass),
        spread(seg.lower_mass),
        axial,
        joint + inertia - h2 * dot(u, tilt),
        joint,
        mixed,
        mixed,
    )


def with_root(r: Rows, block: Float[Array, "2 2 m"]) -> Rows:
    """A matrix on stretch and angle of the first segments besides."""
    add = lambda y, x: y.at[0].add(x)
    return r._replace(
        axial=add(r.axial, block[0, 0]),
        mixed=add(r.mixed, block[0, 1]),
        back=add(r.back, block[1, 0]),
        angular=add(r.angular, block[1, 1]),
    )


class Factor(NamedTuple):
    """For each segment: the inverse of its own 2 by 2 block; how its stretch and angle follow the
    node and the angle above it; what its right-hand side hands up. Segments first, cables last."""

    along: Float[Array, "s 2 m"]
    lever: Float[Array, "s 2 m"]
    by_stretch: Float[Array, "s 2 m"]
    by_angle: Float[Array, "s 2 m"]
    inverse: Float[Array, "s 2 2 m"]
    follow: Float[Array, "s 2 3 m"]
    hand: Float[Array, "s 3 2 m"]


def factorise(r: Rows) -> Factor:
    r = jax.tree.map(lambda y: jnp.moveaxis(y, -2, 0), materialise(r))
    m = r.axial.shape[1]

    def condense(S, r: Rows):
        (a, b, c), (d, e, f), (i, j, k) = S
        a, e = a + r.lower_mass, e + r.lower_mass
        # force on the end: P w + p angle, P = [[a, b], [d, e]]
        px, pz = c - r.lower_moment[0], f - r.lower_moment[1]
        tx, tz = (
            a * r.by_stretch[0] + b * r.by_stretch[1],
            d * r.by_stretch[0] + e * r.by_stretch[1],
        )
        ax = a * r.by_angle[0] + b * r.by_angle[1] + px
        az = d * r.by_angle[0] + e * r.by_angle[1] + pz
        u, v = r.along, r.lever
        ux, uz = u[0] * a + u[1] * d, u[0] * b + u[1] * e
        # moment by w: that of the force, of the lower rod, and of the rope below
        kx = v[0] * a + v[1] * d - r.lower_first * r.across[0] + i
        kz = v[0] * b + v[1] * e - r.lower_first * r.across[1] + j
        h11 = u[0] * tx + u[1] * tz + r.axial
        h12 = u[0] * ax + u[1] * az + r.mixed
        h21 = kx * r.by_stretch[0] + kz * r.by_stretch[1] + r.back
        h22 = kx * r.by_angle[0] + kz * r.by_angle[1] + v[0] * px + v[1] * pz + k + r.angular
        d0 = 1.0 / (h11 * h22 - h12 * h21)
        y11, y12, y21, y22 = h22 * d0, -h12 * d0, -h21 * d0, h11 * d0
        cx, cz = kx + r.upper_first * r.across[0], kz + r.upper_first * r.across[1]
        fs = [y11 * ux + y12 * cx, y11 * uz + y12 * cz, -y12 * r.joint]
        fa = [y21 * ux + y22 * cx, y21 * uz + y22 * cz, -y22 * r.joint]
        bx, bz = ax + r.upper_moment[0], az + r.upper_moment[1]
        zero = jnp.zeros_like(a)
        own = [
            [a + r.upper_mass, b, zero],
            [d, e + r.upper_mass, zero],
            [zero, zero, r.joint],
        ]
        back = [(tx, bx), (tz, bz), (zero, -r.joint)]
        S = [
            [own[p][q] - back[p][0] * fs[q] - back[p][1] * fa[q] for q in range(3)]
            for p in range(3)
        ]
        hand = [[s * y11 + t * y21, s * y12 + t * y22] for s, t in back]
        stack = lambda rows: jnp.stack([jnp.stack(row) for row in rows])
        out = stack([[y11, y12], [y21, y22]]), stack([fs, fa]), stack(hand)
        return materialise(stack(S)), materialise(out)

    start = jnp.zeros((3, 3, m), r.axial.dtype)
    _, (inverse, follow, hand) = lax.scan(condense, start, r, reverse=True)
    return Factor(r.along, r.lever, r.by_stretch, r.by_angle, inverse, follow, hand)


def substitute(f: Factor, b: Float[Array, "2 s m"]) -> Float[Array, "2 s m"]:
    """`A^-1 b` for stretches and angles."""
    b = jnp.moveaxis(b, 1, 0)

    def up(g, row):
        b, u, v, inverse, hand = row
        s = b[0] + u[0] * g[0] + u[1] * g[1]
        a = b[1] + v[0] * g[0] + v[1] * g[1] + g[2]
        own = jnp.stack([g[0], g[1], jnp.zeros_like(s)])
        y = inverse[:, 0] * s + inverse[:, 1] * a
        return materialise((own - hand[:, 0] * s - hand[:, 1] * a, y))

    def down(w, row):
        y, follow, by_stretch, by_angle = row
        z = y - follow[:, 0] * w[0] - follow[:, 1] * w[1] - follow[:, 2] * w[2]
        moved = w[:2] + by_stretch * z[0] + by_angle * z[1]
        return materialise((jnp.concatenate([moved, z[1:]]), z))

    start = jnp.zeros((3, b.shape[2]), b.dtype)
    _, y = lax.scan(up, start, (b, f.along, f.lever, f.inverse, f.hand), reverse=True)
    _, z = lax.scan(down, start, (y, f.follow, f.by_stretch, f.by_angle))
    return jnp.moveaxis(z, 0, 1)
