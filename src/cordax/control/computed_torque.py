"""Computed-torque control of tendon-driven machines."""

from typing import Literal, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require, require_known, require_positive, require_shape
from .._base.fields import part_field, setting_field
from .._base.precision import float_field
from .._base.results import Result, code_unless
from .._jax.program_cache import kept_filter_jit
from ..math.linalg import matvec
from ..mechanics import Controller, State
from ..mechanics.reference_motion import positions, reference_field
from .references import Reference
from .tension import MeanTension, TensionDistribution


@runtime_checkable
class TendonMotors(Protocol):
    """Motors that wind tendons: rotor `inertia` [kg m^2], `travel` of the tendon [m/rad] and dry
    friction [N m], shape (n_tendons,) each."""

    inertia: Array
    travel: Array

    def friction_torque(self, rate) -> Array: ...


@runtime_checkable
class TendonDriven(Protocol):
    """Members that the controller requires of its machine."""

    @property
    def motors(self) -> TendonMotors: ...
    def split(self, x) -> tuple[Array, Array]: ...
    def joint_torque(self, alpha, rate, acceleration) -> Array: ...
    def length_derivatives(self, alpha) -> tuple[Array, Array]: ...
    def state_at(self, alpha, rate=None, tension=None) -> State: ...


class ComputedTorque(Controller):
    """Computed-torque controller of joints that are driven by tendons.

    If the tendons were rigid, the joints would follow `reference` with the error dynamics
    `e'' + K_d e' + K_p e = 0`.

        a     = alpha_d'' + K_d (alpha_d' - alpha') + K_p (alpha_d - alpha)
        -J_l^T T = M_s a + c_s + g + pivot friction            T by `distribution`
        torque = I_theta (J_l a + H alpha'^2)/B - B T + friction

    The controller uses measured joint angles and rates, not those of the motors. `friction` selects
    the feed-forward of dry friction: "none", "desired" (at the desired rates) or "measured" (at the
    measured rates). Gains K_p [1/s^2] and K_d [1/s]; `period` [s] is the time between samples, None
    for control in every stage of the integrator."""

    machine: TendonDriven = part_field()
    reference: Reference = reference_field()
    K_p: Float[Array, "..."] = float_field(checked=False, default=42.25)
    K_d: Float[Array, "..."] = float_field(checked=False, default=13.0)
    distribution: TensionDistribution = part_field(default_factory=MeanTension)
    friction: Literal["none", "desired", "measured"] = eqx.field(static=True, default="desired")
    period: float | None = setting_field(default=None)  # pyright: ignore[reportIncompatibleVariableOverride]

    def __check_init__(self):
        require_known("friction", self.friction, ("none", "desired", "measured"))
        wanted = jnp.shape(self.reference.position(0.0))
        require(len(wanted) == 1, "reference", f"positions of shape {wanted}", "(n_joints,)")
        require_shape("K_p", self.K_p, (), wanted)
        require_shape("K_d", self.K_d, (), wanted)
        require_positive("K_p", self.K_p, zero_allowed=True)
        require_positive("K_d", self.K_d, zero_allowed=True)

    @property
    def may_fail(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.distribution.may_fail

    def __call__(self, t, state, memory):
        machine, motors = self.machine, self.machine.motors
        alpha, rate = machine.split(state.q)[0], machine.split(state.v)[0]
        a, desired_rate = self._acceleration(t, alpha, rate)
        J, H = machine.length_derivatives(alpha)
        T = self.distribution(-J.T, machine.joint_torque(alpha, rate, a))
        rotor = motors.inertia / motors.travel * (matvec(J, a) + matvec(H, rate * rate))
        torque = rotor - motors.travel * T
        if self.friction != "none":
            known = desired_rate if self.friction == "desired" else rate
            torque = torque + motors.friction_torque(matvec(J, known) / motors.travel)
        if not self.may_fail:
            return torque, memory
        return torque, memory, code_unless(jnp.all(jnp.isfinite(T)), Result.QP_INFEASIBLE)

    def tension(self, t, state: State):
        """Commanded tensions [N], shape (n_tendons,)."""
        return self.distribution(*self._needed(t, state))

    def failure_reason(self, t, state):
        W, torque = eqx.filter_jit(type(self)._needed)(self, t, state)
        names = [f"torque of joint {i + 1}" for i in range(len(torque))]
        return self.distribution.failure_reason(W, torque, names)

    def _needed(self, t, state: State):
        """Return W (n_joints, n_tendons) [m] and the joint torques (n_joints,) [N m] of
        `W T = torque`."""
        machine = self.machine
        alpha, rate = machine.split(state.q)[0], machine.split(state.v)[0]
        a, _ = self._acceleration(t, alpha, rate)
        return -machine.length_derivatives(alpha)[0].T, machine.joint_torque(alpha, rate, a)

    def _acceleration(self, t, alpha, rate):
        """Return the commanded joint accelerations [rad/s^2] and the desired rates [rad/s], shape
        (n_joints,) each."""
        desired, desired_rate, desired_acceleration = self.reference(t)
        error, error_rate = desired - alpha, desired_rate - rate
        return desired_acceleration + self.K_d * error_rate + self.K_p * error, desired_rate

    @kept_filter_jit  # otherwise some hundred small operations are dispatched one by one
    def start(self) -> State:
        """Return the initial state on the reference at t = 0. Elastic tendons are stretched by the
        tensions of static equilibrium in this posture."""
        alpha, rate, _ = self.reference(0.0)
        zero = jnp.zeros_like(alpha)
        W = -self.machine.length_derivatives(alpha)[0].T
        return self.machine.state_at(
            alpha, rate, self.distribution(W, self.machine.joint_torque(alpha, zero, zero))
        )

    def tracking_error(self, trajectory):
        """Joint angles minus desired joint angles [rad], shape (k, n_joints)."""
        desired = positions(self.reference, trajectory.t)
        return trajectory.q[:, : desired.shape[1]] - desired
