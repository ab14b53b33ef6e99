"""Forces in joints and between points: springs, dampers, friction, limits, motors.

An element acts on any number of joints or bodies of the same kind, which are given by name."""

import operator
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._base.checks import require, require_positive, require_shape, require_values
from ..._base.fields import name_field, names_field
from ..._base.precision import float_field
from ..._jax.constant_gather import add_at, take
from ...math.safe import safe_norm, safe_unit
from ...math.smooth import ramp, ramp_integral
from ...mechanics.contacts import Contacts, spread_law
from ...mechanics.parts.contact_law import ContactLaw
from .kinematics import Motions, cross, groups
from .tree import Tree


class Instant(NamedTuple):
    """Instant of a run at which elements are evaluated: time, coordinates, velocities, states and
    motions of the bodies."""

    tree: Tree
    t: Float[Array, ""]
    q: Float[Array, " n_q"]
    v: Float[Array, " n_v"]
    #: first-order states of the element (k,), None if it has none
    states: Float[Array, " k"] | None
    motions: Motions
    joints: tuple = ()
    gravity: Float[Array, " 3"] | None = None

    def joints_of(self, bodies: Sequence[str]):
        """Stacked joints of the named bodies, which must all be of the same kind."""
        index = [self.tree.body(name) for name in bodies]
        for group, stacked in zip(groups(self.tree), self.joints, strict=True):
            if index[0] in group:
                place = np.array([int(np.flatnonzero(group == i)[0]) for i in index])
                whole = np.array_equal(place, np.arange(len(group)))
                return stacked if whole else jax.tree.map(operator.itemgetter(place), stacked)
        raise AssertionError("every body has a joint")


class Effort(NamedTuple):
    """Joint forces (n_v,), wrenches `[moment about the world's origin; force]` (N, 6) on the
    bodies, and rates of the element's states (k,); each None if absent."""

    joint: Float[Array, " n_v"] | None = None
    wrenches: Float[Array, "N 6"] | None = None
    state_rates: Float[Array, " k"] | None = None


class Element(eqx.Module):
    """Force element: a part of a mechanism that exerts forces."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs of the element."""
        return ()

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs of the element; no other part of the mechanism may use them."""
        return ()

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the first-order states of the element, such as muscle activations."""
        return ()

    @property
    def has_inertia(self) -> bool:
        """Whether `inertia` returns a matrix."""
        return False

    def check(self, tree: Tree) -> None:
        """Raise if a name does not exist in the mechanism."""

    def effort(self, at: Instant, u) -> Effort:
        """Forces at an instant with inputs `u`, in the order of `input_names`."""
        raise NotImplementedError

    def inertia(self, at: Instant) -> Float[Array, "n_v n_v"] | None:
        """Contribution of the element to the mass matrix of the joints, which depends on poses
        only; None if there is none."""
        return None

    def energy(self, at: Instant):
        """Potential energy [J], zero if the element stores none."""
        return jnp.zeros((), at.q.dtype)

    def lines(self, at: Instant) -> dict[str, Float[Array, "n k 3"]]:
        """Polylines to draw, by kind, in world axes [m]."""
        return {}

    def outputs(self, at: Instant, u) -> dict[str, Float[Array, "..."]]:
        """Outputs of the element by name, in SI units."""
        return {}

    def warnings(self, outputs) -> dict[str, Bool[Array, "..."]]:
        """Warnings by name, computed from `outputs`: true where the element leaves its valid
        range."""
        return {}

    def alarms(self, at: Instant) -> dict[str, Bool[Array, "..."]]:
        """`warnings` at one instant, evaluated in every step."""
        return {}


class Inert(Element):
    """Inertia and states of an `element`, without its forces."""

    element: Element

    @property
    def state_names(self):
        return self.element.state_names

    @property
    def has_inertia(self):
        return self.element.has_inertia

    def effort(self, at, u):
        none = jnp.zeros(len(self.state_names), at.q.dtype)
        return Effort(state_rates=none if self.state_names else None)

    def inertia(self, at):
        return self.element.inertia(at)


def as_names(names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class _InJoints(Element):
    """Element that acts on scalar joint coordinates with the names `joints`."""

    joints: eqx.AbstractVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]] = ()

    def __check_init__(self):
        for name in self.numbers:
            require_shape(name, getattr(self, name), (), (len(self.joints),))

    def check(self, tree):
        tree.scalars(self.joints, f"{type(self).__name__}: joints")

    def at_joints(self, at: Instant):
        q, v = at.tree.scalars(self.joints, "joints")
        return take(at.q, q), take(at.v, v)

    def on_joints(self, at: Instant, torque) -> Effort:
        _, v = at.tree.scalars(self.joints, "joints")
        return Effort(joint=spread(v, at.tree.n_v, torque))


