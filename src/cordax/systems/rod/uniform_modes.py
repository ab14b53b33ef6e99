"""Vibration frequencies of the straight rod, computed from its parameters alone."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from ..._base.checks import known_values
from ...math import bsplines
from .quadrature import nodes

if TYPE_CHECKING:
    from .spline_rod import SplineRod


def fastest_straight(rod: "SplineRod") -> float | None:
    """Highest angular frequency [rad/s] of the straight rod; None if a parameter is traced."""
    H, densities = rod.elasticity, rod.densities()
    numbers = (H, rod.span, densities, rod.left, rod.right)
    leaves = jax.tree.leaves(eqx.filter(numbers, eqx.is_array))
    if any(known_values(x) is None for x in leaves):
        return None
    h = float(rod.span)
    J = np.asarray(densities) * h
    x, w = nodes(rod.control_points, rod.quadrature)
    _, b1, b2, _ = bsplines.basis(rod.control_points, x)
    stretch = (b1.T * w) @ b1 / h
    bend = (b2.T * w) @ b2 / h**3
    blocks = [H.stretch * stretch, H.bending * bend, H.bending * bend, H.twist * stretch]
    fastest = 0.0
    for c, (K, free) in enumerate(zip(blocks, rod.layout.free, strict=True)):
        K = np.asarray(K).copy()
        if c < 3:
            K[0, 0] += float(rod.left.stiffness[c])
            K[-1, -1] += float(rod.right.stiffness[c])
        values = np.linalg.eigvals(rod.layout.gram_inverses[c] @ K[np.ix_(free, free)]) / J[c]
        fastest = max(fastest, float(np.sqrt(np.max(np.real(values)))))
    return fastest
