"""Two machines for teaching and testing: a mass on a spring, and a pendulum."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import known_values, require_positive
from .._base.precision import float_field
from ..mechanics import LagrangianSystem, Presentation, Scene, State
from ..mechanics.lagrangian import LagrangianStructure


class Oscillator(LagrangianSystem):
    """`mass` [kg] on a spring of `stiffness` [N/m] with a dashpot of `damping` [N s/m]; input: a
    force [N]."""

    default_integrator = "rk4"

    mass: Float[Array, ""] = float_field(unit="kg", default=1.0)
    stiffness: Float[Array, ""] = float_field(unit="N/m", default=1.0)
    damping: Float[Array, ""] = float_field(unit="N s/m", default=0.0)

    def __check_init__(self):
        require_positive("mass", self.mass)
        require_positive("stiffness", self.stiffness)
        require_positive("damping", self.damping, zero_allowed=True)

    @property
    def coordinate_names(self):
        return ("x",)

    @property
    def input_names(self):
        return ("force",)

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return self.mass[None]

    def potential_energy(self, t, q):
        return 0.5 * self.stiffness * q[0] ** 2

    def dissipation(self, q, v):
        return 0.5 * self.damping * v[0] ** 2

    def applied_force(self, t, q, v, u):
        return u

    def default_state(self):
        return State(jnp.ones(1), jnp.zeros(1))

    def structure(self):
        damping = known_values(self.damping)
        undamped = damping is None or bool((damping == 0).all())
        return _Separable(self) if undamped else super().structure()


class Pendulum(LagrangianSystem):
    """A point `mass` [kg] on a massless rod of `length` [m], angle counter-clockwise from hanging
    [rad]; input: a torque [N m]."""

    default_integrator = "rk4"

    mass: Float[Array, ""] = float_field(unit="kg", default=1.0)
    length: Float[Array, ""] = float_field(unit="m", default=1.0)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)

    def __check_init__(self):
        require_positive("mass", self.mass)
        require_positive("length", self.length)

    @property
    def coordinate_names(self):
        return ("angle",)

    @property
    def input_names(self):
        return ("torque",)

    def inertial_coordinates(self, q):
        return self.length * jnp.stack([jnp.sin(q[0]), -jnp.cos(q[0])])

    def inertial_weights(self):
        return jnp.stack([self.mass, self.mass])

    def potential_energy(self, t, q):
        return -self.mass * self.gravity * self.length * jnp.cos(q[0])

    def applied_force(self, t, q, v, u):
        return u

    def presentation(self):
        return Presentation(geometry=self.geometry)

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        tip = self.inertial_coordinates(q)
        return Scene({"bar": jnp.stack([jnp.zeros(2), tip])[None]}, {"mass": tip[None]})

    def default_state(self):
        return State(jnp.ones(1), jnp.zeros(1))

    def structure(self):
        return _Separable(self)


class _Separable(LagrangianStructure):
    """Structure of a machine with constant mass matrix and without damping."""

    @property
    def separable(self):
        return True
