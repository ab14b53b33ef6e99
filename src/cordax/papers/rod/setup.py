"""Rods and loads of the study."""

import dataclasses
import functools

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.fields import flag_field
from ..._base.precision import as_float_array, float_field
from ...mechanics import Controller
from ...systems import End, SplineRod
from ...systems.rod.structure import SplineStructure

#: values of the paper: length and diameter [m], end springs [N/m], steps of its runs and of its
#: grids [s], duration [s]
LENGTH, DIAMETER = 2.0, 2e-3
SPRING = 1e4
STEP, GRID_STEP, DURATION = 2e-3, 8e-4, 10.0
#: values that are not in the paper: modulus of aluminium [Pa]; modulus [Pa] and end springs [N/m]
#: with which 2 ms is the largest round step at which the paper's method is stable
ALUMINIUM = 69e9
SOFT, SOFT_SPRING = 2.5e6, 50.0
#: values that are not in the paper: amplitude [N], 30 % of the weight, and frequency [Hz] of the
#: force along y
FORCE, FREQUENCY = 0.05, 1.0
#: amplitude of the applied force by load: gravity alone, and gravity with a force at the middle
AMPLITUDE = {"gravity": 0.0, "forced": FORCE}
#: distance [m] of a control point beyond which the run has failed
FAR = 5.0


class StudiedRod(SplineRod):
    """A rod that can run with any step and whose runs end if a control point is farther away than
    `FAR`.

    - `printed`: whether the strain is that printed in the paper, whose torsion has no width."""

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
    """Structure without warnings of steps above the stability limit, which are part of the
    study."""

    def fastest_frequency(self):
        return None


class Push(Controller):
    """Force along y at the middle of the rod: `amplitude` [N], zero for gravity alone."""

    amplitude: Float[Array, ""] = float_field(unit="N")

    def __call__(self, t, state, memory):
        force = self.amplitude * jnp.sin(2.0 * jnp.pi * FREQUENCY * t)
        return jnp.zeros(3, force.dtype).at[1].set(force), memory


@functools.cache
def push_of(load: str) -> Push:
    """Force of one of the loads in `AMPLITUDE`."""
    return Push(AMPLITUDE[load])


def soft_rod(control_points: int = 9, samples: int = 101, torsion_width: float = 1.0) -> StudiedRod:
    """Rod of the paper with a modulus with which the steps of the paper are stable. A torsion width
    of 0 [1/m] is the strain as printed."""
    rod = _rod(SOFT, SOFT_SPRING, control_points, samples, torsion_width or 1.0)
    return rod if torsion_width > 0 else dataclasses.replace(rod, printed=True)


def aluminium_rod(control_points: int = 9, samples: int = 101) -> StudiedRod:
    """Rod of the paper with the material of the paper, aluminium."""
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
