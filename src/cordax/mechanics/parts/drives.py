"""Drives that set the lengths of cables: prescribed lengths, winches, or servo-controlled winches.

All classes describe n cables at once; `y`, shape (n, e), are the coordinates of a drive."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape
from ..._base.precision import float_field
from ..reference_motion import Reference, reference_field, require_position


class Drive(eqx.Module):
    """Drive that determines the unstretched length of each cable."""

    coordinates: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ()

    @property
    @abc.abstractmethod
    def n_cables(self) -> int: ...

    @abc.abstractmethod
    def length(self, t, y) -> Float[Array, " n"]:
        """Unstretched length of each cable [m], from the reference point of its exit to the
        platform."""

    def inertia(self) -> Float[Array, "n e"]:
        """Inertia of the coordinates, such as that of rotors [kg m^2]."""
        return jnp.zeros((self.n_cables, 0))

    def force(self, t, y, y_rate, u) -> Float[Array, "n e"]:
        """Generalised force on the coordinates without that of the cable; `u` inputs (n, k)."""
        return jnp.zeros_like(y)

    def start(self, t, length, rate):
        """Coordinates and rates (n, e) at which the cables have a length [m] and rate [m/s]."""
        none = jnp.zeros((self.n_cables, 0))
        return none, none


class ProgrammedLengths(Drive):
    """Prescribed lengths as functions of time, whatever force this requires: `lengths` (n,) [m] or
    a `Reference`."""

    lengths: Reference = reference_field(unit="m")

    def __check_init__(self):
        _check_lengths("lengths", self.lengths.position(0.0))

    @property
    def n_cables(self):
        return self.lengths.position(0.0).shape[0]

    def length(self, t, y):
        return self.lengths.position(t)


class _Drums(Drive):
    """Motors and drums of n cables, `l = l0 + r theta`: base class of all winches."""

    zero_length: Float[Array, " n"] = float_field(unit="m")
    radius: Float[Array, " n"] = float_field(unit="m")
    rotor_inertia: Float[Array, " n"] = float_field(unit="kg m^2")
    inputs = ("torque",)

    @property
    def n_cables(self):
        return self.zero_length.shape[0]

    def length(self, t, y):
        return self.zero_length + self.radius * y[:, 0]

    def _angles(self, length, rate):
        """Drum angles [rad] and rates [rad/s], (n,) each."""
        angle = (length - self.zero_length) / self.radius
        return angle, jnp.broadcast_to(rate / self.radius, angle.shape)


class Winches(_Drums):
    """A motor and drum for each cable, `l = l0 + r theta`: theta > 0 pays out.

    `zero_length` l0 (n,) [m]; `radius` r [m], `rotor_inertia` [kg m^2] and viscous `friction` [N m
    s] of the drum, each (n,) or one for all. Inputs are torques [N m]; the torque `-r f` holds a
    tension f."""

    friction: Float[Array, " n"] = float_field(unit="N m s", default=0.0)
    coordinates = ("theta",)

    def __check_init__(self):
        _check_winches(self)

    def inertia(self):
        return jnp.broadcast_to(self.rotor_inertia, (self.n_cables,))[:, None]

    def force(self, t, y, y_rate, u):
        return u - self._column(self.friction) * y_rate

    def start(self, t, length, rate):
        angle, angle_rate = self._angles(length, rate)
        return angle[:, None], angle_rate[:, None]

    def _column(self, x):
        return jnp.broadcast_to(x, (self.n_cables,))[:, None]


class ServoWinches(_Drums):
    """Winches with co-located PID control by their drives, in continuous time:

        tau = feedforward + u + K_p e + K_i integral(e) + K_d de/dt,    e = reference - theta

    Fields as in `Winches`, and `reference`: the desired drum angles (n,) [rad] over time; gains
    (n,) or one for all. The integral is a coordinate with the rate e, so it is integrated with the
    order of the integrator. For a sampled drive use `cordax.control.PID` with `Winches`."""

    reference: Reference = reference_field(unit="rad")  # pyright: ignore[reportGeneralTypeIssues]
    K_p: Float[Array, " n"] = float_field()
    K_i: Float[Array, " n"] = float_field(default=0.0)
    K_d: Float[Array, " n"] = float_field(default=0.0)
    feedforward: Float[Array, " n"] = float_field(unit="N m", default=0.0)
    friction: Float[Array, " n"] = float_field(unit="N m s", default=0.0)
    coordinates = ("theta", "integral")

    def __check_init__(self):
        _check_winches(self)
        for name in ("K_p", "K_i", "K_d", "feedforward"):
            require_shape(name, getattr(self, name), (), (self.n_cables,))
        for name in ("K_p", "K_i", "K_d"):
            require_positive(name, getattr(self, name), zero_allowed=True)
        require_position("reference", self.reference, (self.n_cables,))

    def inertia(self):
        rotor = jnp.broadcast_to(self.rotor_inertia, (self.n_cables,))
        return jnp.stack([rotor, jnp.ones_like(rotor)], axis=1)

    def torque(self, t, y, y_rate, u) -> Float[Array, " n"]:
        """Torque of each motor [N m]."""
        wanted, wanted_rate, _ = self.reference(t)
        pid = self.K_p * (wanted - y[:, 0]) + self.K_d * (wanted_rate - y_rate[:, 0])
        return self.feedforward + u[:, 0] + pid + self.K_i * y[:, 1]

    def force(self, t, y, y_rate, u):
        error_rate = self.reference(t)[1] - y_rate[:, 0]
        motor = self.torque(t, y, y_rate, u) - self.friction * y_rate[:, 0]
        return jnp.stack([motor, error_rate], axis=1)

    def start(self, t, length, rate):
        angle, angle_rate = self._angles(length, rate)
        error = self.reference.position(t) - angle
        none = jnp.zeros_like(angle)
        return jnp.stack([angle, none], axis=1), jnp.stack([angle_rate, error], axis=1)


def _check_winches(drive) -> None:
    n = _check_lengths("zero_length", drive.zero_length, zero_allowed=True)
    for name in ("radius", "rotor_inertia", "friction"):
        require_shape(name, getattr(drive, name), (), (n,))
    require_positive("radius", drive.radius)
    require_positive("rotor_inertia", drive.rotor_inertia)
    require_positive("friction", drive.friction, zero_allowed=True)


def _check_lengths(name: str, lengths, zero_allowed: bool = False) -> int:
    shape = jnp.shape(lengths)
    one_each = len(shape) == 1 and shape[0] > 0
    require(one_each, name, f"shape {shape}", "(n,), one per cable")
    require_positive(name, lengths, zero_allowed=zero_allowed)
    return shape[0]
