"""Computed-torque control of the pose of a platform on cables."""

from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_positive, require_rotation
from .._base.fields import part_field, setting_field
from .._base.precision import float_field
from .._base.results import Result, code_unless
from ..mechanics import Controller, State
from ..mechanics.reference_motion import reference_field, require_position
from .references import Reference
from .tension import MeanTension, TensionDistribution


@runtime_checkable
class OnCables(Protocol):
    """Members that the controller requires of its machine, a platform on cables with winches."""

    @property
    def rotation(self) -> Array: ...
    @property
    def drives(self) -> Any: ...
    @property
    def n_u(self) -> int: ...
    def platform_motion(self, q, v) -> tuple[Array, Array, Array, Array]: ...
    def inverse_dynamics(
        self, t, q, v, acceleration, angular_acceleration
    ) -> tuple[Array, Array, Array, Array]: ...


class TaskSpaceControl(Controller):
    """Computed-torque controller: winches make the centre of mass of a platform follow `path`.

    `path` is a `Reference` with positions (3,) [m]. The axes of the platform are kept at `rotation`
    (3, 3), by default the rotation of the machine:

        a     = path'' + K_d (path' - velocity) + K_p (path - position)
        alpha = -K_d spin + K_p 1/2 sum_k r_k x r_k,wanted            r_k: the axes
        W T   = wrench of that motion                                 T by `distribution`
        torque = J l''/r - r T + friction l'/r

    For machines with `Winches` whose exit points have no coordinates; elastic cables are treated as
    rigid. Gains K_p [1/s^2] and K_d [1/s]; `period` [s] is the time between samples, None for
    control in every stage of the integrator. With `BoundedTension`, a run stops with
    `qp_infeasible` if no tensions within the bounds produce the wrench."""

    machine: OnCables = part_field()
    path: Reference = reference_field(unit="m")
    rotation: Float[Array, "3 3"] | None = float_field(default=None)
    K_p: Float[Array, ""] = float_field(default=100.0)
    K_d: Float[Array, ""] = float_field(default=20.0)
    distribution: TensionDistribution = part_field(default_factory=MeanTension)
    period: float | None = setting_field(default=None)  # pyright: ignore[reportIncompatibleVariableOverride]

    def __check_init__(self):
        require_positive("K_p", self.K_p, zero_allowed=True)
        require_positive("K_d", self.K_d, zero_allowed=True)
        require_position("path", self.path, (3,))
        if self.rotation is not None:
            require_rotation("rotation", self.rotation)
        kind = type(self.machine.drives).__name__
        turned = self.machine.drives.coordinates == ("theta",)
        require(turned, "machine", f"a machine with {kind}", "one with Winches, driven by torques")

    tracking_unit: ClassVar[str] = "m"

    @property
    def may_fail(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.distribution.may_fail

    def __call__(self, t, state, memory):
        tension, rate, acceleration = self._wanted(t, state)
        drum = self.machine.drives
        turning = (drum.rotor_inertia * acceleration + drum.friction * rate) / drum.radius
        torque = turning - drum.radius * tension
        rest = jnp.zeros(self.machine.n_u - torque.shape[0], torque.dtype)
        u = jnp.concatenate([torque, rest])
        if not self.may_fail:
            return u, memory
        return u, memory, code_unless(jnp.all(jnp.isfinite(tension)), Result.QP_INFEASIBLE)

    def tension(self, t, state: State) -> Float[Array, " n"]:
        """Commanded tensions [N]."""
        return self._wanted(t, state)[0]

    def failure_reason(self, t, state):
        W, wrench, _, _ = eqx.filter_jit(type(self)._wrench)(self, t, state)
        names = [f"{kind}_{axis}" for kind in ("force", "moment") for axis in "xyz"]
        text = self.distribution.failure_reason(W, wrench, names[: W.shape[0]])
        place = self.machine.platform_motion(state.q, state.v)[0]
        where = ", ".join(f"{x:.4g}" for x in np.asarray(place))
        return f"Platform at ({where}) m, forces in N, moments in N m. {text}" if text else ""

    def _wanted(self, t, state):
        """Return the tensions [N], and the rates [m/s] and accelerations [m/s^2] of cable lengths,
        shape (n,) each."""
        W, wrench, rate, acceleration = self._wrench(t, state)
        return self.distribution(W, wrench), rate, acceleration

    def _wrench(self, t, state):
        """Return the structure matrix (6, n), the wrench (6,) that the tensions must exert, and the
        rates [m/s] and accelerations [m/s^2] of cable lengths (n,)."""
        place, axes, velocity, spin = self.machine.platform_motion(state.q, state.v)
        wanted = self.machine.rotation if self.rotation is None else self.rotation
        p, p_rate, p_acceleration = self.path(t)
        a = p_acceleration + self.K_d * (p_rate - velocity) + self.K_p * (p - place)
        turn = 0.5 * jnp.sum(jnp.cross(axes.T, wanted.T), axis=0)
        alpha = self.K_p * turn - self.K_d * spin
        return self.machine.inverse_dynamics(t, state.q, state.v, a, alpha)

    def tracking_error(self, trajectory) -> Float[Array, "k 3"]:
        """Position of the centre of mass minus the path [m]."""
        return trajectory["position"] - jax.vmap(self.path.position)(trajectory.t)
