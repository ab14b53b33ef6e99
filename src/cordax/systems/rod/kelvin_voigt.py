"""Kelvin-Voigt damping of a spline rod: every strain resists its rate with its stiffness times a
time [s].

For the strains e of a point (stretch |a|, twist, curvature vector C/|a|^3) with stiffness k, the
local force is `sum sigma de/dx`, sigma = time k de/dt. It never adds energy. It is in closed form,
like the elastic law."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from .energy import Stiffness, cross, dot, skew
from .quadrature import Local, Quadrature


class Stresses(NamedTuple):
    """Viscous stresses that resist the strain rates: a force [N], a torque [N m] and a moment
    (3, ...) [N m]."""

    stretch: Float[Array, "..."]
    twist: Float[Array, "..."]
    bending: Float[Array, "3 ..."]


class StrainGradients(NamedTuple):
    """Derivatives of the stretch by a (3, ...), of the twist by a, b, c and theta' (10, ...), and
    of the curvature vector by a and b (3, 6, ...)."""

    stretch: Float[Array, "3 ..."]
    twist: Float[Array, "10 ..."]
    bending: Float[Array, "3 6 ..."]


def stresses(at: Local, rate: Local, H: Stiffness, time) -> Stresses:
    """Viscous stresses at points `at` that move with `rate`."""
    a, b, c, _ = at
    C, dC = cross(a, b), cross(rate.a, b) + cross(a, rate.b)
    S, N, T = dot(a, a), dot(C, C), dot(C, c)
    along, dN, dT = dot(a, rate.a), 2.0 * dot(C, dC), dot(dC, c) + dot(C, rate.c)
    i, p = 1.0 / jnp.sqrt(S), 1.0 / (N + H.torsion_width**2)
    i3 = i * i * i
    bent = i3 * dC - 3.0 * i3 * i * i * along * C
    turned = rate.twist - dT * p + T * p * p * dN
    return Stresses(time * H.stretch * i * along, time * H.twist * turned, time * H.bending * bent)


def gradients(at: Local, held: Stresses, H: Stiffness) -> Local:
    """Compute `sum sigma de/dx`: the work per length done on rates of a, b, c and theta'."""
    a, b, c, _ = at
    C = cross(a, b)
    S, N, T, U = dot(a, a), dot(C, C), dot(C, c), dot(C, held.bending)
    i, p = 1.0 / jnp.sqrt(S), 1.0 / (N + H.torsion_width**2)
    i3 = i * i * i
    along_a, along_c = i * held.stretch - 3.0 * U * i3 * i * i, held.twist * p
    i3, C, along_a, along_c, along_C = materialise((i3, C, along_a, along_c, 2.0 * T * p * along_c))
    by_C = materialise(along_C * C - along_c * c + i3 * held.bending)
    return Local(along_a * a + cross(b, by_C), cross(by_C, a), -along_c * C, held.twist)


def forces(P, dP, points: Quadrature, h, H: Stiffness, time) -> Float[Array, "4 n"]:
    """Viscous forces on control points (4, n) that move with velocities `dP`."""
    at = materialise(points.local(P, h))
    held = materialise(stresses(at, points.local(dP, h), H, time))
    return -points.collect(gradients(at, held, H), h)


def strain_gradients(at: Local, H: Stiffness) -> StrainGradients:
    a, b, c, twist = at
    C = cross(a, b)
    S, N, T = dot(a, a), dot(C, C), dot(C, c)
    i, p = 1.0 / jnp.sqrt(S), 1.0 / (N + H.torsion_width**2)
    i, p, C, y = materialise((i, p, C, 2.0 * T * p * p * C - p * c))
    i3 = i * i * i
    turned = jnp.concatenate([cross(b, y), cross(y, a), -p * C, jnp.ones_like(twist)[None]])
    by_a = -i3 * skew(b) - 3.0 * i3 * i * i * C[:, None] * a[None]
    return StrainGradients(i * a, turned, jnp.concatenate([by_a, i3 * skew(a)], axis=1))


def derivatives(at: Local, rate: Local, H: Stiffness, time):
    """Derivatives of the local force, (10, 10, ...) each: by rates, `sum time k (de/dx)(de/dx)^T`,
    and the part of the derivative by positions that comes from changing strain rates,
    `sum time k (de/dx)(d/dt de/dx)^T`. The remaining part of the latter is that of strains under
    constant stresses (`stiffness.second_derivatives`)."""
    G, dG = materialise(jax.jvp(lambda at: strain_gradients(at, H), (at,), (rate,)))

    def product(x: StrainGradients):
        stretch = G.stretch[:, None] * (time * H.stretch * x.stretch)[None]
        bent = time * H.bending * x.bending
        bending = sum(G.bending[k][:, None] * bent[k][None] for k in range(3))
        widen = lambda block: jnp.pad(
            block, [(0, 10 - n) for n in block.shape[:2]] + [(0, 0)] * (block.ndim - 2)
        )
        twist = G.twist[:, None] * (time * H.twist * x.twist)[None]
        return twist + widen(stretch) + widen(bending)

    return product(G), product(dG)
