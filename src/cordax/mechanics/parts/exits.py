"""Exit points, where cables leave the frame: the free length from an exit to the platform.

All classes describe n cables at once. An exit may have coordinates `y`, shape (n, e): the swivel
angle of a pulley with inertia, or the position of a carriage. Models 1 to 3 are those of Piva,
Richiedei and Trevisani (2024), section 4, with eq. (22) corrected (2 r/x inside the root) in an
equivalent form without a singularity at psi = pi."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape, require_values
from ..._base.precision import float_field
from ...math.safe import safe_arctan2, safe_norm, safe_sqrt
from ..reference_motion import Reference, reference_field
from ..scene import Bodies
from .pulley_drawing import wheels


class Exit(eqx.Module):
    """Exits of n cables. `points`: exit points, shape (n, 3) [m], or a `Reference` for them."""

    points: eqx.AbstractVar[Reference]
    #: names of the coordinates of the exit of each cable
    coordinates: ClassVar[tuple[str, ...]] = ()
    #: names of the inputs of the exit of each cable
    inputs: ClassVar[tuple[str, ...]] = ()

    @property
    def n_cables(self) -> int:
        return self.points.position(0.0).shape[0]

    @abc.abstractmethod
    def length(self, t, b, y) -> Float[Array, " n"]:
        """Cable length [m] from the drum side of the exit to the points `b` (n, 3) [m]."""

    @abc.abstractmethod
    def reach(self, t, b, y) -> Float[Array, " n"]:
        """Quantity [m^2] that is positive if `length` is defined."""

    def inertia(self) -> Float[Array, "n e"]:
        """Inertia of the coordinates."""
        return jnp.zeros((self.n_cables, 0))

    def force(self, t, y, y_rate, u) -> Float[Array, "n e"]:
        """Generalised force on the coordinates without that of the cable; `u` inputs (n, k)."""
        return jnp.zeros_like(y)

    def energy(self, t, y) -> Float[Array, " n"]:
        """Energy [J] stored in the springs that hold the coordinates."""
        return jnp.zeros(y.shape[0], y.dtype)

    def start(self, t, b, b_rate):
        """Initial coordinates and rates (n, e) for platform points `b` with velocities `b_rate`."""
        none = jnp.zeros((b.shape[0], 0), b.dtype)
        return none, none

    def path(self, t, b, y, count: int) -> Float[Array, "n k 3"]:
        """Points along each cable, for drawing."""
        return jnp.stack([self.points.position(t), b], axis=1)

    def wheels(self, t, b, y) -> Bodies | None:
        """Pulleys for drawing, turned by the length of cable that has run over them."""
        return None


class PointExit(Exit):
    """Model 1: an eyelet at each exit point."""

    points: Reference = reference_field(unit="m")

    def __check_init__(self):
        _check_points(self.points)

    def length(self, t, b, y):
        return safe_norm(b - self.points.position(t))

    def reach(self, t, b, y):
        delta = b - self.points.position(t)
        return jnp.sum(delta * delta, axis=1)


class PulleyExit(Exit):
    """Model 2: a pulley of `radius` (n,) [m] that swivels about an `axis` (3,) or (n, 3) through
    `points`. The cable arrives along this axis. The pulley has no inertia, so it always faces the
    platform. The default axis is the vertical, with the cable from below."""

    points: Reference = reference_field(unit="m")
    radius: Float[Array, " n"] = float_field(unit="m")
    axis: Float[Array, "..."] | None = float_field(default=None)

    def __check_init__(self):
        n = _check_points(self.points)
        require_shape("radius", self.radius, (), (n,))
        require_positive("radius", self.radius)
        _check_axis(self.axis, n)

    def _delta(self, t, b):
        return _along_axis(b - self.points.position(t), self.axis)

    def length(self, t, b, y):
        delta = self._delta(t, b)
        return over_pulley(safe_norm(delta[:, :2]), delta[:, 2], self.radius)

    def reach(self, t, b, y):
        delta = self._delta(t, b)
        return tangent_square(safe_norm(delta[:, :2]), delta[:, 2], self.radius)

    def swivel(self, t, b) -> Float[Array, " n"]:
        """Swivel angle of each pulley about its axis [rad], measured from the world's x axis after
        the rotation that turns the vertical into the pulley axis."""
        delta = self._delta(t, b)
        return safe_arctan2(delta[:, 1], delta[:, 0])

    def path(self, t, b, y, count):
        d = self.points.position(t)
        return _drawn_path(d, b, self.swivel(t, b), self.radius, count, self.axis)

    def wheels(self, t, b, y):
        d, length = self.points.position(t), self.length(t, b, y)
        return _drawn_wheels(d, self.swivel(t, b), self.radius, length, self.axis)


class SwivelPulleyExit(Exit):
    """Model 3: a pulley of `radius` (n,) [m] whose swivel angle is a coordinate with `inertia` (n,)
    [kg m^2] and viscous `damping` (n,) [N m s]. The cable turns the pulley when it leaves the plane
    of the pulley. `axis` as in `PulleyExit`."""

    points: Reference = reference_field(unit="m")
    radius: Float[Array, " n"] = float_field(unit="m")
    pulley_inertia: Float[Array, " n"] = float_field(unit="kg m^2")
    damping: Float[Array, " n"] = float_field(unit="N m s", default=0.0)
    axis: Float[Array, "..."] | None = float_field(default=None)
    coordinates = ("swivel",)

    def __check_init__(self):
        n = _check_points(self.points)
        _check_axis(self.axis, n)
        for name in ("radius", "pulley_inertia", "damping"):
            require_shape(name, getattr(self, name), (), (n,))
        require_positive("radius", self.radius)
        require_positive("pulley_inertia", self.pulley_inertia)
        require_positive("damping", self.damping, zero_allowed=True)

    def _in_pulley_axes(self, t, b, y):
        delta = _along_axis(b - self.points.position(t), self.axis)
        c, s = jnp.cos(y[:, 0]), jnp.sin(y[:, 0])
        along = delta[:, 0] * c + delta[:, 1] * s
        across = delta[:, 1] * c - delta[:, 0] * s
        return along, delta[:, 2], across

    def length(self, t, b, y):
        along, up, across = self._in_pulley_axes(t, b, y)
        return over_pulley(along, up, self.radius, across)

    def reach(self, t, b, y):
        along, up, _ = self._in_pulley_axes(t, b, y)
        return tangent_square(along, up, self.radius)

    def inertia(self):
        return jnp.broadcast_to(self.pulley_inertia, (self.n_cables,))[:, None]

    def force(self, t, y, y_rate, u):
        return -jnp.broadcast_to(self.damping, (self.n_cables,))[:, None] * y_rate

    def start(self, t, b, b_rate):
        d, d_rate, _ = self.points(t)
        delta, rate = (_along_axis(x, self.axis) for x in (b - d, b_rate - d_rate))
        turning = delta[:, 0] * rate[:, 1] - delta[:, 1] * rate[:, 0]
        square = jnp.sum(delta[:, :2] ** 2, axis=1)
        return (
            safe_arctan2(delta[:, 1], delta[:, 0])[:, None],
            (turning / jnp.where(square > 0, square, 1.0))[:, None],
        )

    def path(self, t, b, y, count):
        return _drawn_path(self.points.position(t), b, y[:, 0], self.radius, count, self.axis)

    def wheels(self, t, b, y):
        d, length = self.points.position(t), self.length(t, b, y)
        return _drawn_wheels(d, y[:, 0], self.radius, length, self.axis)


class CarriageExit(Exit):
    """An eyelet on a carriage with a `mass` (n,) [kg], held at `points` by a spring
    (`stiffness` (n,) [N/m]) and a damper (`damping` (n,) [N s/m]) in all directions, and driven by
    input forces: a compliant frame, or exits moved by actuators. The guides of the carriage carry
    its weight."""

    points: Reference = reference_field(unit="m")
    mass: Float[Array, " n"] = float_field(unit="kg")
    stiffness: Float[Array, " n"] = float_field(unit="N/m", default=0.0)
    damping: Float[Array, " n"] = float_field(unit="N s/m", default=0.0)
    coordinates = ("exit_x", "exit_y", "exit_z")
    inputs = ("exit_force_x", "exit_force_y", "exit_force_z")

    def __check_init__(self):
        n = _check_points(self.points)
        for name in ("mass", "stiffness", "damping"):
            require_shape(name, getattr(self, name), (), (n,))
        require_positive("mass", self.mass)
        require_positive("stiffness", self.stiffness, zero_allowed=True)
        require_positive("damping", self.damping, zero_allowed=True)

    def length(self, t, b, y):
        return safe_norm(b - y)

    def reach(self, t, b, y):
        return jnp.sum((b - y) ** 2, axis=1)

    def inertia(self):
        return jnp.broadcast_to(jnp.atleast_1d(self.mass)[:, None], (self.n_cables, 3))

    def force(self, t, y, y_rate, u):
        place, rate, _ = self.points(t)
        k, c = (jnp.atleast_1d(x)[:, None] for x in (self.stiffness, self.damping))
        return u - k * (y - place) - c * (y_rate - rate)

    def energy(self, t, y):
        moved = y - self.points.position(t)
        return 0.5 * self.stiffness * jnp.sum(moved * moved, axis=1)

    def start(self, t, b, b_rate):
        place, rate, _ = self.points(t)
        return place, rate

    def path(self, t, b, y, count):
        return jnp.stack([y, b], axis=1)


def tangent_square(along, up, radius):
    return (along - radius) ** 2 + up**2 - radius**2


def over_pulley(along, up, radius, across=None):
    """Cable length, arc plus straight part, from the vertical tangent of a pulley over its rim to a
    point at (along, up) in its plane, or at a distance `across` from the plane."""
    h = safe_sqrt(tangent_square(along, up, radius))
    straight = h if across is None else safe_sqrt(h * h + across * across)
    return straight + radius * _wrapped(along - radius, up, h, radius)


def _wrapped(x, up, h, radius):
    """Wrap angle pi - psi of a cable on its pulley, psi = atan2(up, x) + atan2(h, r), computed by
    one arc tangent, because arc tangents are slow; between -pi/2 and 3 pi/2."""
    return 0.5 * jnp.pi + jnp.arctan2(x * radius - up * h, up * radius + x * h)


def _drawn_path(d, b, swivel, radius, count, axis=None):
    """Points of the arc on the pulley and the end of the straight part at the platform."""
    if axis is not None:
        local = _drawn_path(jnp.zeros_like(d), _along_axis(b - d, axis), swivel, radius, count)
        return d[:, None] + jnp.sum(local[..., None] * _frames(axis)[:, None], axis=-2)
    radius = jnp.broadcast_to(radius, (d.shape[0],))
    zero = jnp.zeros_like(swivel)
    s = jnp.stack([jnp.cos(swivel), jnp.sin(swivel), zero], axis=1)
    along, up = jnp.sum((b - d) * s, axis=1), b[:, 2] - d[:, 2]
    h = safe_sqrt(tangent_square(along, up, radius))
    wrapped = _wrapped(along - radius, up, h, radius)
    angle = jnp.pi - jnp.linspace(0.0, 1.0, count - 1)[:, None] * wrapped
    z = jnp.array([0.0, 0.0, 1.0])
    n = jnp.cos(angle)[..., None] * s + jnp.sin(angle)[..., None] * z
    arc = d + radius[:, None] * (s + n)
    return jnp.concatenate([arc, b[None]]).transpose(1, 0, 2)


def _drawn_wheels(d, swivel, radius, length, axis=None) -> Bodies:
    """Pulleys for drawing. On the side where the cable arrives, the rim moves along the axis as
    the cable is paid out."""
    x, y, z = exit_frames(axis, d.shape[0])
    along = jnp.cos(swivel)[:, None] * x + jnp.sin(swivel)[:, None] * y
    reach = jnp.broadcast_to(radius, swivel.shape)
    return wheels(d + reach[:, None] * along, along, -z, length / reach, reach)


def exit_frames(axis, n: int) -> Float[Array, "3 n 3"]:
    """Frame of each exit: two directions perpendicular to the axis, and the axis; the vertical if
    None."""
    frames = jnp.eye(3)[None] if axis is None else _frames(axis)
    return jnp.broadcast_to(frames, (n, 3, 3)).transpose(1, 0, 2)


def _frames(axis) -> Float[Array, "k 3 3"]:
    """World axes, as rows, after the smallest rotation that turns the vertical into each axis
    (k, 3); a half turn about x if an axis points down."""
    a = jnp.atleast_2d(axis)
    x, y, z = (a / jnp.sqrt(jnp.sum(a * a, axis=1, keepdims=True))).T
    down = 1.0 + z < 1e-12
    share = 1.0 / jnp.where(down, 1.0, 1.0 + z)
    first = jnp.stack([1.0 - x * x * share, -x * y * share, -x], axis=1)
    second = jnp.stack([-x * y * share, 1.0 - y * y * share, -y], axis=1)
    second = jnp.where(down[:, None], jnp.array([0.0, -1.0, 0.0]), second)
    first = jnp.where(down[:, None], jnp.array([1.0, 0.0, 0.0]), first)
    return jnp.stack([first, second, jnp.stack([x, y, z], axis=1)], axis=1)


def _along_axis(delta, axis):
    """Vectors (n, 3) in frames whose third axis is the axis of their pulley."""
    return delta if axis is None else jnp.sum(_frames(axis) * delta[:, None, :], axis=2)


def _check_axis(axis, n: int) -> None:
    if axis is None:
        return
    require_shape("axis", axis, (3,), (n, 3))
    somewhere = lambda axis: (axis * axis).sum(-1) > 0
    require_values("axis", somewhere, axis, expected="a direction, not zero")


def _check_points(points: Reference) -> int:
    shape = jax.eval_shape(points.position, 0.0).shape
    fits = len(shape) == 2 and shape[1] == 3 and shape[0] > 0
    require(fits, "points", f"shape {shape}", "(n, 3), one exit point per cable")
    return shape[0]
