"""Strut on a universal joint (cross shaft), held by three cables from winches on the ground.

J. Lieskovsky, "Positioning of tensegrity structures" (2022), section 5.1.1. The thesis does not
specify some quantities, which are chosen here: the pulley offset (half a block, which puts the
block on the ground and the tangent point on the block's axis), the mass of the block, and the
azimuth of the first cable."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_known, require_positive, require_whole
from ..._base.precision import as_float_array, declare_units, finite_array
from ..._jax.program_cache import kept_filter_jit
from ...mechanics.state import State
from .body import Body
from .elements import JointMotors, JointSprings
from .involute import INVOLUTES, Involute
from .joints import Revolute, rotation_about
from .loops import SphericalLoop
from .mechanism import Mechanism
from .solids import cube, cylinder, point_mass
from .wound import WoundCables

# columns: axes of the pulley frame in block axes
_PULLEY_AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


class StrutGeometry(NamedTuple):
    """Dimensions of the machine: `length` of the strut, `distance` of the block axes, pulley
    `radius` and `offset` [m], `azimuths` (n,) [rad]."""

    length: Float[Array, ""]
    distance: Float[Array, ""]
    radius: Float[Array, ""]
    offset: Float[Array, ""]
    azimuths: Float[Array, " n"]


class SingleStrut(Mechanism):
    """`Mechanism` of the strut, with loop closure in closed form."""

    geometry_numbers: StrutGeometry | None = None

    @property
    def n_cables(self) -> int:
        return self._numbers.azimuths.shape[0]

    @property
    def _numbers(self) -> StrutGeometry:
        assert self.geometry_numbers is not None
        return self.geometry_numbers

    @property
    def cables(self) -> WoundCables:
        (law,) = (e for e in self.elements if isinstance(e, WoundCables))
        return law

    def state_at(self, angles=(0.0, 0.0), strain=0.0, rates=(0.0, 0.0), strain_rate=0.0) -> State:
        """State with strut angles (phi, psi) [rad], strains (n,) or one value for all, and their
        rates.

        The coordinates of blocks, pulleys and cables follow from them. Valid while the end of the
        strut stays inside the block axes."""
        each = ((), (self.n_cables,))
        return self._state(
            finite_array("angles", angles, (2,)),
            finite_array("strain", strain, *each),
            finite_array("rates", rates, (2,)),
            finite_array("strain_rate", strain_rate, *each),
        )

    @kept_filter_jit
    def _state(self, angles, strain, rates, strain_rate) -> State:
        full = lambda x: jnp.broadcast_to(x, (self.n_cables,))
        y = jnp.concatenate([angles, full(strain)])
        y_rate = jnp.concatenate([rates, full(strain_rate)])
        return State(*jax.jvp(self._closed, (y,), (y_rate,)))

    def _closed(self, y):
        """All coordinates for given (phi, psi, strains) with closed loops."""
        g = self._numbers
        phi, psi = y[0], y[1]
        end = g.length * jnp.stack(
            [jnp.sin(psi), -jnp.sin(phi) * jnp.cos(psi), jnp.cos(phi) * jnp.cos(psi)]
        )
        joints = [b.joint for b in self.bodies if isinstance(b.joint, Involute)]
        q = [phi[None], psi[None]]
        for i, (joint, strain) in enumerate(zip(joints, y[2:], strict=True)):
            c, s = jnp.cos(g.azimuths[i]), jnp.sin(g.azimuths[i])
            px, py = c * end[0] + s * end[1] - g.distance, -s * end[0] + c * end[1]
            block = jnp.arctan2(-py, -px)
            X, Z = g.offset - jnp.hypot(px, py), end[2] - g.offset
            length = jnp.sqrt(X**2 + Z**2 - g.radius**2)
            theta = jnp.arctan2(X, Z) - jnp.arctan2(g.radius, length)
            unwound = length / (g.radius * (1.0 + strain))
            q += [jnp.stack([block, theta - unwound]), joint.at_strain(unwound, strain)]
        return jnp.concatenate(q)

    def default_state(self):
        return self.state_at()

    def strut_end(self, q) -> Float[Array, " 3"]:
        """World position [m] of the end of the strut."""
        return self.position(q, "strut", jnp.stack([0.0, 0.0, self._numbers.length]))

    def presentation(self):
        shown = super().presentation()
        units = {**shown.units, "angles": "rad", "end": "m"}
        return dataclasses.replace(shown, units=units, plots=("cross", "strut", "tension"))

    def outputs(self, t, q, v, u, multipliers):
        out = super().outputs(t, q, v, u, multipliers)
        return out | {"angles": q[:2], "end": self.strut_end(q)}


@declare_units(
    modulus="Pa",
    viscosity="Pa s",
    length="m",
    diameter="m",
    pulley_radius="m",
    pulley_height="m",
    cable_radius="m",
    density="kg/m^3",
    block_mass="kg",
    cable_end_mass="kg",
    friction="N m s",
)
def single_strut(
    variant: str = "strain",
    *,
    modulus=2e9,
    viscosity=0.0,
    length=1.0,
    diameter=0.04,
    pulley_radius=0.07,
    pulley_height=0.01,
    cable_radius=1e-3,
    density=2700.0,
    distance=None,
    offset=None,
    azimuth=0.0,
    n_cables: int = 3,
    block_mass=None,
    cable_end_mass=0.0,
    friction=0.0,
    gravity=(0.0, 0.0, -9.81),
) -> SingleStrut:
    """Build the strut of the thesis, in SI units, with angles in [rad]. The inputs are pulley
    torques [N m]; positive torques tighten the cables.

    - `variant`: second coordinate of each cable, "strain", "stretch" or "length";
    - `modulus` E [Pa] and `viscosity` mu [Pa s] of the cables;
    - `distance` of the block axes (default: length minus the edge of a block, so that cables are at
      45 degrees);
    - `offset` of the pulleys (default: half a block);
    - `block_mass` [kg] (default: from the density); `cable_end_mass` [kg];
    - `friction`: viscous friction [N m s] in the two joints of the strut."""
    require_known("variant", variant, INVOLUTES)
    require_whole("n_cables", n_cables, 3)
    number = finite_array
    length, radius = number("length", length, ()), number("pulley_radius", pulley_radius, ())
    require_positive("length", length)
    require_positive("pulley_radius", radius)
    diameter, height = number("diameter", diameter, ()), number("pulley_height", pulley_height, ())
    density = number("density", density, ())
    edge = math.sqrt(2.0) * radius
    distance = length - edge if distance is None else number("distance", distance, ())
    s = 0.5 * edge if offset is None else number("offset", offset, ())
    centre = jnp.stack([-s, jnp.zeros_like(s), s])
    azimuths = number("azimuth", azimuth, ()) + 2.0 * jnp.pi / n_cables * jnp.arange(n_cables)
    strut = cylinder(
        0.5 * diameter,
        length,
        density=density,
        centre=jnp.stack([0.0, 0.0, 0.5 * length]),
    )
    bodies = [
        Body("cross", Revolute("x")),
        Body("strut", Revolute("y"), "cross", solids=strut),
    ]
    loops = []
    names = tuple(f"cable{i + 1}" for i in range(n_cables))
    pulleys = tuple(f"pulley{i + 1}" for i in range(n_cables))
    weight = {"density": density}
    if block_mass is not None:
        weight = {"mass": number("block_mass", block_mass, ())}
    for i in range(n_cables):
        place = distance * jnp.stack([jnp.cos(azimuths[i]), jnp.sin(azimuths[i]), 0.0])
        bodies += [
            Body(
                f"block{i + 1}",
                Revolute("z"),
                at=place,
                turned=rotation_about("z", azimuths[i]),
                solids=cube(edge, centre=centre, **weight),
            ),
            Body(
                pulleys[i],
                Revolute("z"),
                f"block{i + 1}",
                at=centre,
                turned=_PULLEY_AXES,
                solids=cylinder(radius, height, density=density),
            ),
            Body(
                names[i], INVOLUTES[variant](radius), pulleys[i], solids=point_mass(cable_end_mass)
            ),
        ]
        loops.append(SphericalLoop("strut", names[i], point=jnp.stack([0.0, 0.0, length])))
    area = jnp.pi * as_float_array(cable_radius, "cable_radius") ** 2
    elements = [
        WoundCables(names, modulus, viscosity, area),
        JointMotors(pulleys),
        JointSprings(("cross", "strut"), damping=friction),
    ]
    second = INVOLUTES[variant].independent
    return SingleStrut(
        bodies,
        loops,
        elements,
        gravity,
        independent=("cross", "strut", *(f"{name}_{second}" for name in names)),
        geometry_numbers=StrutGeometry(length, distance, radius, s, azimuths),
    )
