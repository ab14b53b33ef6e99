"""Reduced-order models of machines."""

from .bases import axial_basis, pod_basis, polynomial_basis
from .piecewise import PiecewiseLinear, piecewise_linear, select_snapshots
from .subspace import Subspace

__all__ = [
    "PiecewiseLinear",
    "Subspace",
    "axial_basis",
    "piecewise_linear",
    "pod_basis",
    "polynomial_basis",
    "select_snapshots",
]
