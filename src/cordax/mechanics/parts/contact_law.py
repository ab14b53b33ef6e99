"""Contact forces: an elastic normal force with dissipation, dry friction and rolling resistance.

The same law holds for rods (per length), bodies and obstacles. Every smooth transition has a named
width."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_positive, require_values
from ..._base.precision import declare_units, float_field
from ...math.safe import safe_norm
from ...math.smooth import ramp, ramp_integral

#: ratio to `slip_speed` of the slip speed at which friction is half way between static and sliding
_STRIBECK = 10.0


class ContactLaw(eqx.Module):
    """Contact law of two surfaces. All fields are keywords.

    - `stiffness`: normal force over depth, [N/m] per contact point of bodies and [N/m^2] per length
      of rods;
    - `damping` [s/m]: a normal force N grows to N (1 + damping * approach speed) and vanishes where
      the surfaces separate faster than 1/damping (Hunt and Crossley);
    - `friction` [-]: coefficient of sliding friction;
    - `static_friction` [-]: coefficient up to which the contact sticks, `friction` unless given;
    - `slip_speed` [m/s]: friction is regularised, `friction * s / sqrt(s^2 + slip_speed^2)` for a
      sliding speed s. A contact that sticks creeps slowly: a load of a fraction r of the friction
      limit creeps with slip_speed r / sqrt(1 - r^2);
    - `width` [m]: depth over which contact sets in;
    - `rolling` [m]: lever arm of the moment that resists rolling, `rolling` times the normal force,
      none unless given."""

    stiffness: Float[Array, ""] = float_field(unit="N/m", default=1e4, kw_only=True)
    damping: Float[Array, ""] = float_field(unit="s/m", default=0.0, kw_only=True)
    friction: Float[Array, ""] = float_field(unit="-", default=0.0, kw_only=True)
    slip_speed: Float[Array, ""] = float_field(unit="m/s", default=1e-3, kw_only=True)
    width: Float[Array, ""] = float_field(unit="m", default=1e-4, kw_only=True)
    static_friction: Float[Array, ""] | None = float_field(unit="-", default=None, kw_only=True)
    rolling: Float[Array, ""] | None = float_field(unit="m", default=None, kw_only=True)

    def __check_init__(self):
        for name in ("stiffness", "slip_speed", "width"):
            require_positive(name, getattr(self, name))
        for name in ("damping", "friction", "rolling"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name), zero_allowed=True)
        if self.static_friction is not None:
            require_values(
                "static_friction",
                lambda static, sliding: static >= sliding,
                self.static_friction,
                self.friction,
                expected="at least friction",
            )

    @staticmethod
    @declare_units(load="N", depth="m")
    def from_penetration(load, depth, **fields) -> "ContactLaw":
        """Contact law whose contact points sink in by `depth` [m] under a `load` [N] each;
        `fields`: fields of `ContactLaw` except `stiffness`."""
        require_positive("load", load)
        require_positive("depth", depth)
        return ContactLaw(stiffness=load / depth, **fields)

    def elastic_energy(self, depth) -> Float[Array, "..."]:
        """Elastic energy [J], for rods per length [J/m]."""
        return self.stiffness * ramp_integral(depth, self.width)

    def pressure(self, depth, speed) -> Float[Array, "..."]:
        """Normal force [N] at a `depth` [m] and a speed of separation `speed` [m/s]."""
        press = self.stiffness * ramp(depth, self.width)
        return press * jnp.maximum(1.0 - self.damping * speed, 0.0)

    def coefficient(self, square) -> Float[Array, "..."]:
        """Coefficient of friction at a squared sliding speed [m^2/s^2]."""
        if self.static_friction is None:
            return self.friction
        fading = 1.0 / (1.0 + square / (_STRIBECK * self.slip_speed) ** 2)
        return self.friction + (self.static_friction - self.friction) * fading

    def surface_force(self, depth, normal, velocity, axis: int = -1) -> Float[Array, "..."]:
        """Force on the first surface for a unit `normal` towards it and its `velocity` relative to
        the second [m/s]. Components of vectors are along the array axis `axis`."""
        speed = jnp.sum(normal * velocity, axis=axis, keepdims=True)
        press = self.pressure(jnp.expand_dims(depth, axis), speed)
        along = velocity - normal * speed
        square = jnp.sum(along * along, axis=axis, keepdims=True)
        slip = along / jnp.sqrt(square + self.slip_speed**2)
        return press * (normal - self.coefficient(square) * slip)

    def moment(self, press, normal, spin) -> Float[Array, "... 3"] | None:
        """Moment [N m] on the first body for a normal force `press` [N] and its angular velocity
        `spin` (..., 3) [rad/s] relative to the second; None without rolling resistance."""
        if self.rolling is None:
            return None
        rolling = spin - normal * jnp.sum(normal * spin, axis=-1, keepdims=True)
        speed = self.rolling * rolling  # speed at the lever arm, comparable with `slip_speed`
        square = jnp.sum(speed * speed, axis=-1, keepdims=True)
        return -self.rolling * press[..., None] * speed / jnp.sqrt(square + self.slip_speed**2)

    def slip(self, normal, velocity) -> Float[Array, "..."]:
        """Sliding speed [m/s]."""
        along = velocity - normal * jnp.sum(normal * velocity, axis=-1, keepdims=True)
        return safe_norm(along)