def spread(index, size: int, values):
    """Add values (k,) at the indices of a vector (size,), without a scatter operation."""
    return add_at(values, index, size)


class JointMotors(_InJoints):
    """Motors on joint coordinates. The inputs are torques [N m] (forces [N] on sliders)."""

    joints: tuple[str, ...] = names_field()

    @property
    def input_names(self):
        return tuple(f"torque_{name}" for name in self.joints)

    def effort(self, at, u):
        return self.on_joints(at, u)


class JointSpeeds(_InJoints):
    """Speed-controlled drives on joint coordinates. The inputs are speeds [rad/s] ([m/s] on
    sliders).

    A drive exerts the torque `gain (u - rate)` [N m] with `gain` [N m s], smoothly limited to
    `most` [N m] unless that is None. Each has shape (k,) or is one value for all."""

    joints: tuple[str, ...] = names_field()
    gain: Float[Array, " k"] = float_field(unit="N m s")
    most: Float[Array, " k"] | None = float_field(unit="N m", default=None)
    numbers = ("gain",)

    def __check_init__(self):
        require_positive("gain", self.gain)
        if self.most is not None:
            require_shape("most", self.most, (), (len(self.joints),))
            require_positive("most", self.most)

    @property
    def input_names(self):
        return tuple(f"speed_{name}" for name in self.joints)

    def effort(self, at, u):
        _, v = self.at_joints(at)
        torque = self.gain * (u - v)
        if self.most is not None:
            torque = self.most * jnp.tanh(torque / self.most)
        return self.on_joints(at, torque)


class JointLoads(_InJoints):
    """Constant torques [N m] (forces [N] on sliders), shape (k,) or one value for all."""

    joints: tuple[str, ...] = names_field()
    torque: Float[Array, " k"] = float_field()
    numbers = ("torque",)

    def effort(self, at, u):
        return self.on_joints(at, jnp.broadcast_to(self.torque, (len(self.joints),)))


class JointSprings(_InJoints):
    """Springs and dampers `-stiffness (q - rest) - damping dq/dt` on joint coordinates; each
    parameter has shape (k,) or is one value for all."""

    joints: tuple[str, ...] = names_field()
    stiffness: Float[Array, " k"] = float_field(default=0.0)
    rest: Float[Array, " k"] = float_field(default=0.0)
    damping: Float[Array, " k"] = float_field(default=0.0)
    numbers = ("stiffness", "rest", "damping")

    def __check_init__(self):
        require_positive("stiffness", self.stiffness, zero_allowed=True)
        require_positive("damping", self.damping, zero_allowed=True)

    def effort(self, at, u):
        q, v = self.at_joints(at)
        return self.on_joints(at, -self.stiffness * (q - self.rest) - self.damping * v)

    def energy(self, at):
        q, _ = self.at_joints(at)
        return 0.5 * jnp.sum(self.stiffness * (q - self.rest) ** 2)


class JointFriction(_InJoints):
    """Dry friction `-torque tanh(rate/width)` in joints. It has its full value at rates well above
    `width`."""

    joints: tuple[str, ...] = names_field()
    torque: Float[Array, " k"] = float_field()
    width: Float[Array, " k"] = float_field(default=1e-2)
    numbers = ("torque", "width")

    def __check_init__(self):
        require_positive("width", self.width)
        require_positive("torque", self.torque, zero_allowed=True)

    def effort(self, at, u):
        _, v = self.at_joints(at)
        return self.on_joints(at, -self.torque * jnp.tanh(v / self.width))


