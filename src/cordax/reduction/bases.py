"""Bases of subspaces for reduced models."""

from collections.abc import Sequence

import numpy as np

from .._base.checks import require
from ..mechanics import System


def polynomial_basis(
    system: System, groups: Sequence[Sequence[int]], degree: int = 1
) -> np.ndarray:
    """Columns (n, r) that keep all coordinates but those in `groups`, lists of indices: along each
    group values are polynomials of the place in it, up to `degree`."""
    require(degree >= 0, "degree", degree, "a whole number >= 0")
    columns = _kept(system, [i for group in groups for i in group])
    for group in groups:
        x = np.linspace(-1.0, 1.0, len(group)) if len(group) > 1 else np.zeros(1)
        powers = np.polynomial.legendre.legvander(x, min(degree, len(group) - 1))
        for power in powers.T:
            column = np.zeros(system.n_q)
            column[list(group)] = power
            columns.append(column)
    return np.stack(columns, axis=1)


def axial_basis(system: System, degree: int = 1, prefix: str = "stretch_") -> np.ndarray:
    """Basis for a `RopeRobot` whose elongations vary linearly along each rope (`degree` 1); angles
    and platform are kept. This removes the fast axial waves, which cause most of the stiffness. The
    coordinates of a rope are found by name: `prefix`, rope, segment."""
    ropes: dict[str, list[int]] = {}
    for i, name in enumerate(system.coordinate_names):
        if name.startswith(prefix):
            ropes.setdefault(name.removeprefix(prefix).split("_")[0], []).append(i)
    require(bool(ropes), "prefix", prefix, "the beginning of names of coordinates")
    return polynomial_basis(system, list(ropes.values()), degree)


def pod_basis(
    system: System, snapshots, groups: Sequence[tuple[Sequence[int], int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Columns (n, r) and an origin (n,) from `snapshots` (k, n): of each group, indices and a
    number of modes, the leading singular vectors about the mean; other coordinates are kept. Groups
    are separate, so that large coordinates do not outweigh small ones of another unit."""
    x = np.asarray(snapshots, dtype=float)
    fits = x.ndim == 2 and x.shape[1] == system.n_q
    require(fits, "snapshots", f"shape {x.shape}", f"shape (k, {system.n_q})")
    origin = x.mean(axis=0)
    columns = _kept(system, [i for group, _ in groups for i in group])
    for group, modes in groups:
        most = min(len(group), len(x))
        require(1 <= modes <= most, "groups", f"{modes} modes", f"1 to {most}")
        _, _, directions = np.linalg.svd(x[:, list(group)] - origin[list(group)])
        for direction in directions[:modes]:
            column = np.zeros(system.n_q)
            column[list(group)] = direction
            columns.append(column)
    return np.stack(columns, axis=1), origin


def _kept(system: System, others) -> list[np.ndarray]:
    left = sorted(set(range(system.n_q)) - set(others))
    return list(np.eye(system.n_q)[left])
