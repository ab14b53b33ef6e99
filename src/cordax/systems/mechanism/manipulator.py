"""Tensegrity manipulator: three struts with winches at both ends, six cables, and an end effector
on three links.

J. Lieskovsky, "Positioning of tensegrity structures" (2022), section 5.1.2. Where the thesis is
incomplete or contradictory, this model uses: universal joints at the feet (spherical ones would
give 15 degrees of freedom), links on hinges at the end effector, blocks of 2Q x 3h x Q on the strut
axes."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    require_known,
    require_positive,
    require_values,
)
from ..._base.precision import declare_units, finite_array
from ...mechanics.state import State
from .assembly import assemble
from .body import Body
from .elements import JointMotors, JointSprings
from .involute import INVOLUTES, Involute
from .joints import Floating, Revolute, rotation_about
from .loops import SphericalLoop
from .mechanism import Mechanism
from .solids import box, cylinder, point_mass, tube
from .wound import WoundCables

# columns: axes of the pulley frame in block axes
_PULLEY_AXES = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
_UPSIDE_DOWN = np.diag([1.0, -1.0, -1.0])
_SIDES = ("top", "bot")


class TensegrityManipulator(Mechanism):
    """`Mechanism` of the manipulator that can close its loops from strut angles and strains."""

    @property
    def cables(self) -> WoundCables:
        (law,) = (e for e in self.elements if isinstance(e, WoundCables))
        return law

    @property
    def strut_angles(self) -> tuple[str, ...]:
        return tuple(f"{part}{i + 1}" for i in range(3) for part in ("dummy", "strut"))

    def state_at(self, angles, strain=0.0, guess=None) -> State:
        """State at rest with strut angles (6,) [rad] and strains (6,) or one value for all. The
        loops are closed by iteration from `guess`, by default the nominal prism."""
        guess = self.default_state().q if guess is None else guess
        q = np.array(finite_array("guess", guess, (self.n_q,)), float)
        angles = np.asarray(finite_array("angles", angles, (6,)), float)
        strain = np.asarray(finite_array("strain", strain, (), (6,)), float)
        require_values("strain", lambda x: x > -1.0, strain, expected="above -1")
        tree = self.tree
        where, _ = tree.scalars(self.strut_angles, "angles")
        q[where] = angles
        q = np.array(assemble(self, q, self.independent))
        # Closed loops determine the point at which a cable leaves its pulley, and its length.
        # Turning the pulley then changes only the strain.
        for name, value in zip(self.cables.cables, np.broadcast_to(strain, (6,)), strict=True):
            body = self.bodies[tree.body(name)]
            rows, pulley = tree.coordinates(name), tree.coordinates(body.parent)
            joint = body.joint
            assert isinstance(joint, Involute)
            cable = joint.cable(jnp.asarray(q[rows]), jnp.zeros(2))
            unwound = float(cable.rest + cable.stretch) / (float(joint.radius) * (1.0 + value))
            q[pulley] += q[rows.start] - unwound
            q[rows] = np.asarray(joint.at_strain(jnp.asarray(unwound), jnp.asarray(value)))
        return State(jnp.asarray(q), jnp.zeros(self.n_v))

    def coordinates(self, q) -> Float[Array, " 12"]:
        """Strut angles (6,) [rad] and strains (6,) at coordinates `q`."""
        where, _ = self.tree.scalars(self.strut_angles, "angles")
        at = self.instant(jnp.zeros(()), q, jnp.zeros(self.n_v, q.dtype))
        return jnp.concatenate([q[where], self.cables.state(at).strain])

    def presentation(self):
        shown = super().presentation()
        cables = tuple(name.removeprefix("cable_") for name in self.cables.cables)
        return dataclasses.replace(
            shown,
            units={**shown.units, "end_effector": "m"},
            components={"end_effector": ("x", "y", "z"), "strain": cables, "tension": cables},
            plots=("end_effector", *self.strut_angles[:2], "strain"),
        )

    def outputs(self, t, q, v, u, multipliers):
        out = super().outputs(t, q, v, u, multipliers)
        return out | {"end_effector": q[4:7], "coordinates": self.coordinates(q)}


@declare_units(
    modulus="Pa",
    viscosity="Pa s",
    length="m",
    pulley_radius="m",
    pulley_height="m",
    outer_diameter="m",
    inner_diameter="m",
    cable_radius="m",
    density="kg/m^3",
    cable_end_mass="kg",
    link_density="kg/m^3",
    friction="N m s",
    gravity="m/s^2",
)
def tensegrity_manipulator(
    variant: str = "strain",
    *,
    modulus=2e9,
    viscosity=1e7,
    length=1.0,
    pulley_radius=0.05,
    pulley_height=0.01,
    outer_diameter=0.035,
    inner_diameter=0.032,
    cable_radius=1e-3,
    density=2700.0,
    azimuth=0.0,
    cable_end_mass=0.0,
    link_density=0.0,
    friction=0.0,
    gravity=(0.0, 0.0, -9.81),
) -> TensegrityManipulator:
    """Build the manipulator of the thesis, in SI units. The inputs are the torques [N m] of six
    pulleys; positive torques tighten the cables.

    `variant`: second coordinate of each cable; `modulus` E [Pa] and `viscosity` mu [Pa s] of the
    cables; `link_density` [kg/m^3]: links are tubes like the struts; `friction`: viscous friction
    [N m s] in each of the six strut coordinates."""
    require_known("variant", variant, INVOLUTES)
    l = finite_array("length", length, ())
    density = finite_array("density", density, ())
    r = finite_array("pulley_radius", pulley_radius, ())
    h = finite_array("pulley_height", pulley_height, ())
    for name, value in (("length", l), ("pulley_radius", r), ("pulley_height", h)):
        require_positive(name, value)
    a, Q = l / math.sqrt(2.0), math.sqrt(2.0) * r
    height = a * (1.0 + math.sqrt(2.0 / 3.0))
    azimuths = [finite_array("azimuth", azimuth, ()) + 2.0 * math.pi / 3.0 * i for i in range(3)]
    nodes = [_around(angle, a / math.sqrt(3.0)) for angle in azimuths]
    half = (
        0.5 * finite_array("outer_diameter", outer_diameter, ()),
        0.5 * finite_array("inner_diameter", inner_diameter, ()),
    )
    strut = tube(*half, l, density=density, centre=_up(0.5 * l))
    end, zero = _up(l), jnp.zeros_like(l)
    block = box(jnp.stack([2.0 * Q, 3.0 * h, Q]), density=density, centre=_up(0.5 * Q))
    pulley = cylinder(r, 2.0 * h, density=density)
    ends = point_mass(cable_end_mass)
    start = jnp.concatenate([jnp.array([1.0, 0.0, 0.0, 0.0]), _up(height)])
    bodies = [Body("ee", Floating(), start=start)]
    loops, links, cables, pulleys = [], [], [], []
    tilt = rotation_about("y", math.asin(math.sqrt(2.0 / 3.0)))
    # a massless link is a frame without solids
    weighs = not (isinstance(link_density, (int, float)) and link_density == 0)
    for i in range(3):
        turn = rotation_about("z", azimuths[i])
        middle = jnp.stack([0.5 * a, zero, zero])
        solid = tube(*half, a, density=link_density, centre=middle, axis="x") if weighs else ()
        bodies.append(Body(f"link{i + 1}", Revolute("y"), "ee", turned=turn @ tilt, solids=solid))
        before = f"strut{(i - 1) % 3 + 1}"
        links.append(SphericalLoop(before, f"link{i + 1}", end, jnp.stack([a, zero, zero])))
    # in the nominal prism all cables have the length a and leave their pulleys at 45 degrees
    unwound = a / r
    for i in range(3):
        foot, head = nodes[i], nodes[(i + 1) % 3] + _up(a)
        z = (head - foot) / l
        x = _unit(jnp.stack([z[1], -z[0], zero]))
        outward = jnp.where(jnp.sum(x * (foot + nodes[(i + 1) % 3])) > 0, 1.0, -1.0) * x
        axes = jnp.stack([outward, jnp.cross(z, outward), z], axis=1)
        bodies += [
            Body(f"dummy{i + 1}", Revolute("x"), at=foot, turned=axes),
            Body(f"strut{i + 1}", Revolute("y"), f"dummy{i + 1}", solids=strut),
        ]
        for side in _SIDES:
            name = f"{side}{i + 1}"
            top = side == "top"
            bodies += [
                Body(
                    f"block_{name}",
                    Revolute("z"),
                    f"strut{i + 1}",
                    at=end if top else jnp.zeros(3),
                    turned=_UPSIDE_DOWN if top else np.eye(3),
                    solids=block,
                    start=[-0.5 * math.pi if top else 0.5 * math.pi],
                ),
                Body(
                    f"pulley_{name}",
                    Revolute("z"),
                    f"block_{name}",
                    at=jnp.stack([0.5 * Q, zero, 0.5 * Q]),
                    turned=_PULLEY_AXES,
                    solids=pulley,
                    start=(math.pi / 4.0 - unwound)[None],
                ),
                Body(
                    f"cable_{name}",
                    INVOLUTES[variant](r),
                    f"pulley_{name}",
                    solids=ends,
                    start=INVOLUTES[variant](r).at_strain(unwound, zero),
                ),
            ]
            cables.append(f"cable_{name}")
            pulleys.append(f"pulley_{name}")
            before = f"strut{(i - 1) % 3 + 1}"
            loops.append(SphericalLoop(before, f"cable_{name}", point=end))
    area = jnp.pi * finite_array("cable_radius", cable_radius, ()) ** 2
    angles = tuple(f"{part}{i + 1}" for i in range(3) for part in ("dummy", "strut"))
    elements = [
        WoundCables(cables, modulus, viscosity, area),
        JointMotors(pulleys),
        JointSprings(angles, damping=friction),
    ]
    second = INVOLUTES[variant].independent
    return TensegrityManipulator(
        bodies,
        [*loops, *links],
        elements,
        gravity,
        independent=(*angles, *(f"{name}_{second}" for name in cables)),
    )


def _up(z):
    return jnp.stack([jnp.zeros_like(z), jnp.zeros_like(z), z])


def _around(angle, radius):
    return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)])


def _unit(x):
    return x / jnp.sqrt(jnp.sum(x * x))
