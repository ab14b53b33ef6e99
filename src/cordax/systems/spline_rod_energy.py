"""Strains, energies and forces of a spline rod.

Per quadrature point, with a = r', b = r'', c = r''' by material length, s = |a|, C = a x b, N =
|C|^2 and T = C.c, the strains of Khalifa and Palli (2022) are `1 - s`, `theta' - T/(N + delta_t^2)`
and `|C|/s^3`. Arrays have components first, points last."""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..math import bsplines
from ..math.materialise import materialise
from ..mechanics.checks import require


class Stiffness(NamedTuple):
    """H_s [N], H_t [N m^2], H_b [N m^2], delta_t [1/m], delta_b [1/m]."""

    stretch: Float[Array, ""]
    twist: Float[Array, ""]
    bending: Float[Array, ""]
    torsion_width: Float[Array, ""]
    bending_width: Float[Array, ""]


class Energies(NamedTuple):
    """[J]"""

    stretch: Float[Array, ""]
    torsion: Float[Array, ""]
    bending: Float[Array, ""]


class Points(NamedTuple):
    """Quadrature in units of a span: `values` (k, n) of the basis functions at the points,
    `derivatives` (3 k, n), first to third; `weights` (k,)."""

    values: np.ndarray
    derivatives: np.ndarray
    weights: np.ndarray


def check_rule(rule) -> None:
    ok = isinstance(rule, tuple) and len(rule) == 2 and rule[0] in ("gauss", "trap")
    ok = ok and isinstance(rule[1], int) and rule[1] >= (1 if rule[0] == "gauss" else 2)
    require(ok, "quadrature", rule, '("gauss", points per span) or ("trap", points in all)')


@lru_cache
def points(n: int, rule: tuple[str, int]) -> Points:
    """Of a rod with n control points."""
    x, w = bsplines.gauss(n, rule[1]) if rule[0] == "gauss" else bsplines.trapezoid(n, rule[1])
    values, *derivatives = bsplines.basis(n, x)
    return Points(values, np.concatenate(derivatives), w)


class Local(NamedTuple):
    """At each point: a, b, c (3, k) and theta' (k,)."""

    a: Float[Array, "3 k"]
    b: Float[Array, "3 k"]
    c: Float[Array, "3 k"]
    twist: Float[Array, " k"]


def local(P, points: Points, h) -> Local:
    D = P @ points.derivatives.T
    k = points.weights.shape[0]
    return Local(D[:3, :k] / h, D[:3, k : 2 * k] / h**2, D[:3, 2 * k :] / h**3, D[3, :k] / h)


def _cross(a, b):
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def densities(at: Local, H: Stiffness, rest):
    """Stretch, torsion and bending energy per material length [J/m], shape (k,) each; `rest` (3,)
    or (3, k). |C| is never formed: its root has no derivative at straight states."""
    s = jnp.sqrt(_dot(at.a, at.a))
    C = _cross(at.a, at.b)
    N = _dot(C, C)
    twist = at.twist - _dot(C, at.c) / (N + H.torsion_width**2) - rest[1]
    m = jnp.sqrt(N + H.bending_width**2)
    bending = N / s**6 - 2.0 * rest[2] * m / s**3 + rest[2] ** 2
    return (
        0.5 * H.stretch * (1.0 - s - rest[0]) ** 2,
        0.5 * H.twist * twist**2,
        0.5 * H.bending * bending,
    )


def energies(P, points: Points, h, H: Stiffness, rest) -> Energies:
    parts = densities(local(P, points, h), H, rest)
    return Energies(*(h * jnp.sum(points.weights * part) for part in parts))


def gradients(at: Local, H: Stiffness, rest) -> Local:
    """Derivatives of the energy per length by a, b, c and theta', in closed form."""
    a, b, c, twist = at
    s2 = _dot(a, a)
    C = _cross(a, b)
    N, T = _dot(C, C), _dot(C, c)
    s, P = jnp.sqrt(s2), N + H.torsion_width**2
    i, p = 1.0 / s, 1.0 / P
    m = jnp.sqrt(N + H.bending_width**2)
    i3 = i * i * i
    tau = H.twist * (twist - T * p - rest[1])
    by_C = (2.0 * tau * T * p * p + H.bending * (i3 * i3 - rest[2] * i3 / m)) * C - tau * p * c
    by_s = (
        -H.stretch * (1.0 - s - rest[0])
        - 3.0 * H.bending * N * i3 * i3 * i
        + 3.0 * H.bending * rest[2] * m * i3 * i
    )
    return Local(by_s * i * a + _cross(b, by_C), _cross(by_C, a), -tau * p * C, tau)


def forces(P, points: Points, h, H: Stiffness, rest) -> Float[Array, "4 n"]:
    """Minus the gradient of the energy by control points, in closed form."""
    g = gradients(materialise(local(P, points, h)), H, rest)
    return _assemble(g, points, h)


def _assemble(g: Local, points: Points, h) -> Float[Array, "4 n"]:
    w = -points.weights
    r = jnp.concatenate([g.a * w, g.b * (w / h), g.c * (w / h**2)], axis=1)
    k = points.weights.shape[0]
    angle = g.twist * w
    rows = materialise(r) @ points.derivatives
    return jnp.concatenate([rows, (angle @ points.derivatives[:k])[None]])


def strains(P, points: Points, h, H: Stiffness):
    """Stretch (k,), twist (k,) and curvature vector C/s^3 (3, k): its length is the bending strain,
    and it is smooth at straight states."""
    at = local(P, points, h)
    s = jnp.sqrt(_dot(at.a, at.a))
    C = _cross(at.a, at.b)
    twist = at.twist - _dot(C, at.c) / (_dot(C, C) + H.torsion_width**2)
    return s, twist, C / s**3


def damping_forces(P, dP, points: Points, h, H: Stiffness, time) -> Float[Array, "4 n"]:
    """Kelvin and Voigt: every strain rate times its stiffness and a time [s]. Never feeds
    energy."""
    strain = lambda P: strains(P, points, h, H)
    _, rates = jax.jvp(strain, (P,), (dP,))
    _, back = jax.vjp(strain, P)
    w = h * points.weights * time
    loads = (H.stretch * w * rates[0], H.twist * w * rates[1], H.bending * w * rates[2])
    return -back(loads)[0]


def largest_stretch(P, points: Points, h):
    """Largest |r'| - 1 in size."""
    at = local(P, points, h)
    return jnp.max(jnp.abs(jnp.sqrt(_dot(at.a, at.a)) - 1.0))