class JointLimits(_InJoints):
    """End stops of joints at `low` and `high`: springs of a `stiffness` that only push, smoothed
    over a `width` (in coordinate units), with `damping` where they push."""

    joints: tuple[str, ...] = names_field()
    low: Float[Array, " k"] = float_field()
    high: Float[Array, " k"] = float_field()
    stiffness: Float[Array, " k"] = float_field()
    damping: Float[Array, " k"] = float_field(default=0.0)
    width: Float[Array, ""] = float_field(default=1e-3)
    numbers = ("low", "high", "stiffness", "damping")

    def __check_init__(self):
        require_positive("width", self.width)
        require_positive("stiffness", self.stiffness, zero_allowed=True)
        require_positive("damping", self.damping, zero_allowed=True)
        ordered = lambda low, high: low <= high
        require_values("low", ordered, self.low, self.high, expected="values of at most high")

    def effort(self, at, u):
        q, v = self.at_joints(at)
        over, under = q - self.high, self.low - q
        push = ramp(under, self.width) - ramp(over, self.width)
        near = jax.nn.sigmoid(under / self.width) + jax.nn.sigmoid(over / self.width)
        return self.on_joints(at, self.stiffness * push - self.damping * near * v)

    def energy(self, at):
        q, _ = self.at_joints(at)
        stored = ramp_integral(q - self.high, self.width) + ramp_integral(self.low - q, self.width)
        return jnp.sum(self.stiffness * stored)

    def contacts(self, at: Instant) -> Contacts:
        """End stops as contacts, all lower stops first."""
        (q, _), (_, places) = self.at_joints(at), at.tree.scalars(self.joints, "joints")
        k = len(self.joints)
        gap = jnp.concatenate([q - self.low, self.high - q])
        rates = np.zeros((2 * k, 3, at.tree.n_v))
        rates[np.arange(2 * k), 0, np.tile(places, 2)] = np.repeat([1.0, -1.0], k)
        normal = np.tile([1.0, 0.0, 0.0], (2 * k, 1))
        law = ContactLaw(width=self.width)
        twice = lambda x: jnp.tile(jnp.broadcast_to(x, (k,)), 2)
        law = eqx.tree_at(lambda law: law.stiffness, spread_law(law, 2 * k), twice(self.stiffness))
        viscosity = twice(self.damping) * jax.nn.sigmoid(-gap / self.width)
        exact = lambda x: jnp.asarray(x, q.dtype)
        return Contacts(gap, exact(normal), exact(rates), None, law, viscosity)


class PointSpring(Element):
    """Spring and damper along the line between two points, which pulls and pushes:
    `stiffness` [N/m], `rest_length` [m], `damping` [N s/m]."""

    first: str = name_field()
    second: str = name_field()
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    second_point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    stiffness: Float[Array, ""] = float_field(unit="N/m", default=0.0)
    rest_length: Float[Array, ""] = float_field(unit="m", default=0.0)
    damping: Float[Array, ""] = float_field(unit="N s/m", default=0.0)

    def __check_init__(self):
        require_shape("point", self.point, (3,))
        require_shape("second_point", self.second_point, (3,))
        for name in ("stiffness", "rest_length", "damping"):
            require_positive(name, getattr(self, name), zero_allowed=True)
        require(self.first != self.second, "second", repr(self.second), "another body")

    def check(self, tree):
        tree.body(self.first, "PointSpring: first")
        tree.body(self.second, "PointSpring: second")

    def _ends(self, at: Instant):
        return points(at, (self.first, self.second), jnp.stack([self.point, self.second_point]))

    def effort(self, at, u):
        x, x_rate = self._ends(at)
        gap = x[1] - x[0]
        along = safe_unit(gap)
        stretch_rate = jnp.sum(along * (x_rate[1] - x_rate[0]))
        tension = self.stiffness * (safe_norm(gap) - self.rest_length) + self.damping * stretch_rate
        pull = tension * along
        return Effort(
            wrenches=wrenches(at.tree, (self.first, self.second), x, jnp.stack([pull, -pull]))
        )

    def energy(self, at):
        x, _ = self._ends(at)
        return 0.5 * self.stiffness * (safe_norm(x[1] - x[0]) - self.rest_length) ** 2


def points(at: Instant, bodies: Sequence[str], local):
    """World positions and velocities (k, 3) of points (k, 3) of bodies, which may include
    "world"."""
    index = np.array([at.tree.body(name) for name in bodies])
    poses = at.motions.poses
    R = jnp.concatenate([poses.R, jnp.eye(3, dtype=local.dtype)[None]])[index]
    p = jnp.concatenate([poses.p, jnp.zeros((1, 3), local.dtype)])[index]
    V = jnp.concatenate([at.motions.V, jnp.zeros((1, 6), local.dtype)])[index]
    x = p + jnp.sum(R * local[:, None, :], axis=2)
    return x, V[:, 3:] + cross(V[:, :3], x)


def wrenches(tree: Tree, bodies: Sequence[str], x, force) -> Float[Array, "N 6"]:
    """Wrenches (N, 6) on the bodies from forces (k, 3) [N] at world points (k, 3)."""
    index = np.array([tree.body(name) for name in bodies])
    each = jnp.concatenate([cross(x, force), force], axis=1)
    return add_at(each, index, tree.n_bodies)
