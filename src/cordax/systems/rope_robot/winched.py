"""Ropes that are reeled in and out at their roots."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape, require_values
from ..._base.fields import part_field
from ..._base.precision import as_float_array, float_field
from ...mechanics import Presentation, State
from ...mechanics.constraints import ConstraintTerms
from ...mechanics.parts.drives import Drive, Winches
from ...mechanics.residual_linearisation import ResidualStructure, ResidualSystem
from .reeled_rope import PaidOut
from .robot import RopeRobot
from .winched_linearisation import WinchedLinearisation, WinchedSaddlePoint

#: shortest upper rod of the first segment, relative to its length without payout
SHORTEST = 0.1
#: expectation of states and lengths within the validity of the model
FITTING = (
    "of each rope as much between exit and first gap as the model allows: at least "
    f"{SHORTEST:g} of half a segment, at most `longest`, and no more than `reserve` off the drum"
)


class WinchedRopes(ResidualSystem):
    """A rope robot on winches.

    - `ropes`: the robot with all ropes at their `length`;
    - `drive`: drive of the rope lengths, `Winches` (inputs are torques), `ServoWinches` or
      `ProgrammedLengths`;
    - `reserve` [m]: rope on each drum when a rope has its `length`; it turns with the drum;
    - `longest` [m]: largest length of the straight piece between exit and first gap; half of
      `length` by default.

    Rope that leaves the drum lengthens the upper rod of the first segment, whose mass and moment of
    inertia grow; the other segments and the stiffness of joints do not change. That rod is
    straight, so it must initially contain as much rope as is to be reeled in. Rope on the drum is
    unstretched and turns with it. So a winch also stretches the rope that leaves it, and its load
    is T (1 + e) - W at a tension T, strain e and energy W per length: its work equals the energy of
    rope and platform to round-off.

    Coordinates: those of the robot, but with D + payout instead of the elongation D of each first
    segment; then, rope after rope, those of its drive, or its payout [m] if lengths are programmed.
    Programmed lengths are constraints that follow those of the robot; their multipliers are the
    forces [N] with which ropes pull at their drums."""

    ropes: RopeRobot = part_field()
    drive: Drive = part_field()
    reserve: Float[Array, "..."] = float_field(unit="m", default=10.0)
    longest: Float[Array, "..."] | None = float_field(unit="m", default=None)

    default_integrator = "generalised_alpha"
    default_dt = 1e-3

    def __check_init__(self):
        m, n = self.ropes.n_ropes, self.drive.n_cables
        require(n == m, "drive", f"{n} cables", f"{m}, as ropes")
        alone = len(self.ropes.contact) == 0
        require(alone, "ropes.contact", "contacts", "none: ropes on winches do not touch")
        require_shape("reserve", self.reserve, (), (m,))
        require_positive("reserve", self.reserve, zero_allowed=True)
        if self.longest is not None:
            require_shape("longest", self.longest, (), (m,))
            require_positive("longest", self.longest)

    # --- names
    @property
    def programmed(self) -> bool:
        """Whether lengths are prescribed, so that drives have no coordinates."""
        return not self.drive.coordinates

    @property
    def n_drive(self) -> int:
        """Number of coordinates of each winch."""
        return max(1, len(self.drive.coordinates))

    @property
    def coordinate_names(self):
        s = self.ropes.count
        names = list(self.ropes.coordinate_names)
        own = self.drive.coordinates or ("payout",)
        for j in range(self.ropes.n_ropes):
            names[2 * s * j] = f"reach_{j + 1}"
            names += [f"{name}_{j + 1}" for name in own]
        return tuple(names)

    @property
    def input_names(self):
        ropes = range(1, self.ropes.n_ropes + 1)
        own = (f"{name}_{j}" for j in ropes for name in self.drive.inputs)
        return (*self.ropes.input_names, *own)

    def presentation(self):
        shown = self.ropes.presentation()
        return Presentation(
            units={**shown.units, "payout": "m", "winch_force": "N", "theta": "rad"},
            plots=(*shown.plots, "payout"),
            geometry=self.geometry,
            invalid_reason=lambda t, q, v: FITTING,
        )

    @property
    def n_constraints(self):
        return self.ropes.n_constraints + (self.ropes.n_ropes if self.programmed else 0)

    # --- parts
    def split(self, x):
        """Split coordinates, velocities or forces into those of the robot and those of the winches
        (m, e)."""
        n = self.ropes.n_q
        return x[:n], x[n:].reshape(self.ropes.n_ropes, self.n_drive)

    def inputs(self, u):
        """Split inputs into those of the robot and those of the winches (m, k)."""
        n = self.ropes.n_u
        return u[:n], u[n:].reshape(self.ropes.n_ropes, len(self.drive.inputs))

    def payout(self, t, y) -> Float[Array, " m"]:
        """Payout [m] beyond the `length` of ropes, for coordinates of winches (m, e)."""
        return y[:, 0] if self.programmed else self.drive.length(t, y) - self.ropes.length

    def lever(self, t, y) -> Float[Array, "m e"]:
        """Derivative of the payout by the coordinates of winches."""
        return jax.grad(lambda y: jnp.sum(self.payout(t, y)))(y)

    def paid_out(self, t, q, v) -> PaidOut:
        """The robot with the present lengths of its ropes, for its own states and forces."""
        y, rate = self.split(q)[1], self.split(v)[1]
        payout, payout_rate = jax.jvp(lambda y: self.payout(t, y), (y,), (rate,))
        return self._with_payout(payout, payout_rate)

    def _with_payout(self, payout, rate) -> PaidOut:
        fields = {f.name: getattr(self.ropes, f.name) for f in dataclasses.fields(self.ropes)}
        return PaidOut(**fields, payout=payout, payout_rate=rate)

    @property
    def moved(self) -> Float[Array, " m"]:
        """Mass [kg] of each rope that moves with its payout: the rope on the drum and in the upper
        rod of the first segment, whose sum is constant."""
        ropes = self.ropes
        mass = ropes.line_density * (self.reserve + 0.5 * ropes.length / ropes.count)
        return jnp.broadcast_to(mass, (ropes.n_ropes,))

    def masses(self, t, q) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Mass of each rope [kg]: outside, and on the drum."""
        payout = self.payout(t, self.split(q)[1])
        density = self.ropes.line_density
        return density * (self.ropes.length + payout), density * (self.reserve - payout)

    # --- equations
    def _own_inertia(self, t, y):
        """Inertia of the coordinates of winches, without ropes (m, e)."""
        return jnp.zeros_like(y) if self.programmed else self.drive.inertia()

    def winch_rows(self, t, q, v, u, b) -> Float[Array, "m e"]:
        """Generalised forces that the coordinates of winches need for second derivatives `b`
        (m, e), including ropes."""
        q_ropes, y = self.split(q)
        v_ropes, rate = self.split(v)
        pull = self.paid_out(t, q, v).unwinding(q_ropes, v_ropes)
        payout = lambda y: self.payout(t, y)
        velocity = lambda y, rate: jax.jvp(payout, (y,), (rate,))[1]
        _, acceleration = jax.jvp(velocity, (y, rate), (rate, b))
        force = jnp.zeros_like(y)
        if not self.programmed:
            force = self.drive.force(t, y, rate, self.inputs(u)[1])
        along = self.moved * acceleration + pull
        return self._own_inertia(t, y) * b - force + self.lever(t, y) * along[:, None]

    def residual(self, t, q, v, u, a, multipliers):
        ropes = self.paid_out(t, q, v)
        k = ropes.n_constraints
        own, b = self.split(a)
        at, rate = self.split(q)[0], self.split(v)[0]
        first = ropes.residual(t, at, rate, self.inputs(u)[0], own, multipliers[:k])
        last = self.winch_rows(t, q, v, u, b)
        if self.programmed:
            last = last + multipliers[k:, None]
        return jnp.concatenate([first, last.reshape(-1)])

    def momentum(self, q, v):
        own, rate = self.split(v)
        rest = jnp.zeros((), q.dtype)  # lengths of winches do not depend on time
        ropes = self.paid_out(rest, q, jnp.zeros_like(v))
        last = self._winch_inertia(rest, self.split(q)[1]) * rate
        return jnp.concatenate([ropes.momentum(self.split(q)[0], own), last.reshape(-1)])

    def _winch_inertia(self, t, y):
        """Inertia of the coordinates of winches, including ropes (m, e); each payout depends on one
        coordinate."""
        return self._own_inertia(t, y) + self.moved[:, None] * self.lever(t, y) ** 2

    def constraint(self, t, q):
        own, y = self.split(q)
        rows = self.paid_out(t, q, jnp.zeros_like(q)).constraint(t, own)
        if not self.programmed:
            return rows
        wanted = self.drive.length(t, y[:, :0]) - self.ropes.length
        return jnp.concatenate([rows, y[:, 0] - wanted])

    def structure(self) -> "WinchedStructure":
        return WinchedStructure(self)

    # --- energies
    def potential_energy(self, t, q):
        ropes = self.paid_out(t, q, jnp.zeros_like(q))
        wound = self.masses(t, q)[1] * self.ropes.roots[:, 1]
        return ropes.potential_energy(t, self.split(q)[0]) + self.ropes.gravity * jnp.sum(wound)

    def dissipation(self, q, v):
        """Power [W] dissipated by the damping of ropes; that of drives is in their forces."""
        ropes = self.paid_out(jnp.zeros((), q.dtype), q, v)  # does not depend on time
        return ropes.dissipation(self.split(q)[0], self.split(v)[0])

    def valid(self, t, q, v):
        return jnp.all(self._fits(self.payout(t, self.split(q)[1])))

    def _fits(self, payout):
        """Ropes whose payout is within the validity of the model."""
        rod = 0.5 * self.ropes.length / self.ropes.count
        longest = 0.5 * self.ropes.length if self.longest is None else self.longest
        fits = (rod + payout >= SHORTEST * rod) & (rod + payout <= longest)
        return fits & (payout <= self.reserve)

    # --- states and outputs
    def rest(self, lengths=None, u=None, guess: State | None = None, t=0.0) -> State:
        """Equilibrium with drums held at `lengths` (m,) [m], by default those of the drive at its
        zero or programmed at `t` [s], under inputs `u` of the robot; see `RopeRobot.rest`. `guess`:
        a state of this machine."""
        t = as_float_array(t)
        m, e = self.ropes.n_ropes, len(self.drive.coordinates)
        if lengths is None:
            lengths = self.drive.length(t, jnp.zeros((m, e)))
        lengths = as_float_array(lengths)
        require_shape("lengths", lengths, (m,))
        payout = jnp.broadcast_to(lengths - self.ropes.length, (m,))
        good = lambda lengths: self._fits(lengths - self.ropes.length)
        require_values("lengths", good, lengths, expected=FITTING)
        ropes = self._with_payout(payout, jnp.zeros_like(payout))
        start = None if guess is None else State(self.split(guess.q)[0], self.split(guess.v)[0])
        own = ropes.rest(u, start, t)
        y = payout[:, None]
        if not self.programmed:
            y, _ = self.drive.start(t, lengths, jnp.zeros_like(payout))
        q = jnp.concatenate([own.q, y.reshape(-1)])
        return State(q, jnp.zeros_like(q))

    def default_state(self):
        return self.rest()

    def holding(self, t, q) -> Float[Array, " m"]:
        """Torques [N m] of `Winches` that hold a state at rest."""
        require(isinstance(self.drive, Winches), "drive", type(self.drive).__name__, "Winches")
        rest, y = jnp.zeros_like(q), self.split(q)[1]
        return self.winch_rows(t, q, rest, jnp.zeros(self.n_u), jnp.zeros_like(y))[:, 0]

    def outputs(self, t, q, v, u, multipliers):
        ropes, k = self.paid_out(t, q, v), self.ropes.n_constraints
        at, rate = self.split(q)[0], self.split(v)[0]
        out = ropes.outputs(t, at, rate, self.inputs(u)[0], multipliers[:k])
        out["payout"] = ropes.payout
        if self.programmed:
            out["winch_force"] = multipliers[k:]
        elif "theta" in self.drive.coordinates:
            out["theta"] = self.split(q)[1][:, 0]
        return out

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        return self.paid_out(t, q, jnp.zeros_like(q)).geometry(t, self.split(q)[0])


