"""Cables that can go slack: one-sided constraints let go, and catch with an impulse."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..formulations import Baumgarte, Dynamics
from ..math.complementarity import active_set
from ..math.linalg import matmul, matvec
from ..mechanics import State
from ..mechanics.checks import require
from ..mechanics.constraints import solve_active
from .base import Integrator, Step
from .events import Events
from .rk4 import RK4


class _Carry(NamedTuple):
    """Rows that act, what has happened so far, and whether the last step had more events than
    pieces."""

    active: Float[Array, " m"]
    events: Events
    count: Array
    crowded: Array


class _Piece(NamedTuple):
    """Where a step has got to: time, what is left of it [s], state, and the rows due to switch."""

    t: Array
    left: Array
    state: State
    carry: _Carry
    due: Array


class Unilateral(Integrator):
    """An explicit method, `inner`, on the rows that act; which rows those are changes where

    - a row would have to push: it is let go at the instant its multiplier vanishes,
    - a row that had been let go is reached again: a plastic impact at that instant brings its rate
      to zero and conserves momentum.

    Both choose among all one-sided rows by a linear complementarity problem, of impulses and then
    of accelerations. A step is cut into at most `pieces`, at events located to the order of
    `inner`. Impacts within a fiftieth of a step count as one, and within a whole step where the one
    before had more events than pieces. So the work of a step is bounded, and a machine that rattles
    comes to rest without stopping the clock. The rows are `System.one_sided`; `Trajectory.events`
    lists what happened, up to `capacity` events.

    For `Baumgarte` formulations."""

    inner: Integrator = eqx.field(default_factory=RK4)
    capacity: int = eqx.field(static=True, default=64)
    #: parts into which events may cut a step
    pieces: int = eqx.field(static=True, default=12)
    #: evaluations to locate an event
    iterations: int = eqx.field(static=True, default=6)

    order = 1
    explicit = True

    def check(self, dynamics):
        super().check(dynamics)
        self.inner.check(dynamics)
        given = type(dynamics.formulation).__name__
        ok = type(dynamics.formulation) is Baumgarte
        require(ok, "formulation", given, "Baumgarte, with the integrator Unilateral")
        name = type(dynamics.system).__name__
        some = bool(dynamics.system.one_sided.any())
        require(
            some, "integrator", f"Unilateral for {name}", "a machine with one-sided constraints"
        )
        # `Integrator.init` where it is not overridden: nothing is carried from step to step
        alone = type(self.inner).init is Integrator.init
        inner = self.inner.explicit and alone
        require(inner, "inner", type(self.inner).__name__, "an explicit one-step method")

    @property
    def oscillator_limit(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.oscillator_limit

    def growth(self, eigenvalue_dt):
        return self.inner.growth(eigenvalue_dt)

    # --- the step
    def init(self, dynamics, t, dt, state, u):
        never = jnp.full(self.capacity, jnp.inf, state.q.dtype)
        none = jnp.zeros(self.capacity, jnp.int32)
        events = Events(never, none, none, jnp.zeros_like(never))
        terms = dynamics.system.constraint_terms(t, state.q, state.v)
        taut = (terms.phi > -_CLOSED) & (terms.rate > -_RATE)
        active = _acting(dynamics, t, state, u, taut)
        return _Carry(active, events, jnp.asarray(0, jnp.int32), jnp.asarray(False))

    def step(self, dynamics, t, dt, state, u, carry):
        def piece(now, i):
            go = lambda: self._piece(dynamics, u, dt, now, i)
            return lax.cond(now.left > 0, go, lambda: now), None

        nothing = jnp.zeros(carry.active.shape, bool)
        start = _Piece(t, dt, state, carry, nothing)
        end, _ = lax.scan(piece, start, jnp.arange(self.pieces))
        return Step(end.state, end.carry)

    def _piece(self, dynamics, u, dt, now: _Piece, i) -> _Piece:
        """Switch where something is due, then on to the next event or to the end of the step."""
        t, left, state, carry, due = now
        before = _overdue(dynamics, t, state, u, carry.active)
        crowded = carry.crowded & (i == 0)
        due = due | _wrong(dynamics, before, carry.active)

        def switch():
            horizon = jnp.where(crowded, left, _TOGETHER * dt)
            new, switched = self._switch(dynamics, t, state, u, carry, due, horizon, crowded)
            return new, switched, _overdue(dynamics, t, new, u, switched.active)

        due_now = jnp.any(due) | crowded
        state, carry, before = lax.cond(due_now, switch, lambda: (state, carry, before))
        active = carry.active
        new = self._advance(dynamics, active, t, left, state, u)
        after = _overdue(dynamics, t + left, new, u, active)
        # a row that the last event left wrong by round-off, and that mends, is no event
        late = _wrong(dynamics, after, active) & (after > before)
        last = i == self.pieces - 1
        carry = carry._replace(crowded=last & jnp.any(late))
        late = late & ~last

        def stop():
            part = self._locate(dynamics, t, left, state, u, active, late, before, after)
            return self._advance(dynamics, active, t, part * left, state, u), part

        new, part = lax.cond(jnp.any(late), stop, lambda: (new, jnp.ones_like(left)))
        return _Piece(t + part * left, (1.0 - part) * left, new, carry, late)

    def _advance(self, dynamics, active, t, dt, state, u) -> State:
        return self.inner.step(_with(dynamics, active), t, dt, state, u, ()).state

    def _locate(self, dynamics, t, dt, state, u, active, due, at_start, at_end):
        """The fraction of `dt` at which the first of the `due` rows turns wrong."""

        def worst(overdue):
            return jnp.max(jnp.where(due, overdue, -jnp.inf))

        def after(part, dynamics, state, active, dt):
            at = self._advance(dynamics, active, t, part * dt, state, u)
            return worst(_overdue(dynamics, t + part * dt, at, u, active))

        args = (dynamics, state, active, dt)
        frozen = jax.tree.map(lambda x: lax.stop_gradient(x) if eqx.is_array(x) else x, args)

        def narrow(bracket, _):
            # false position with the Illinois halving; the root stays between low and high
            low, high, f_low, f_high = bracket
            rise = f_high - f_low
            part = low - f_low * (high - low) / jnp.where(rise > 0, rise, 1.0)
            f = after(part, *frozen)
            early = f < 0
            return (
                jnp.where(early, part, low),
                jnp.where(early, high, part),
                jnp.where(early, f, 0.5 * f_low),
                jnp.where(early, 0.5 * f_high, f),
            ), None

        zero, one = jnp.zeros_like(dt), jnp.ones_like(dt)
        # a row at zero already turns wrong at once
        low = jnp.minimum(worst(at_start), 0.0)
        start = lax.stop_gradient((zero, one, low, worst(at_end)))
        (low, high, _, _), _ = lax.scan(narrow, start, length=self.iterations)
        part = lax.stop_gradient(0.5 * (low + high))
        # one Newton correction carries the derivative of the instant
        f, pull = jax.linearize(lambda part: after(part, *args), part)
        slope = lax.stop_gradient(pull(one))
        return jnp.clip(part - f / jnp.where(slope == 0, 1.0, slope), 0.0, 1.0)

    def _switch(self, dynamics, t, state, u, carry: _Carry, due, horizon, crowded):
        """The state and the rows that act after an event at this very state. Impacts that follow
        one another within a `horizon` [s] count as one: rows then act that forces would bring to
        act within it, whatever their rates."""
        system = dynamics.system
        one_sided, active = jnp.asarray(system.one_sided), carry.active > 0
        terms = system.constraint_terms(t, state.q, state.v)
        near = terms.phi > -_CLOSED - horizon * jnp.abs(terms.rate)
        reached = ~active & (due | near)
        struck = jnp.any(reached & (terms.rate > _RATE)) | crowded
        # impact: no row that acts or is reached may open further
        W = system.mass_solve(state.q, terms.jacobian.T)
        A = matmul(terms.jacobian, W)
        opening = terms.rate + horizon * _free_opening(dynamics, t, state, u, terms)
        hit = active_set(A, opening, one_sided, active | reached)
        impulse = jnp.where(struck, solve_active(A, terms.rate, hit), 0.0)
        state = State(state.q, state.v - matvec(W, impulse))
        # then the rows at rest choose by their accelerations; one whose multiplier has just come
        # to zero goes, whatever the sign that round-off left it
        vanished = jnp.abs(_overdue(dynamics, t, state, u, carry.active)) < _VANISHED
        resting = jnp.where(struck, hit > 0, active & ~(due & vanished))
        after = _acting(dynamics, t, state, u, resting)
        forces = system.multiplier_forces(t, state.q, impulse)
        return state, self._log(carry, t, after, forces, one_sided)

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
            )
            return (events, count + changed.astype(jnp.int32)), None

        rows = jnp.arange(active.shape[0])
        (events, count), _ = lax.scan(note, (carry.events, carry.count), rows)
        return carry._replace(active=active, events=events, count=count)

    # --- what is reported
    def record(self, carry):
        return carry.active

    def events(self, carry):
        return carry.events

    def multipliers(self, dynamics, record, t, q, v, u):
        # inputs may have jumped at this instant: tensions are those just after it
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


#: a row whose Phi is above -_CLOSED is reached; whose multiplier is below -_PUSH pushes; whose rate
#: is above _RATE opens; a multiplier below _VANISHED at the instant located for it is zero
_CLOSED, _PUSH, _RATE, _VANISHED = 1e-10, 1e-9, 1e-9, 1e-6
#: impacts closer together than this part of a step count as one: what rattles comes to rest
_TOGETHER = 0.02


def _with(dynamics: Dynamics, active) -> Dynamics:
    return eqx.tree_at(
        lambda d: d.formulation.active, dynamics, active, is_leaf=lambda x: x is None
    )


def _overdue(dynamics: Dynamics, t, state, u, active):
    """Positive where a row is wrong: minus the multiplier of one that acts, Phi of one that does
    not."""
    q, v = state.q, state.v
    multipliers = _with(dynamics, active).multipliers(t, q, v, u(t, q, v))
    return jnp.where(active > 0, -multipliers, dynamics.system.constraint(t, q))


def _wrong(dynamics: Dynamics, overdue, active):
    one_sided = jnp.asarray(dynamics.system.one_sided)
    return one_sided & (overdue > jnp.where(active > 0, _PUSH, _CLOSED))


def _free_opening(dynamics: Dynamics, t, state, u, terms):
    """d2Phi/dt2 of each row if none acted."""
    system, q, v = dynamics.system, state.q, state.v
    free = system.mass_solve(q, system.total_force(t, q, v, u(t, q, v))[:, None])[:, 0]
    return matvec(terms.jacobian, free) + terms.bias


def _acting(dynamics: Dynamics, t, state, u, resting):
    """Which of the rows whose rate is zero act: accelerations must not open them, multipliers must
    not push."""
    system = dynamics.system
    terms = system.constraint_terms(t, state.q, state.v)
    A = matmul(terms.jacobian, system.mass_solve(state.q, terms.jacobian.T))
    b = _free_opening(dynamics, t, state, u, terms)
    return active_set(A, b, jnp.asarray(system.one_sided), resting)
