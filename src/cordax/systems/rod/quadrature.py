"""Mapping from control points to quadrature points along a spline rod, and back.

Arrays have components first, quadrature points last. Everything is in units of a knot span; lengths
enter as powers of the span h [m]."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require
from ..._jax.materialise import materialise
from ...math import bsplines


class Local(NamedTuple):
    """Derivatives at each point: a = r', b = r'', c = r''' by material length, (3, ...), and theta'
    (...)."""

    a: Float[Array, "3 ..."]
    b: Float[Array, "3 ..."]
    c: Float[Array, "3 ..."]
    twist: Float[Array, "..."]


@dataclass(frozen=True, eq=False)
class Scattered:
    """Quadrature points at arbitrary places, shape (k,). `values` (k, n): all basis functions
    there; `derivatives` (3 k, n): their first to third derivatives; `weights` (k,)."""

    values: np.ndarray
    derivatives: np.ndarray
    weights: np.ndarray

    def local(self, P, h) -> Local:
        """Local derivatives for control points (4, n) [m, rad]."""
        D = P @ self.derivatives.T
        k = self.weights.shape[0]
        return Local(D[:3, :k] / h, D[:3, k : 2 * k] / h**2, D[:3, 2 * k :] / h**3, D[3, :k] / h)

    def positions(self, P) -> Float[Array, "3 k"]:
        return P[:3] @ self.values.T

    def collect(self, g: Local, h) -> Float[Array, "4 n"]:
        """Integral of a local gradient along the rod, by control points."""
        w = self.weights
        r = jnp.concatenate([g.a * w, g.b * (w / h), g.c * (w / h**2)], axis=1)
        rows = materialise(r) @ self.derivatives
        angle = (g.twist * w) @ self.derivatives[: w.shape[0]]
        return jnp.concatenate([rows, angle[None]])

    def spread(self, x):
        """Arrange values (..., k), ordered from end to end, as (..., points)."""
        return x

    def gather(self, x):
        """Inverse of `spread`: values (..., points) ordered from end to end, (..., k)."""
        return x


@dataclass(frozen=True, eq=False)
class Spans:
    """The same g quadrature points in each of s spans, shape (g, s). `basis` (4, 4, g, s):
    derivatives of order 0 to 3 of the four functions that are not zero on a span; `weights` (g, s).

    Spans stay contiguous, and only functions that do not vanish are summed. There is no matrix
    product: its library call would keep XLA from compiling the time loop into one function."""

    basis: np.ndarray
    weights: np.ndarray

    def local(self, P, h) -> Local:
        a, b, c = (self._derivative(P, order) / h**order for order in (1, 2, 3))
        return Local(a[:3], b[:3], c[:3], a[3])

    def positions(self, P) -> Float[Array, "3 g s"]:
        return self._derivative(P, 0)[:3]

    def collect(self, g: Local, h) -> Float[Array, "4 n"]:
        w = self.weights
        g = materialise(Local(g.a * w, g.b * (w / h), g.c * (w / h**2), g.twist * w))
        first, second, third = self.basis[1:]
        position = [
            jnp.sum(g.a * first[i] + g.b * second[i] + g.c * third[i], axis=1) for i in range(4)
        ]
        angle = [jnp.sum(g.twist * first[i], axis=0) for i in range(4)]
        return overlap(
            [jnp.concatenate([r, a[None]]) for r, a in zip(position, angle, strict=True)]
        )

    def spread(self, x):
        return x.reshape(*x.shape[:-1], *self.weights.T.shape).swapaxes(-1, -2)

    def gather(self, x):
        return x.swapaxes(-1, -2).reshape(*x.shape[:-2], -1)

    def _derivative(self, P, order: int):
        s = self.weights.shape[1]
        terms = [P[:, None, i : i + s] * b for i, b in enumerate(self.basis[order])]
        return terms[0] + terms[1] + terms[2] + terms[3]


def overlap(rows):
    """Sum of four arrays (m, s), each shifted by one control point against the previous one:
    (m, s + 3)."""
    moved = [jnp.pad(x, ((0, 0), (i, 3 - i))) for i, x in enumerate(rows)]
    return moved[0] + moved[1] + moved[2] + moved[3]


Quadrature = Scattered | Spans


def check_rule(rule, n: int) -> None:
    """Raise unless the quadrature points of a rule detect every bending shape of a rod with n
    control points."""
    ok = isinstance(rule, tuple) and len(rule) == 2 and rule[0] in ("gauss", "trap")
    ok = ok and isinstance(rule[1], int) and rule[1] >= (1 if rule[0] == "gauss" else 2)
    require(ok, "quadrature", rule, '("gauss", points per span) or ("trap", points in all)')
    more = "more points: bending that none of them sees would cost no energy"
    require(_seen_bending(n, rule) == n - 2, "quadrature", rule, more)


@lru_cache
def _seen_bending(n: int, rule: tuple[str, int]) -> int:
    """Rank of the curvatures at the quadrature points. It is n - 2 if all bending is detected,
    because a straight rod stays straight when it is translated or rotated."""
    return int(np.linalg.matrix_rank(bsplines.basis(n, nodes(n, rule)[0])[2]))


def nodes(n: int, rule: tuple[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a quadrature rule, from end to end."""
    return (bsplines.gauss if rule[0] == "gauss" else bsplines.trapezoid)(n, rule[1])


@lru_cache
def quadrature(n: int, rule: tuple[str, int]) -> Quadrature:
    """Quadrature of a rod with n control points: ("gauss", points per span) or ("trap", points in
    all), from end to end, some of them on knots."""
    if rule[0] == "gauss":
        return gauss(n, rule[1])
    x, w = nodes(n, rule)
    values, *derivatives = bsplines.basis(n, x)
    return Scattered(values, np.concatenate(derivatives), w)


@lru_cache
def gauss(n: int, per_span: int) -> Spans:
    x, w = bsplines.gauss(n, per_span)
    B = bsplines.basis(n, x).reshape(4, n - 3, per_span, n)
    own = np.stack([B[:, e, :, e : e + 4] for e in range(n - 3)])  # (s, 4, g, 4)
    return Spans(own.transpose(1, 3, 2, 0), w.reshape(n - 3, per_span).T)


@lru_cache
def pieces(n: int, per_span: int) -> np.ndarray:
    """Values of the four functions of each span at the ends of equal pieces of it, shape
    (4, per_span + 1, s)."""
    places = np.arange(n - 3)[:, None] + np.linspace(0.0, 1.0, per_span + 1)
    B = bsplines.basis(n, places.reshape(-1))[0].reshape(n - 3, per_span + 1, n)
    own = np.stack([B[e, :, e : e + 4] for e in range(n - 3)])
    return own.transpose(2, 1, 0)


def times_gram(P: Float[Array, "4 n"]) -> Float[Array, "4 n"]:
    """Compute `P @ bsplines.gram(n)` by its seven bands: a matrix product would keep the time loop
    from being compiled into one function."""
    n = P.shape[1]
    G = np.pad(bsplines.gram(n), ((3, 3), (0, 0)))
    around = jnp.pad(P, ((0, 0), (3, 3)))
    bands = [G[k + np.arange(n), np.arange(n)] * around[:, k : k + n] for k in range(7)]
    return sum(bands[1:], bands[0])  # pyright: ignore[reportReturnType]


@lru_cache
def span_gram(n: int) -> np.ndarray:
    """Exact integrals of products of the four functions of each span, shape (s, 4, 4)."""
    exact = gauss(n, 4)
    return np.einsum("gs,igs,kgs->sik", exact.weights, exact.basis[0], exact.basis[0])
