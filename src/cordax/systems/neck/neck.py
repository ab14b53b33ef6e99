"""Planar neck of stacked X-joints that are pulled by tendons.

N. J. S. Testard, C. Chevallereau, P. Wenger, "Comparison of explicit and implicit numerical
integrations for a tendon-driven robot", CableCon 2023, doi 10.1007/978-3-031-32322-5_19. Symbols
follow that paper: alpha joint angles, theta motor angles, b and L bar lengths, h and s joint height
and half difference of its sides, B tendon travel per motor angle, J_l = dl/dalpha.

Joint j is a crossed four-bar linkage: base bar and top bar of length b, two diagonals of length L.
The top bar of joint j is the base of joint j + 1. With `t(x) = (cos x, sin x)`, `n(x) = (-sin x,
cos x)`, Theta_j = alpha_1 + ... + alpha_j and mid_j = Theta_{j-1} + alpha_j/2,

    h = sqrt(L^2 - b^2 cos^2(alpha/2)),  s = b sin(alpha/2),  sides h - s (left) and h + s (right)
    P_j = P_{j-1} + h_j n(mid_j)                                         centre of top bar j
    P_{j-1} + (h_j + s_j)/2 n(mid_j),  P_{j-1} + (h_j - s_j)/2 n(mid_j)  centres of the diagonals

This module defines the neck by its energies; `closed_form` contains the same equations in closed
form, for speed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    describe,
    require_finite,
    require_one_or_each,
    require_positive,
    require_shape,
    require_values,
    require_whole,
)
from ..._base.fields import flag_field, part_field
from ..._base.precision import as_float_array, float_field
from ..._jax.materialise import materialise
from ...math.linalg import matvec
from ...math.trigonometry import sincos
from ...mechanics import LagrangianSystem, Presentation, State
from ...mechanics.lagrangian import LagrangianStructure
from ...mechanics.presentation import tension_range
from . import closed_form as closed
from .drawing import geometry
from .tendons import ElasticTendon, Motors, RigidTendon, Routing

#: a tendon counts as pushing when its tension is below minus this value [N], which is above the
#: rounding error of length times stiffness and below any relevant tension
PUSH = 1e-3


class Bars(eqx.Module):
    """Bars of the joints: uniform slender rods.

    `width` b [m] of base and top bars, one number; `diagonal` L [m], `top_mass` and `diagonal_mass`
    [kg] of each bar: one number, or one per joint from the bottom."""

    width: Float[Array, ""] = float_field(unit="m", checked=False)
    diagonal: Float[Array, "..."] = float_field(unit="m", checked=False)
    top_mass: Float[Array, "..."] = float_field(unit="kg", checked=False)
    diagonal_mass: Float[Array, "..."] = float_field(unit="kg", checked=False)

    def __check_init__(self):
        require_shape("bars.width", self.width, ())
        for name in ("width", "diagonal", "top_mass", "diagonal_mass"):
            require_one_or_each(f"bars.{name}", getattr(self, name))
            require_positive(f"bars.{name}", getattr(self, name))
        shorter = f"less than bars.diagonal = {describe(self.diagonal)}"
        sizes = self.width, self.diagonal
        require_values("bars.width", lambda b, L: b < L, *sizes, expected=shorter)


class Springs(eqx.Module):
    """Springs along both sides of every joint: `stiffness` [N/m] and `rest_length` [m], one number
    each or one per joint."""

    stiffness: Float[Array, "..."] = float_field(unit="N/m", checked=False)
    rest_length: Float[Array, "..."] = float_field(unit="m", checked=False)

    def __check_init__(self):
        for name in ("stiffness", "rest_length"):
            require_one_or_each(f"springs.{name}", getattr(self, name))
            require_positive(f"springs.{name}", getattr(self, name), zero_allowed=True)


class Neck(LagrangianSystem):
    """Planar stack of X-joints with springs, tendons and motors. Start from `Neck.default(3)`.

    `routing` has one column per joint and one row per tendon; each tendon has one motor.
    Coordinates: joint angles alpha, then, with elastic tendons, motor angles theta [rad]. Inputs:
    motor torques [N m]; a pulling motor has a negative torque. `gravity` [m/s^2] pulls along -y:
    positive for an upright neck, negative for a hanging one. `pivot_friction` [N m s/rad] acts in
    each of the four pivots of a joint. `closed_form=False` derives the equations from the energies
    instead of using their closed form."""

    bars: Bars = part_field()
    springs: Springs = part_field()
    motors: Motors = part_field()
    tendon: ElasticTendon | RigidTendon = part_field()
    routing: Routing = part_field()
    pivot_friction: Float[Array, ""] = float_field(unit="N m s/rad", checked=False, default=0.0)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", checked=False, default=9.81)
    closed_form: bool = flag_field(default=True)

    default_integrator = "linearly_implicit_euler"
    default_dt = 2e-3

    def __check_init__(self):
        n, k = self.n_joints, self.n_tendons
        for field, value, size in (
            ("bars.diagonal", self.bars.diagonal, n),
            ("bars.top_mass", self.bars.top_mass, n),
            ("bars.diagonal_mass", self.bars.diagonal_mass, n),
            ("springs.stiffness", self.springs.stiffness, n),
            ("springs.rest_length", self.springs.rest_length, n),
            ("motors.inertia", self.motors.inertia, k),
            ("motors.drum_radius", self.motors.drum_radius, k),
            ("motors.gear_ratio", self.motors.gear_ratio, k),
            ("motors.dry_friction", self.motors.dry_friction, k),
            ("motors.friction_slope", self.motors.friction_slope, k),
        ):
            require_shape(field, value, (), (size,))
        if isinstance(self.tendon, ElasticTendon):
            require_shape("tendon.stiffness", self.tendon.stiffness, (), (k,))
            require_shape("tendon.damping", self.tendon.damping, (), (k,))
        require_shape("pivot_friction", self.pivot_friction, ())
        require_positive("pivot_friction", self.pivot_friction, zero_allowed=True)
        require_shape("gravity", self.gravity, ())
        require_finite("gravity", self.gravity)

    @classmethod
    def default(
        cls,
        joints: int = 3,
        *,
        tendon: ElasticTendon | RigidTendon | None = None,
        routing: str | Routing = "single",
        closed_form: bool = True,
    ) -> "Neck":
        """Robot of the paper (3 or 4 joints; other numbers of joints keep its proportions), by
        default with elastic tendons.

        The rotor inertia is not given in the paper.
        """
        require_whole("joints", joints, 1)
        stiffness = {3: [600.0, 600.0, 200.0], 4: [800.0, 600.0, 200.0, 200.0]}
        graded = np.linspace(200.0 * joints, 200.0, joints)
        return cls(
            bars=Bars(width=0.05, diagonal=0.1, top_mass=0.032, diagonal_mass=0.064),
            springs=Springs(stiffness=stiffness.get(joints, graded), rest_length=0.046),
            motors=Motors(
                inertia=5e-5,
                drum_radius=0.02,
                gear_ratio=25.0,
                dry_friction=0.008,
                friction_slope=0.5,
            ),
            tendon=ElasticTendon(stiffness=1e5, damping=100.0) if tendon is None else tendon,
            routing=Routing.named(routing, joints) if isinstance(routing, str) else routing,
            pivot_friction=1e-3,
            closed_form=closed_form,
        )

    # --- sizes and names
    @property
    def n_joints(self) -> int:
        return self.routing.left.shape[1]

    @property
    def n_tendons(self) -> int:
        return self.routing.left.shape[0]

    @property
    def elastic(self) -> bool:
        return isinstance(self.tendon, ElasticTendon)

    @property
    def coordinate_names(self):
        joints = tuple(f"alpha_{j + 1}" for j in range(self.n_joints))
        motors = tuple(f"theta_{k + 1}" for k in range(self.n_tendons))
        return joints + motors if self.elastic else joints

    @property
    def input_names(self):
        return tuple(f"torque_{k + 1}" for k in range(self.n_tendons))

    def presentation(self):
        angles = dict.fromkeys(("alpha", "theta", "motor_position", "tip_angle"), "rad")
        return Presentation(
            units=angles | {"elongation": "m", "tip_position": "m"},
            components={"tip_position": ("x", "y")},
            summary=_summary,
            geometry=self.geometry,
            warnings=_pushes,
            alarms=self._alarms if self.elastic and self.closed_form else None,
        )

    def split(self, x):
        """Split a coordinate or velocity vector into joint part and motor part; the latter is empty
        with rigid tendons."""
        return x[: self.n_joints], x[self.n_joints :]

    # --- geometry
    def joint_shape(self, alpha):
        """Height h and half side difference s of each joint [m], shape (n_joints,) each."""
        sine, cosine = materialise(sincos(0.5 * alpha))
        b = self.bars.width
        return jnp.sqrt(self.bars.diagonal**2 - b * b * cosine * cosine), b * sine

    def centres(self, alpha):
        """Centres of the top bars, of diagonals AD and of diagonals BC [m]: three arrays of shape
        (2, n_joints)."""
        h, s = self.joint_shape(alpha)
        sine, cosine = materialise(sincos(matvec(closed.MID(self.n_joints), alpha)))
        n = jnp.stack([-sine, cosine])
        links = materialise(h * n)
        below = jnp.sum(
            links[:, None, :] * np.tril(np.ones((self.n_joints, self.n_joints)), -1), axis=2
        )
        return below + links, below + 0.5 * (h + s) * n, below + 0.5 * (h - s) * n

    def tendon_length(self, alpha):
        """Length of each tendon relative to its length at alpha = 0 [m], shape (n_tendons,)."""
        h, s = self.joint_shape(alpha)
        h0 = jnp.sqrt(self.bars.diagonal**2 - self.bars.width**2)
        return matvec(self.routing.left, h - s - h0) + matvec(self.routing.right, h + s - h0)

    def motor_angle(self, q):
        """Motor angles theta [rad], shape (n_tendons,): coordinates with elastic tendons, a
        function of the joint angles with rigid ones."""
        alpha, theta = self.split(q)
        return theta if self.elastic else self.tendon_length(alpha) / self.motors.travel

    def elongation(self, q):
        """Stretch of each tendon [m], shape (n_tendons,)."""
        alpha, theta = self.split(q)
        return self.tendon_length(alpha) - self.motors.travel * theta

    # --- energies
    def inertial_coordinates(self, q):
        alpha, _ = self.split(q)
        top, ad, bc = self.centres(alpha)
        angle = matvec(np.tril(np.ones((self.n_joints, self.n_joints))), alpha)
        # angle of diagonal AD to the base bar: alpha/2 + beta with beta = arccos(b/L cos(alpha/2));
        # angle of BC: alpha/2 + pi - beta
        _, cosine = sincos(0.5 * alpha)
        beta = jnp.arccos(self.bars.width / self.bars.diagonal * cosine)
        middle = angle - 0.5 * alpha
        return {
            "centres": (top, ad, bc),
            "angles": (angle, middle + beta, middle - beta),
            "motors": self.motor_angle(q),
        }

    def inertial_weights(self):
        n = self.n_joints
        m_t = jnp.broadcast_to(self.bars.top_mass, (n,))
        m_d = jnp.broadcast_to(self.bars.diagonal_mass, (n,))
        inertia_t = m_t * self.bars.width**2 / 12.0
        inertia_d = m_d * self.bars.diagonal**2 / 12.0
        return {
            "centres": (m_t, m_d, m_d),
            "angles": (inertia_t, inertia_d, inertia_d),
            "motors": jnp.broadcast_to(self.motors.inertia, (self.n_tendons,)),
        }

    def potential_energy(self, t, q):
        alpha, _ = self.split(q)
        top, ad, bc = self.centres(alpha)
        h, s = self.joint_shape(alpha)
        weight = jnp.sum(self.bars.top_mass * top[1] + self.bars.diagonal_mass * (ad[1] + bc[1]))
        k, rest = self.springs.stiffness, self.springs.rest_length
        spring = 0.5 * jnp.sum(k * ((h - s - rest) ** 2 + (h + s - rest) ** 2))
        energy = self.gravity * weight + spring
        if isinstance(self.tendon, ElasticTendon):
            energy = energy + 0.5 * jnp.sum(self.tendon.stiffness * self.elongation(q) ** 2)
        return energy

    def dissipation(self, q, v):
        alpha, rate = self.split(q)[0], self.split(v)[0]
        h, s = self.joint_shape(alpha)
        # the four pivots of a joint turn at phi', psi', -psi', -phi' times the joint rate, phi' =
        # (h + s)/2h, psi' = (h - s)/2h
        pivots = 0.5 * self.pivot_friction * jnp.sum((1.0 + (s / h) ** 2) * rate**2)
        if not self.elastic:
            return pivots
        stretching = jax.jvp(self.elongation, (q,), (v,))[1]
        return pivots + 0.5 * jnp.sum(self.tendon.damping * stretching**2)  # pyright: ignore

    def applied_force(self, t, q, v, u):
        return self._motor_torque_to_force(q, u)

    def held(self, t, q, v):
        """Dry friction torque in the motors [N m], shape (n_tendons,)."""
        return -self.motors.friction_torque(self.motor_rate(q, v))

    def held_force(self, t, q, held):
        return (
            closed.motor_force(self, q, held)
            if self.closed_form
            else self._motor_torque_to_force(q, held)
        )

    def motor_rate(self, q, v):
        """Motor rates d(theta)/dt [rad/s], shape (n_tendons,)."""
        if self.elastic:
            return self.split(v)[1]
        return (
            closed.rigid_motor_rate(self, q, v)
            if self.closed_form
            else jax.jvp(self.motor_angle, (q,), (v,))[1]
        )

    def _motor_torque_to_force(self, q, torque):
        return jax.vjp(self.motor_angle, q)[1](torque)[0]

    # --- equations in closed form
    def mass_matrix(self, q):
        return closed.mass_matrix(self, q) if self.closed_form else super().mass_matrix(q)

    def force(self, t, q, v, u):
        return closed.force(self, q, v, u) if self.closed_form else super().force(t, q, v, u)

    def structure(self):
        return NeckStructure(self) if self.closed_form else super().structure()

    # --- outputs and drawing
    def tension(self, t, q, v, u):
        """Tension of each tendon [N], shape (n_tendons,); with rigid tendons it follows from the
        equation of motion of the motor."""
        if isinstance(self.tendon, ElasticTendon):
            stretching = jax.jvp(self.elongation, (q,), (v,))[1]
            return self.tendon.stiffness * self.elongation(q) + self.tendon.damping * stretching
        first = lambda q: jax.jvp(self.motor_angle, (q,), (v,))[1]
        a = self.structure().acceleration(t, q, v, u)
        rotor = jax.jvp(self.motor_angle, (q,), (a,))[1] + jax.jvp(first, (q,), (v,))[1]
        return (self.motors.inertia * rotor - u - self.held(t, q, v)) / self.motors.travel

    def outputs(self, t, q, v, u, multipliers):
        alpha, _ = self.split(q)
        top, _, _ = self.centres(alpha)
        elongation = self.elongation(q) if self.elastic else jnp.zeros(self.n_tendons, q.dtype)
        return {
            "tension": self.tension(t, q, v, u),
            "elongation": elongation,
            "motor_position": self.motor_angle(q),
            "tip_position": top[:, -1],
            "tip_angle": jnp.sum(alpha),
        }

    def _alarms(self, t, q, v, u, multipliers):
        return _pushes({"tension": closed.tension(self, q, v)})

    def valid(self, t, q, v):
        """Whether every |alpha| < pi: at pi a joint folds flat and the linkage is singular."""
        return jnp.max(jnp.abs(self.split(q)[0])) < jnp.pi

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        return geometry(self, q)

    def default_state(self):
        """State upright at rest; elastic tendons carry 20 N each."""
        return self.state_at(jnp.zeros(self.n_joints), tension=jnp.full(self.n_tendons, 20.0))

    def state_at(self, alpha, rate=None, tension=None) -> State:
        """State with joint angles `alpha` and rates `rate`, shape (n_joints,). Elastic tendons have
        the given tensions [N], shape (n_tendons,), and their motors move with the joints."""
        alpha = as_float_array(alpha, "alpha")
        rate = jnp.zeros_like(alpha) if rate is None else as_float_array(rate, "rate")
        for name, x in (("alpha", alpha), ("rate", rate)):
            require_shape(name, x, (self.n_joints,))
            require_finite(name, x)
        if not isinstance(self.tendon, ElasticTendon):
            return State(alpha, rate)
        tension = (
            jnp.zeros(self.n_tendons, alpha.dtype)
            if tension is None
            else as_float_array(tension, "tension")
        )
        require_shape("tension", tension, (self.n_tendons,))
        require_finite("tension", tension)
        length, speed = jax.jvp(self.tendon_length, (alpha,), (rate,))
        theta = (length - tension / self.tendon.stiffness) / self.motors.travel
        return State(
            jnp.concatenate([alpha, theta]), jnp.concatenate([rate, speed / self.motors.travel])
        )

    # --- for controllers: the structure without tendons
    def joint_torque(self, alpha, rate, acceleration):
        """Joint torque that the tendons must produce for this motion [N m], shape (n_joints,): M_s
        a + c_s + g + pivot friction."""
        return closed.joint_torque(self, alpha, rate, acceleration)

    def length_derivatives(self, alpha):
        """Derivatives of the tendon lengths: J_l = dl/dalpha [m/rad] and H = d^2 l/dalpha^2
        [m/rad^2], shape (n_tendons, n_joints) each (the Hessian is diagonal)."""
        return closed.length_derivatives(self, alpha)


class NeckStructure(LagrangianStructure):
    """Structure of a neck in closed form."""

    system: Neck

    def acceleration(self, t, q, v, u):
        return closed.acceleration(self.system, q, v, u, self.system.held(t, q, v))

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        neck = self.system
        if not hold and not neck.elastic:
            return super().linearise(
                t, q, v, u, acceleration=acceleration, multipliers=multipliers, hold=hold
            )
        held = lambda v: neck.held(t, q, v)
        # the friction of a motor depends only on the rate of the same motor
        drag = None if hold else -jax.jvp(held, (v,), (jnp.ones_like(v),))[1]
        return closed.linearise(neck, q, v, u, held(v), acceleration, drag)


def _summary(run) -> dict[str, str]:
    lines = tension_range(run)
    stretch = 1e3 * np.asarray(run.outputs["elongation"])
    if np.any(stretch):
        lines["elongation"] = f"{stretch.min():.3f} to {stretch.max():.3f} mm"
    x, y = np.asarray(run.outputs["tip_position"])[-1]
    return lines | {"tip at the end": f"x = {x:.4f} m, y = {y:.4f} m"}


def _pushes(outputs) -> dict[str, Array]:
    return {"tendon_in_compression": outputs["tension"] < -PUSH}
