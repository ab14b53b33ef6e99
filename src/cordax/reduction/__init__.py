"""Reduced models: machines that stand in for larger ones."""

from .bases import axial_basis, pod_basis, polynomial_basis
from .piecewise import PiecewiseLinear, far_apart, piecewise_linear
from .subspace import Subspace

__all__ = [
    "PiecewiseLinear",
    "Subspace",
    "axial_basis",
    "far_apart",
    "piecewise_linear",
    "pod_basis",
    "polynomial_basis",
]