class WinchedStructure(ResidualStructure):
    """Structure of `WinchedRopes`."""

    system: WinchedRopes

    def constraint_terms(self, t, q, v) -> ConstraintTerms:
        machine = self.system
        if not machine.n_constraints:
            return super().constraint_terms(t, q, v)
        ropes, m = machine.paid_out(t, q, v), machine.ropes.n_ropes
        own, y = machine.split(q)
        phi, J, rate, bias = ropes.structure().constraint_terms(t, own, machine.split(v)[0])
        J = jnp.concatenate([J, jnp.zeros((J.shape[0], y.size), J.dtype)], axis=1)
        if not machine.programmed:
            return ConstraintTerms(phi, J, rate, bias)
        position = lambda t: machine.drive.length(t, y[:, :0]) - machine.ropes.length
        moving = lambda t: jax.jvp(position, (t,), (jnp.ones_like(t),))
        (wanted, speed), (_, push) = jax.jvp(moving, (t,), (jnp.ones_like(t),))
        last = jnp.concatenate([jnp.zeros((m, own.shape[0]), J.dtype), jnp.eye(m)], axis=1)
        return ConstraintTerms(
            jnp.concatenate([phi, y[:, 0] - wanted]),
            jnp.concatenate([J, last]),
            jnp.concatenate([rate, machine.split(v)[1][:, 0] - speed]),
            jnp.concatenate([bias, -push]),
        )

    def acceleration(self, t, q, v, u):
        machine = self.system
        ropes, (at, y) = machine.paid_out(t, q, v), machine.split(q)
        own = ropes.structure().acceleration(t, at, machine.split(v)[0], machine.inputs(u)[0])
        push = -machine.winch_rows(t, q, v, u, jnp.zeros_like(y))
        return jnp.concatenate([own, (push / machine._winch_inertia(t, y)).reshape(-1)])

    def saddle(self, t, q, active=None, *, jacobian=None):
        machine = self.system
        if active is not None or not machine.n_constraints:
            return super().saddle(t, q, active, jacobian=jacobian)
        ropes = machine.paid_out(t, q, jnp.zeros_like(q))
        own, y = machine.split(q)
        inner = ropes.structure().saddle(t, own) if ropes.n_constraints else None
        return WinchedSaddlePoint(machine, inner, ropes, own, machine._winch_inertia(t, y))

    def linearise(self, t, q, v, u, *, acceleration=None, multipliers=None, hold=True):
        machine = self.system
        return WinchedLinearisation.about(machine, t, q, v, u, acceleration, multipliers)
