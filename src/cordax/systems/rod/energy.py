"""Strains, energies and forces of a spline rod.

At each quadrature point let a = r', b = r'', c = r''' (derivatives by material length), s = |a|, C
= a x b, N = |C|^2 and T = C.c. The strains of Khalifa and Palli (2022) are then `1 - s`,
`theta' - T/(N + delta_t^2)` and `|C|/s^3`. Arrays have components first, points last."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from .quadrature import Local, Quadrature


class Stiffness(NamedTuple):
    """Stiffnesses and widths: H_s [N], H_t [N m^2], H_b [N m^2], delta_t [1/m], delta_b [1/m]."""

    stretch: Float[Array, ""]
    twist: Float[Array, ""]
    bending: Float[Array, ""]
    torsion_width: Float[Array, ""]
    bending_width: Float[Array, ""]


class Energies(NamedTuple):
    """Elastic energies [J]."""

    stretch: Float[Array, ""]
    torsion: Float[Array, ""]
    bending: Float[Array, ""]


def cross(a, b):
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def skew(v):
    """Matrix (3, 3, ...) that maps x to v x x."""
    zero = jnp.zeros_like(v[0])
    rows = [[zero, -v[2], v[1]], [v[2], zero, -v[0]], [-v[1], v[0], zero]]
    return jnp.stack([jnp.stack(row) for row in rows])


def densities(at: Local, H: Stiffness, rest):
    """Stretch, torsion and bending energy per material length [J/m], shape (k,) each; `rest` (3,)
    or (3, k). |C| is never computed, because its square root has no derivative at straight
    states."""
    s = jnp.sqrt(dot(at.a, at.a))
    C = cross(at.a, at.b)
    N = dot(C, C)
    twist = at.twist - dot(C, at.c) / (N + H.torsion_width**2) - rest[1]
    m = jnp.sqrt(N + H.bending_width**2)
    bending = N / s**6 - 2.0 * rest[2] * m / s**3 + rest[2] ** 2
    return (
        0.5 * H.stretch * (1.0 - s - rest[0]) ** 2,
        0.5 * H.twist * twist**2,
        0.5 * H.bending * bending,
    )


def energies(P, points: Quadrature, h, H: Stiffness, rest) -> Energies:
    parts = densities(points.local(P, h), H, rest)
    return Energies(*(h * jnp.sum(points.weights * part) for part in parts))


def gradients(at: Local, H: Stiffness, rest) -> Local:
    """Derivatives of the energy per length with respect to a, b, c and theta', in closed form.
    Terms that several components need are stored: otherwise XLA computes them again for each
    component, and their derivatives too (forward mode by two parameters: 5.7 times the cost of the
    run without storing, 3.1 with)."""
    a, b, c, twist = at
    C = cross(a, b)
    s2, C, N, T = materialise((dot(a, a), C, dot(C, C), dot(C, c)))
    s, P = jnp.sqrt(s2), N + H.torsion_width**2
    i, p = 1.0 / s, 1.0 / P
    m = jnp.sqrt(N + H.bending_width**2)
    i3 = i * i * i
    tau = H.twist * (twist - T * p - rest[1])
    along_C = 2.0 * tau * T * p * p + H.bending * (i3 * i3 - rest[2] * i3 / m)
    along_a = i * (
        -H.stretch * (1.0 - s - rest[0])
        - 3.0 * H.bending * N * i3 * i3 * i
        + 3.0 * H.bending * rest[2] * m * i3 * i
    )
    tau, along_a, along_C, along_c = materialise((tau, along_a, along_C, tau * p))
    by_C = materialise(along_C * C - along_c * c)
    return Local(along_a * a + cross(b, by_C), cross(by_C, a), -along_c * C, tau)


@partial(jax.checkpoint, static_argnums=(1,), prevent_cse=False)
def forces(P, points: Quadrature, h, H: Stiffness, rest) -> Float[Array, "4 n"]:
    """Minus the gradient of the energy with respect to the control points, in closed form. Reverse
    mode recomputes it instead of storing some hundred values per point and step, which takes a
    third of the time."""
    g = gradients(materialise(points.local(P, h)), H, rest)
    return -points.collect(g, h)


def strains(at: Local, H: Stiffness):
    """Stretch |r'| (k,), twist (k,) and curvature vector C/s^3 (3, k). The length of the curvature
    vector is the bending strain; the vector is smooth at straight states."""
    s = jnp.sqrt(dot(at.a, at.a))
    C = cross(at.a, at.b)
    twist = at.twist - dot(C, at.c) / (dot(C, C) + H.torsion_width**2)
    return s, twist, C / s**3


def largest_stretch(P, points: Quadrature, h):
    """Largest magnitude of |r'| - 1."""
    a = points.local(P, h).a
    return jnp.max(jnp.abs(jnp.sqrt(dot(a, a)) - 1.0))
