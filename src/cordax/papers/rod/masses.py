"""Frequencies of the straight rod for four interpretations of its mass matrix in the paper, of
which only one describes a rod."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...integrators import ForestRuth4
from ...math import bsplines
from ...systems import SplineRod


class Spectrum(NamedTuple):
    """Angular frequencies [rad/s] of the fastest axial, bending and twisting modes, of the slowest
    bending mode, and of the end springs on a rod without stiffness. `falls`: smallest and largest
    acceleration of a free control point under gravity alone, in g."""

    axial: float
    bending: float
    twist: float
    first_bending: float
    springs: float
    falls: tuple[float, float]

    @property
    def limit(self) -> float:
        """Largest stable step of the paper's method [s]."""
        return ForestRuth4.traits.oscillator_limit / max(self.axial, self.bending, self.twist)

    @property
    def springs_limit(self) -> float:
        """Largest stable step of the paper's method for the springs alone [s]."""
        return ForestRuth4.traits.oscillator_limit / self.springs


#: mass matrices (n, n) per unit density, for n control points, knot spans of length h and rod
#: length L
MASSES: dict[str, Callable[[int, float, float], np.ndarray]] = {
    "Gram matrix": lambda n, h, L: h * bsplines.gram(n),
    "its row sums": lambda n, h, L: h * np.diag(bsplines.gram(n).sum(axis=1)),
    "eq. (13): J": lambda n, h, L: np.eye(n),
    "eqs. (14)-(17): J L": lambda n, h, L: L * np.eye(n),
}


def spectrum(rod: SplineRod, reading: str) -> Spectrum:
    """Frequencies of the straight rod with one of the `MASSES`."""
    n, h, H = rod.control_points, float(rod.span), rod.elasticity
    mu, polar = (float(x) for x in rod.line_density)
    mass = MASSES[reading](n, h, float(rod.length))
    x, w = bsplines.gauss(n, 4)
    _, first, second, _ = bsplines.basis(n, x)
    stretch, bend = (first.T * w) @ first / h, (second.T * w) @ second / h**3
    springs = np.zeros((n, n))
    springs[0, 0], springs[-1, -1] = float(rod.left.stiffness[0]), float(rod.right.stiffness[0])

    def frequencies(K, density: float, component: int) -> np.ndarray:
        free = np.ix_(rod.layout.free[component], rod.layout.free[component])
        values = np.linalg.eigvals(np.linalg.solve(density * mass[free], K[free]))
        return np.sqrt(np.sort(np.abs(values)))

    bending = frequencies(float(H.bending) * bend, mu, 2)
    fall = np.linalg.solve(mass, h * bsplines.integrals(n))
    return Spectrum(
        float(frequencies(float(H.stretch) * stretch + springs, mu, 0)[-1]),
        float(bending[-1]),
        float(frequencies(float(H.twist) * stretch, polar, 3)[-1]),
        float(bending[0]),
        float(frequencies(springs, mu, 0)[-1]),
        (float(fall.min()), float(fall.max())),
    )
