"""Dry friction with internal states, in joints and along paths between points."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_shape
from ..._base.fields import name_field, names_field, part_field
from ..._base.precision import float_field
from ...math.safe import safe_unit
from ...mechanics.parts.friction import FrictionLaw
from .elements import Effort, Element, _InJoints, points, wrenches


class StickingFriction(_InJoints):
    """Friction with memory in `joints` (swivels and drums included), according to `law`: torques
    [N m], or forces [N] on sliders.

    Each joint adds a state. Half of its square is the energy stored by the friction, which is part
    of the kinetic energy of a trajectory."""

    joints: tuple[str, ...] = names_field()
    law: FrictionLaw = part_field()

    @property
    def state_names(self):
        return tuple(f"stick_{name}" for name in self.joints)

    @property
    def output_names(self):
        return tuple(f"friction_{name}" for name in self.joints)

    def effort(self, at, u):
        _, v = self.at_joints(at)
        rates, force = self.law(at.states, v)
        return self.on_joints(at, -force)._replace(state_rates=rates)

    def outputs(self, at, u):
        """Friction torque [N m] or force [N] that opposes the rate of each joint."""
        _, v = self.at_joints(at)
        _, force = self.law(at.states, v)
        return {name: force[i] for i, name in enumerate(self.output_names)}


class PathFriction(Element):
    """Friction with memory, according to `law`, that opposes changes of the length of a path. The
    path has straight spans between `points` (k, 3) [m] of `bodies` (k), in body axes: two points
    for a strain rate, more for a cable that slides through guides. `name` is part of the names of
    the state and the output [N]."""

    name: str = name_field()
    bodies: tuple[str, ...] = names_field()
    points: Float[Array, "k 3"] = float_field(unit="m")
    law: FrictionLaw = part_field()

    def __check_init__(self):
        k = len(self.bodies)
        require(k >= 2, "bodies", self.bodies, "at least two")
        require_shape("points", self.points, (k, 3))

    def check(self, tree):
        for body in self.bodies:
            tree.body(body, "PathFriction: bodies")

    @property
    def state_names(self):
        return (f"stick_{self.name}",)

    @property
    def output_names(self):
        return (f"friction_{self.name}",)

    def _slip(self, at):
        """World points (k, 3), unit vectors (k - 1, 3) of the spans, and the rate of the path
        length."""
        x, dx = points(at, self.bodies, self.points)
        along = safe_unit(jnp.diff(x, axis=0))
        return x, along, jnp.sum(along * jnp.diff(dx, axis=0))

    def effort(self, at, u):
        x, along, rate = self._slip(at)
        rates, tension = self.law(at.states, rate[None])
        end = jnp.zeros((1, 3), x.dtype)
        pull = tension[0] * (jnp.concatenate([along, end]) - jnp.concatenate([end, along]))
        return Effort(wrenches=wrenches(at.tree, self.bodies, x, pull), state_rates=rates)

    def outputs(self, at, u):
        _, _, rate = self._slip(at)
        return {self.output_names[0]: self.law(at.states, rate[None])[1][0]}
