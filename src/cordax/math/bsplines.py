"""Cubic B-splines on a clamped uniform knot vector, in units of one knot span.

n control points span n - 3 equal spans; the first and last control points are the ends of the
curve. All results are NumPy constants: lengths enter as powers of the span h."""

from functools import lru_cache

import numpy as np

_ON_KNOT = 1e-9


def knots(n: int) -> np.ndarray:
    """Knot vector, shape (n + 4,), from 0 to n - 3."""
    return np.concatenate([np.zeros(3), np.arange(n - 2.0), np.full(3, n - 3.0)])


def basis(n: int, x) -> np.ndarray:
    """Values and first three derivatives of all n basis functions at `x` (k,) in [0, n - 3], shape
    (4, k, n). The third derivative jumps at interior knots, where it is the mean of both sides."""
    from scipy.interpolate import BSpline  # slow to import, and only splines need it

    x = np.atleast_1d(np.asarray(x, dtype=float))
    spline = BSpline(knots(n), np.eye(n), 3)
    smooth = [spline(x), spline.derivative(1)(x), spline.derivative(2)(x)]
    # piecewise constant, so its value is that in the middle of a span
    in_span = spline.derivative(3)(np.arange(n - 3) + 0.5)
    left = np.clip(np.ceil(x - _ON_KNOT).astype(int) - 1, 0, n - 4)
    right = np.clip(np.floor(x + _ON_KNOT).astype(int), 0, n - 4)
    return np.stack([*smooth, 0.5 * (in_span[left] + in_span[right])])


def greville(n: int) -> np.ndarray:
    """Control points of the straight line x(u) = u, shape (n,)."""
    t = knots(n)
    return (t[1 : n + 1] + t[2 : n + 2] + t[3 : n + 3]) / 3.0


def integrals(n: int) -> np.ndarray:
    """Integral of each basis function, shape (n,)."""
    t = knots(n)
    return (t[4:] - t[:n]) / 4.0


@lru_cache
def gram(n: int) -> np.ndarray:
    """Integrals of products of two basis functions, shape (n, n), exact."""
    x, w = gauss(n, 4)
    b = basis(n, x)[0]
    return np.einsum("j,ji,jk->ik", w, b, b)


def gauss(n: int, per_span: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points in each span, and weights, shape ((n - 3) per_span,) each."""
    x, w = np.polynomial.legendre.leggauss(per_span)
    spans = np.arange(n - 3.0)[:, None]
    return (spans + 0.5 + 0.5 * x).reshape(-1), np.tile(0.5 * w, n - 3)


def trapezoid(n: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Equally spaced points from end to end, and trapezoid weights, shape (points,) each."""
    step = (n - 3.0) / (points - 1)
    weights = np.full(points, step)
    weights[[0, -1]] *= 0.5
    return step * np.arange(points), weights
