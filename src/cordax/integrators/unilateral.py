"""Rigid cables that can go slack: one-sided constraints that open, and close with an impulse."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import require
from .._base.fields import count_field, part_field
from .._jax.gradient_guard import without_derivatives
from .._jax.materialise import materialise
from ..formulations import Dynamics
from ..math.complementarity import active_set, masked_solve
from ..math.linalg import gram, matmul, matvec, solve
from ..mechanics import State
from ..mechanics.saddle import row_weights
from .base import Integrator, Step, Traits
from .bounded_loop import while_recorded
from .events import Events
from .rk4 import RK4


class _Carry(NamedTuple):
    """Data between steps: active constraints, recorded events and their number, and whether the
    last step had more events than pieces."""

    active: Float[Array, " m"]
    events: Events
    count: Array
    crowded: Array


class _Landing(NamedTuple):
    """An event ahead in the step. `ahead`: whether there is one; `part`: its position as a fraction
    of the remaining time; `slope` and `motion`: derivatives by this fraction of the event function
    and of the state. No field carries derivatives."""

    ahead: Array
    part: Array
    slope: Array
    motion: State


class _Piece(NamedTuple):
    """Progress within a step: time, remaining time [s], state, carry, constraints that must switch,
    next event, and number of completed pieces."""

    t: Array
    left: Array
    state: State
    carry: _Carry
    due: Array
    landing: _Landing
    behind: Array


class Unilateral(Integrator):
    """Event-driven method for one-sided constraints, such as rigid cables that can go slack. An
    explicit method, `inner`, integrates the equations with the active constraints. The set of
    active constraints changes when

    - an active constraint would have to push: it opens (goes slack) when its multiplier becomes
      zero,
    - an open constraint closes (becomes taut): a plastic impact at that instant brings its rate to
      zero and conserves momentum.

    In both cases linear complementarity problems, of impulses and then of accelerations, choose the
    active ones among all one-sided constraints (`System.one_sided`). Events, located to the order
    of `inner`, divide a step into at most `pieces`. Impacts within a fiftieth of a step count as
    one; so do impacts within a whole step if the previous step had more events than pieces. The
    work per step is therefore bounded, and a machine that rattles comes to rest while time
    advances. `Trajectory.events` lists the events, up to `capacity`.

    Requires a `Baumgarte` formulation."""

    inner: Integrator = part_field(default_factory=RK4)
    capacity: int = count_field(default=64)
    #: largest number of pieces into which events divide a step
    pieces: int = count_field(default=12)
    #: largest number of iterations to locate an event
    iterations: int = count_field(default=6)
    #: whether reverse mode must be possible
    reverse: bool = eqx.field(static=True, default=False)

    def check(self, dynamics):
        super().check(dynamics)
        self.inner.check(dynamics)
        given = type(dynamics.formulation).__name__
        ok = dynamics.formulation.switches_rows
        require(ok, "formulation", given, "Baumgarte, with the integrator Unilateral")
        name = type(dynamics.system).__name__
        some = bool(dynamics.system.one_sided.any())
        require(
            some, "integrator", f"Unilateral for {name}", "a machine with one-sided constraints"
        )
        inner = self.inner.traits.explicit and self.inner.traits.self_starting
        require(inner, "inner", type(self.inner).__name__, "an explicit one-step method")

    @property
    def traits(self) -> Traits:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Traits(
            order=1,
            explicit=True,
            oscillator_limit=self.inner.traits.oscillator_limit,
            self_starting=False,
            variable_step=False,
            allows_open_constraints=True,
        )

    def growth(self, eigenvalue_dt):
        return self.inner.growth(eigenvalue_dt)

    def amplification(self, stiffness, damping):
        return self.inner.amplification(stiffness, damping)

    # --- the step
    def init(self, dynamics, t, dt, state, u):
        never = jnp.full(self.capacity, jnp.inf, state.q.dtype)
        none = jnp.zeros(self.capacity, jnp.int32)
        events = Events(never, none, none, jnp.zeros_like(never), none[:1])
        terms = dynamics.system.structure().constraint_terms(t, state.q, state.v)
        taut = (terms.phi > -_CLOSED) & (terms.rate > -_RATE)
        active = _acting(dynamics, t, state, u, taut)
        return _Carry(active, events, jnp.asarray(0, jnp.int32), jnp.asarray(False))

    def step(self, dynamics, t, dt, state, u, carry):
        # Each pass tries the remaining time of the step, or steps to the event that the previous
        # pass located. All passes share one copy of the dynamics, which dominates compile time.
        go = eqx.filter_checkpoint(Unilateral._go) if self.reverse else Unilateral._go
        end = go(self, dynamics, t, dt, state, u, carry)
        return Step(end.state, end.carry)

    def _go(self, dynamics, t, dt, state, u, carry) -> _Piece:
        nothing = jnp.zeros(carry.active.shape, bool)
        now = _Piece(t, dt, state, carry, nothing, _nowhere(state), jnp.asarray(0))
        going = lambda now: now.left > 0
        one = lambda now: self._pass(dynamics, u, dt, now)
        if self.reverse:
            return while_recorded(going, one, now, 2 * self.pieces - 1)
        return lax.while_loop(going, one, now)

    def reversible(self, reverse=True):
        return dataclasses.replace(self, reverse=reverse)

    def _pass(self, dynamics, u, dt, now: _Piece) -> _Piece:
        t, left, state, carry, due, landing, behind = now
        lands, last = landing.ahead, behind == self.pieces - 1
        # switch the constraints that must switch
        look = lambda state, active: _overdue(dynamics, t, state, u, active)
        before = without_derivatives(look, state, carry.active)
        crowded = carry.crowded & (behind == 0)
        wrong = due | _wrong(dynamics, before, carry.active)
        horizon = jnp.where(crowded, left, _TOGETHER * dt)
        state, carry = lax.cond(
            ~lands & (jnp.any(wrong) | crowded),
            lambda: self._switch(dynamics, t, state, u, carry, wrong, before, horizon, crowded),
            lambda: (state, carry),
        )
        # on to the end of the step or to the event
        part = jnp.where(lands, landing.part, 1.0)
        new, after = self._look(dynamics, t, left, state, u, carry.active, part)
        # the event was located without derivatives: one Newton correction provides them
        slope = jnp.where(lands & (landing.slope != 0), landing.slope, 1.0)
        exact = jnp.clip(part - jnp.where(lands, _worst(due, after), 0.0) / slope, 0.0, 1.0)
        new = jax.tree.map(lambda x, dx: x + (exact - part) * dx, new, landing.motion)
        # which constraints have become inconsistent within this pass?
        late = _wrong(dynamics, after, carry.active) & ~lands
        locate = lambda *given: self._locate(dynamics, t, left, state, u, carry.active, *given)
        late, landing = without_derivatives(locate, late, after, last)
        back = jnp.any(late) & ~last
        carry = carry._replace(crowded=last & jnp.any(late))
        stay = lambda old, new: jax.tree.map(lambda a, b: jnp.where(back, a, b), old, new)
        return _Piece(
            stay(t, t + exact * left),
            stay(left, (1.0 - exact) * left),
            stay(state, new),
            carry,
            jnp.where(back, late, due & lands),
            landing._replace(ahead=back),
            behind + lands,
        )

    def _look(self, dynamics, t, dt, state, u, active, part):
        """State `part * dt` ahead, and the event functions (`_overdue`) there."""
        new = self.inner.step(_with(dynamics, active), t, part * dt, state, u, ()).state
        return new, _overdue(dynamics, t + part * dt, new, u, active)

    def _locate(self, dynamics, t, dt, state, u, active, due, at_end, last):
        """Locate the first event within `dt`. Returns which of the `due` constraints have an event,
        and the first event. In the `last` piece of a step no event is located."""

        def narrow(search):
            i, part, low, high, due, _ = search
            look = lambda part: self._look(dynamics, t, dt, state, u, active, part)
            (_, overdue), (motion, slopes) = jax.jvp(look, (part,), (jnp.ones_like(part),))
            first = i == 0  # at part = 0
            # a row that round-off left inconsistent at the last event, and that recovers, has no
            # event
            due = due & (~first | (at_end > overdue))
            f, slope = _worst(due, overdue), slopes[_worst_row(due, overdue)]
            # Newton's method from the false position, with bisection if it leaves the bracket. A
            # row that starts at zero has its event at once, unless its function is falling: then
            # it returns to zero later, and the search begins at the end of the interval.
            below = jnp.minimum(f, 0.0)
            false_position = -below / (_worst(due, at_end) - below)
            start = jnp.where(slope < 0, 1.0, false_position)
            early = first | (f < 0)
            low, high = jnp.where(early, part, low), jnp.where(early, high, part)
            newton = part - f / jnp.where(slope == 0, 1.0, slope)
            inside = (newton >= low) & (newton <= high)
            guess = jnp.where(inside, newton, 0.5 * (low + high))
            guess = jnp.where(first, start, guess)
            landing = _Landing(jnp.asarray(True), part, slope, motion)
            return i + 1, guess, low, high, due, landing

        def more(search):
            return jnp.any(search[4]) & (search[0] <= jnp.where(last, 0, self.iterations))

        zero, one = jnp.zeros_like(dt), jnp.ones_like(dt)
        start = (jnp.asarray(0), zero, zero, one, due, _nowhere(state))
        *_, due, landing = lax.while_loop(more, narrow, start)
        return due, landing

    def _switch(self, dynamics, t, state, u, carry: _Carry, due, before, horizon, crowded):
        """State and active constraints just after an event at `state`. Successive impacts within a
        `horizon` [s] count as one: constraints that the forces would close within it become active,
        whatever their rates."""
        system, q = dynamics.system, state.q
        one_sided, active = jnp.asarray(system.one_sided), carry.active > 0

        def choose(carried, impact):
            v, rows, struck, impulse = carried
            p = _problem(dynamics, t, State(q, v), u)
            # impact: the rate of constraints that are active or reached must not be positive
            near = p.phi > -_CLOSED - horizon * jnp.abs(p.rate)
            reached = ~active & (due | near)
            struck = jnp.where(impact, jnp.any(reached & (p.rate > _RATE)) | crowded, struck)
            b = jnp.where(impact, p.rate + horizon * p.opening, p.opening)
            rows = active_set(p.A, b, one_sided, jnp.where(impact, active | reached, rows > 0))
            hit = impact & struck
            push = masked_solve(p.A, p.rate, rows, unrolled=False)
            impulse = impulse + jnp.where(hit, push, 0.0)
            v = v - jnp.where(hit, matvec(p.W, push), 0.0)
            # then the accelerations decide which rows at rest are active; a row whose multiplier
            # has just become zero opens, whatever sign round-off has given it
            vanished = due & (jnp.abs(before) < _VANISHED)
            kept = jnp.where(active & ~vanished, 1.0, 0.0)
            return (v, jnp.where(impact & ~struck, kept, rows), struck, impulse), None

        start = (state.v, carry.active, jnp.asarray(False), jnp.zeros_like(carry.active))
        (v, after, _, impulse), _ = lax.scan(choose, start, jnp.array([True, False]))
        forces = system.multiplier_forces(t, q, impulse)
        return State(q, v), self._log(carry, t, after, forces, one_sided)

    def _log(self, carry: _Carry, t, active, impulse, one_sided) -> _Carry:
        def note(log, row):
            events, count = log
            changed = one_sided[row] & (active[row] != carry.active[row])
            at = jnp.where(changed, count, self.capacity)  # out of range: nothing is written
            write = lambda x, value: x.at[at].set(value, mode="drop")
            kind = jnp.where(active[row] > 0, 1, -1).astype(jnp.int32)
            events = Events(
                write(events.time, t),
                write(events.row, row.astype(jnp.int32)),
                write(events.kind, kind),
                write(events.impulse, impulse[row]),
                events.lost,
            )
            return (events, count + changed.astype(jnp.int32)), None

        rows = jnp.arange(active.shape[0])
        (events, count), _ = lax.scan(note, (carry.events, carry.count), rows)
        return carry._replace(active=active, events=events, count=count)

    # --- reported quantities
    def record(self, carry):
        return carry.active

    def events(self, carry):
        lost = jnp.maximum(carry.count - self.capacity, 0)[None]
        return eqx.tree_at(lambda e: e.lost, carry.events, lost)

    def multipliers(self, dynamics, record, t, q, v, u):
        # inputs may jump at this instant: tensions are those just after the jump
        held = lambda t, q, v: u
        wrong = _wrong(dynamics, _overdue(dynamics, t, State(q, v), held, record), record)
        acting = lax.cond(
            jnp.any(wrong),
            lambda: _acting(dynamics, t, State(q, v), held, record > 0),
            lambda: record,
        )
        return _with(dynamics, acting).multipliers(t, q, v, u)

    def violation(self, dynamics, record, t, q):
        phi = dynamics.system.constraint(t, q)
        return jnp.where(record > 0, phi, jnp.maximum(phi, 0.0))


#: thresholds: a row is reached if Phi > -_CLOSED, pushes if its multiplier < -_PUSH, and violates
#: its bound if its rate > _RATE; a multiplier below _VANISHED at its event counts as zero
_CLOSED, _PUSH, _RATE, _VANISHED = 1e-10, 1e-9, 1e-9, 1e-6
#: impacts closer together than this fraction of a step count as one, so that rattling parts come
#: to rest
_TOGETHER = 0.02


def _with(dynamics: Dynamics, active) -> Dynamics:
    return eqx.tree_at(
        lambda d: d.formulation.active, dynamics, active, is_leaf=lambda x: x is None
    )


def _overdue(dynamics: Dynamics, t, state, u, active):
    """Event functions, positive for an inconsistent row: minus the multiplier of an active row, Phi
    of an open one."""
    q, v = state.q, state.v
    multipliers = _with(dynamics, active).multipliers(t, q, v, u(t, q, v))
    return jnp.where(active > 0, -multipliers, dynamics.system.constraint(t, q))


def _wrong(dynamics: Dynamics, overdue, active):
    one_sided = jnp.asarray(dynamics.system.one_sided)
    return one_sided & (overdue > jnp.where(active > 0, _PUSH, _CLOSED))


def _worst(due, overdue):
    return jnp.max(jnp.where(due, overdue, -jnp.inf))


def _worst_row(due, overdue):
    return jnp.argmax(jnp.where(due, overdue, -jnp.inf))


def _nowhere(state: State) -> _Landing:
    one = jnp.ones((), state.q.dtype)
    return _Landing(jnp.asarray(False), one, one, jax.tree.map(jnp.zeros_like, state))


class _Problem(NamedTuple):
    """Constraints at a state: Phi and its rate, d2Phi/dt2 without constraint forces, M^-1 Phi_q^T
    and Phi_q M^-1 Phi_q^T."""

    phi: Array
    rate: Array
    opening: Array
    W: Array
    A: Array


def _problem(dynamics: Dynamics, t, state, u) -> _Problem:
    system, q, v = dynamics.system, state.q, state.v
    terms = system.structure().constraint_terms(t, q, v)
    force = system.total_force(t, q, v, u(t, q, v))
    solved = _inertia_solve(
        system, q, terms.jacobian, jnp.concatenate([terms.jacobian.T, force[:, None]], axis=1)
    )
    W, free = solved[:, :-1], solved[:, -1]
    opening = matvec(terms.jacobian, free) + terms.bias
    return _Problem(terms.phi, terms.rate, opening, W, matmul(terms.jacobian, W))


def _inertia_solve(system, q, J, B):
    """`M^-1 B`, shape (n_v, k). If M is singular, the two-sided constraints provide the missing
    inertia of massless parts. This does not change accelerations, velocity jumps and the
    multipliers of the other constraints."""
    if system.mass_is_regular:
        return system.structure().mass_solve(q, B)
    M = system.mass_matrix(q)
    weights = jnp.where(jnp.asarray(system.one_sided), 0.0, row_weights(M, J))
    M = materialise(M + gram(J * weights[:, None], J))
    return jax.vmap(lambda b: solve(M, b, spd=True), in_axes=1, out_axes=1)(B)


def _acting(dynamics: Dynamics, t, state, u, resting):
    """Active constraints among those `resting`, whose rate is zero: accelerations must not violate
    them, and multipliers must not push."""
    p = _problem(dynamics, t, state, u)
    return active_set(p.A, p.opening, jnp.asarray(dynamics.system.one_sided), resting)
