"""The rods and the loads of the study."""

import dataclasses
import functools

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.fields import flag_field
from ..._base.precision import as_float_array, float_field
from ...mechanics import Controller
from ...systems import End, SplineRod
from ...systems.rod.structure import SplineStructure

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
#: a control point further away than this has left the machine [m]
FAR = 5.0


class StudiedRod(SplineRod):
    """A rod whose runs end where it leaves the machine, and at any step.

    - `printed`: whether the strain is the one printed, whose torsion has no width."""

    printed: bool = flag_field(default=False)

    @property
    def elasticity(self):
        usual = super().elasticity
        return usual._replace(torsion_width=0.0 * usual.torsion_width) if self.printed else usual

    def valid(self, t, q, v):
        return jnp.max(jnp.abs(self.control(t, q)[:3])) < FAR

    def structure(self):
        return UnwarnedStructure(self)


class UnwarnedStructure(SplineStructure):
    """Steps above the stability limit are part of the study and cause no warnings."""

    def fastest_frequency(self):
        return None


class Push(Controller):
    """The force along y at the middle: `amplitude` [N], zero for gravity alone."""

    amplitude: Float[Array, ""] = float_field(unit="N")

    def __call__(self, t, state, memory):
        force = self.amplitude * jnp.sin(2.0 * jnp.pi * FREQUENCY * t)
        return jnp.zeros(3, force.dtype).at[1].set(force), memory


@functools.cache
def push_of(load: str) -> Push:
    """Of one of `AMPLITUDE`."""
    return Push(AMPLITUDE[load])


def soft_rod(control_points: int = 9, samples: int = 101, torsion_width: float = 1.0) -> StudiedRod:
    """The paper's rod with a modulus that makes its steps stable. A torsion width of 0 [1/m] is the
    strain as printed."""
    rod = _rod(SOFT, SOFT_SPRING, control_points, samples, torsion_width or 1.0)
    return rod if torsion_width > 0 else dataclasses.replace(rod, printed=True)


def aluminium_rod(control_points: int = 9, samples: int = 101) -> StudiedRod:
    """The paper's rod of the paper's material."""
    return _rod(ALUMINIUM, SPRING, control_points, samples, 1.0)


def _rod(young: float, spring: float, points: int, samples: int, width: float) -> StudiedRod:
    end = End.sliding(spring)
    return StudiedRod(
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
