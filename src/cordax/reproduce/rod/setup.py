"""The rods and the loads of the study."""

import equinox as eqx

from ..._precision import as_float_array
from ...systems import End, SplineRod

#: of the paper: length, diameter [m], end springs [N/m], steps of its runs and of its grids [s],
#: duration [s]
LENGTH, DIAMETER = 2.0, 2e-3
SPRING = 1e4
STEP, GRID_STEP, DURATION = 2e-3, 8e-4, 10.0
#: not in the paper: aluminium, E [Pa]; and modulus [Pa] and end springs [N/m] with which 2 ms is
#: the largest stable round step of the paper's method
ALUMINIUM = 69e9
SOFT, SOFT_SPRING = 2.5e6, 50.0
#: not in the paper: amplitude [N], 30 % of the weight, and frequency [Hz] of the force along y
FORCE, FREQUENCY = 0.05, 1.0
#: of the forces applied: gravity alone, and with the push at the middle
AMPLITUDE = {"gravity": 0.0, "forced": FORCE}


def soft_rod(control_points: int = 9, samples: int = 101, torsion_width: float = 1.0) -> SplineRod:
    """The paper's rod with a modulus that makes its steps stable. A torsion width of 0 [1/m] is the
    strain as printed, which rods refuse."""
    rod = _rod(SOFT, SOFT_SPRING, control_points, samples, torsion_width or 1.0)
    return eqx.tree_at(lambda r: r.torsion_width, rod, as_float_array(torsion_width))


def aluminium_rod(control_points: int = 9, samples: int = 101) -> SplineRod:
    """The paper's rod of the paper's material."""
    return _rod(ALUMINIUM, SPRING, control_points, samples, 1.0)


def _rod(young: float, spring: float, points: int, samples: int, width: float) -> SplineRod:
    end = End.sliding(spring)
    return SplineRod(
        LENGTH,
        DIAMETER,
        young=young,
        left=end,
        right=end,
        control_points=points,
        quadrature=("trap", samples),
        torsion_width=as_float_array(width),
        loads=(0.5,),
    )
