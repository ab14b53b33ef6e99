"""The traced time loop of a run: steps, stored instants and result code."""

import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.results import GOOD, Result, code_unless, first_code
from .._jax.batch_kernel import in_lanes
from .._jax.gradient_guard import close, frozen, shield
from ..integrators.base import Inputs
from ..mechanics import State
from ..mechanics.presentation import instant_warnings
from .adjoints import counted, each, fits_flat, flat, loop
from .divergence import Watch
from .postprocess import stored_trajectory

if TYPE_CHECKING:
    from .plan import Plan

#: result codes of steps that have no solution
UNSOLVED = Result.NONFINITE_STATE, Result.NEWTON_NOT_CONVERGED, Result.ACCURACY_NOT_REACHED


class _HeldInput(Inputs):
    """Inputs that are constant within a step and may jump between two steps (`held`)."""

    u: jax.Array

    def __call__(self, t, q, v):
        return self.u


class ContinuousInput(Inputs):
    """Inputs evaluated in every stage.

    They are NaN if the controller fails, so that the step fails; `failed_controller` determines the
    reason afterwards."""

    plan: "Plan"
    held: ClassVar[bool] = False

    def switching_times(self) -> jax.Array | None:
        return self.plan.controller.switching_times()

    def __call__(self, t, q, v):
        dynamics = self.plan.dynamics
        seen = dynamics.formulation.seen(dynamics.system, t, State(q, v))
        u, _, code = self.plan.control(t, seen, ())
        return jnp.where(code == GOOD, u, jnp.nan) if self.plan.controller.may_fail else u


class Carry(NamedTuple):
    """Variables that the time loop carries from step to step.

    They are the state, the memory of the controller, held inputs and their code, the carry of the
    integrator, its work so far, the first time of every alarm, the growth of speeds, and the status
    of the run: a code and the time of failure."""

    state: State
    memory: Any
    held: Any
    inner: Any
    counts: dict[str, jax.Array]
    alarms: dict[str, jax.Array]
    watch: Watch
    status: Any


def no_failure(state: State):
    """Status of a run that has not failed: a code and the time of failure."""
    return np.asarray(GOOD, np.int32), np.asarray(math.inf, state.q.dtype)


def begin(plan: "Plan", state, memory, status, t0) -> Carry:
    """Carry before the first step of a phase, see `Plan.begin`."""
    plan.check(state, t0)
    dt = jnp.asarray(plan.dt)
    plan = plan.prepared()
    u = ContinuousInput(plan)
    held = None
    if plan.hold:
        u = _HeldInput(plan.control(t0, state, memory)[0])
        held = jnp.zeros_like(u.u), jnp.int32(GOOD)
    inner = plan.integrator.init(plan.dynamics, t0, dt, state, u)
    alarms = dict.fromkeys(_alarm_names(plan, state, t0), jnp.full((), jnp.inf, state.q.dtype))
    counts = dict.fromkeys(plan.integrator.traits.counts, jnp.int32(0))
    return Carry(state, memory, held, inner, counts, alarms, Watch.of(state.v), status)


def _alarm_names(plan: "Plan", state, t) -> tuple[str, ...]:
    if plan.stores_all:
        return ()  # every step is stored, and warnings are computed from these
    system = plan.dynamics.system
    u, multipliers = jnp.zeros(system.n_u), jnp.zeros(system.n_constraints)
    at = t, state.q, state.v, u, multipliers
    return tuple(sorted(jax.eval_shape(functools.partial(instant_warnings, system), *at)))


def _alarms(plan: "Plan", t, state, u, begun: "Begun", inner) -> dict[str, jax.Array]:
    """Evaluate which alarms hold at the start of a step, without derivatives."""
    dynamics, (t, q, v) = plan.dynamics, jax.lax.stop_gradient((t, state.q, state.v))
    dynamics, u, (inputs, multipliers) = frozen((dynamics, u, begun))
    inputs = u(t, q, v) if inputs is None else inputs
    if dynamics.system.n_constraints == 0:
        multipliers = jnp.zeros(0, q.dtype)
    elif multipliers is None:  # of the active rows, if the method deactivates some
        method, inner = frozen((plan.integrator, inner))
        multipliers = method.multipliers(dynamics, method.record(inner), t, q, v, inputs)
    found = instant_warnings(dynamics.system, t, q, v, inputs, jax.lax.stop_gradient(multipliers))
    return {name: jnp.any(x) for name, x in found.items()}


def advance(
    plan: "Plan",
    start: Carry,
    first,
    t0,
    n_saves: int,
    count=None,
    *,
    reverse=False,
    explained=True,
):
    """Run `n_saves` blocks of `save_every` steps from block `first` of the phase, then compute
    outputs, see `Plan.advance`.

    With `count`, which is data, only that many blocks run. This supports forward mode or, with
    `reverse`, reverse mode. Without `explained`, the status is that of the steps, and it is not
    checked whether the controller explains a failure (see `failed_controller`)."""
    unprepared, plan = plan.dynamics.system, plan.prepared()
    dt = jnp.asarray(plan.dt)
    t = t0 + (first + jnp.arange(n_saves + 1)) * (plan.save_every * dt)
    rows = None if count is None else count + 1
    single = lambda carry, i: _stepper(plan, t0)(carry, i)[0]
    lanes = in_lanes(single, start, first * plan.save_every) if plan.lanes else None
    known = plan.hold > 0 or plan.integrator.traits.reports_initial_stage
    if known and rows is not None and not reverse and lanes is None:
        end, stored = _rows_of_steps(plan, start, first, t0, n_saves, count)
    else:
        end, stored = _rows_between_steps(plan, start, first, t0, n_saves, count, reverse, lanes)
        stored = *stored, None
    states, records, u, multipliers = stored
    status = end.status
    if explained and plan.controller_explains:
        code = failed_controller(plan, end.state, status)
        status = first_code(code, status[0]), status[1]
    trajectory, last, judged = stored_trajectory(
        plan, unprepared, t, states, u, multipliers, records, end.alarms, status, rows, reverse
    )
    events = plan.integrator.events(end.inner)
    found = lambda x: (x.events, x.statistics)
    trajectory = eqx.tree_at(found, trajectory, (events, end.counts), is_leaf=_is_unset)
    if explained:
        status = judged
    else:  # the judgement after a failure of the steps may still turn out not to be the reason
        status = first_code(status[0], judged[0]), judged[1]
    return trajectory, end._replace(state=last, status=status)


def _rows_of_steps(plan: "Plan", start: Carry, first, t0, n_saves: int, count):
    """Run the steps and store a row at the start of every block.

    Returns the final carry and, at `n_saves` + 1 instants, of which the first `count` + 1 are
    valid: states, records, inputs, and multipliers if steps begin by computing them. Stored inputs
    are those with which the step from that instant begins; one more step, which is not taken,
    provides the last ones. Controller and machine are therefore compiled for steps only."""
    step, every, dtype = _stepper(plan, t0), plan.save_every, start.state.q.dtype
    system, with_multipliers = plan.dynamics.system, plan.integrator.traits.reports_initial_stage
    unknown = jnp.zeros(system.n_u, dtype), None
    if with_multipliers:
        unknown = unknown[0], jnp.zeros(system.n_constraints, dtype)
    row = start.state, plan.integrator.record(start.inner), *unknown
    rows = jax.tree.map(lambda x: jnp.zeros((n_saves + 1, *jnp.shape(x)), jnp.result_type(x)), row)
    last = count * every

    def one(now):
        i, carry, rows = now
        new, taken = step(carry, first * every + i, i < last)
        found = taken if with_multipliers else taken._replace(multipliers=None)
        found = (None if x is None else jnp.asarray(x, dtype) for x in found)
        row = carry.state, plan.integrator.record(carry.inner), *found
        # steps between two stored instants write to the row of the later one; the step that starts
        # there writes it last
        k = i if plan.stores_all else (i + every - 1) // every
        return i + 1, new, jax.tree.map(lambda all, one: all.at[k].set(one), rows, row)

    begin = jnp.zeros_like(last), start, rows
    _, end, rows = jax.lax.while_loop(lambda now: now[0] <= last, one, begin)
    return end, rows


def _rows_between_steps(plan: "Plan", start: Carry, first, t0, n_saves: int, count, reverse, lanes):
    """The same without multipliers; inputs are computed again from stored states.

    This is for methods that do not begin a step with the inputs at its start, for reverse mode, and
    for steps of a batch in `lanes`."""
    step, every, together = _stepper(plan, t0), plan.save_every, lambda carry: carry
    if lanes is not None:
        in_numbers, start, together = lanes
        step = lambda carry, i: (in_numbers(carry, i), None)

    def block(carry, j):
        j = first + j
        if plan.stores_all:
            carry, _ = step(carry, j)
        elif counting:
            one = lambda i, carry: step(carry, j * every + i)[0]
            carry = jax.lax.fori_loop(0, every, one, carry)
        else:
            carry, _ = jax.lax.scan(quiet, carry, j * every + jnp.arange(every))
        return carry, keep(carry)

    def keep(carry):
        carry = together(carry)
        return carry.state, carry.memory, carry.held, plan.integrator.record(carry.inner)

    quiet = lambda carry, i: (step(carry, i)[0], None)
    counting = count is not None and not reverse  # then `every` may be data
    one_loop = not (counting or plan.stores_all)
    one_loop = one_loop and fits_flat(keep, start, n_saves * every, plan.adjoint)
    later = lambda carry, i: quiet(carry, first * every + i)
    if reverse:
        end, stored = flat(later, keep, start, n_saves, every, count)
    elif counting:
        end, stored = counted(block, start, n_saves, count)
    elif one_loop:
        end, stored = flat(later, keep, start, n_saves, every, adjoint=plan.adjoint)
    else:
        end, stored = loop(block, start, n_saves, plan.adjoint)
    prepend = lambda first, rest: jnp.concatenate([jnp.asarray(first)[None], rest])
    states, memories, helds, records = jax.tree.map(prepend, keep(start), stored)

    def inputs(k, t, state, memory, held):
        u = plan.control(t, state, memory)[0]
        return u if plan.hold <= 1 else jnp.where(k * every % plan.hold == 0, u, held[0])

    k = first + jnp.arange(n_saves + 1)
    given = k, t0 + k * (every * jnp.asarray(plan.dt)), states, memories, helds
    rows = None if count is None else count + 1
    return together(end), (states, records, each(inputs, *given, count=rows, reverse=reverse))


class Begun(NamedTuple):
    """Quantities that a step computes at its start: inputs (n_u,) and multipliers (m,); None if it
    does not compute them."""

    inputs: jax.Array | None
    multipliers: jax.Array | None


def _stepper(plan: "Plan", t0):
    """Return the function `(carry, index of the step) -> (carry, Begun)` of a prepared run; a step
    that is not `taken` leaves the carry unchanged."""
    system, dt = plan.dynamics.system, jnp.asarray(plan.dt)
    continuous = ContinuousInput(plan)

    def step(carry: Carry, i, taken=True):
        state, memory, held, inner, counts, alarms, watch, (code, failure) = carry
        t = t0 + i * dt
        refused = jnp.int32(GOOD)
        u = continuous
        if plan.hold:

            def sample():
                u, after, code = plan.control(t, state, memory)
                return (u, code), after

            keep = lambda: (held, memory)
            due = i % plan.hold == 0
            held, memory = sample() if plan.hold == 1 else jax.lax.cond(due, sample, keep)
            u, refused = _HeldInput(held[0]), held[1]
        # a failed step must not affect derivatives of other steps, in reverse mode either
        given = plan.integrator, plan.dynamics, t, dt, state, u, inner
        (method, dynamics, *given), token = shield(given) if plan.traced else (given, None)
        new, inner_new, solved, report = method.step(dynamics, *given)
        begun = Begun(held[0] if plan.hold else report.inputs, report.multipliers)
        project = dynamics.formulation.project
        new, projected = project(dynamics.system, t + dt, new, t, state)
        # sums are the cheapest reductions; they are not finite if an entry is not
        speed = jax.lax.stop_gradient(jnp.sum(jnp.abs(new.v)))
        finite = jnp.isfinite(jax.lax.stop_gradient(jnp.sum(jnp.abs(new.q))) + speed)
        watch, sane = watch.look(i, speed)
        valid = jnp.asarray(system.valid(t + dt, new.q, new.v)) & sane
        ended = first_code(
            refused,
            jnp.where(solved == Result.NEWTON_NOT_CONVERGED, GOOD, solved),
            projected,
            code_unless(finite, Result.NONFINITE_STATE),
            code_unless(valid, Result.RUNAWAY_STATE),
            solved,
        )
        alive = (code == GOOD) & taken
        if alarms:
            found = _alarms(plan, t, state, u, begun, inner)
            alarms = {
                name: jnp.where(found[name] & alive, jnp.minimum(time, t), time)
                for name, time in alarms.items()
            }
        failure = jnp.where(alive & (ended != GOOD), t + dt, failure)
        code = jnp.where(alive, ended, code)
        go = alive & (code == GOOD)
        if plan.traced:
            new, inner_new = close((new, inner_new), token, go)
        pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(go, a, b), new, old)
        # includes the step that failed
        counts = {k: n + jnp.where(alive, report.counts[k], 0) for k, n in counts.items()}
        new, inner = pick((new, inner_new), (state, inner))
        if taken is not True:
            now, before = (memory, held, watch), (carry.memory, carry.held, carry.watch)
            memory, held, watch = jax.tree.map(lambda a, b: jnp.where(taken, a, b), now, before)
        return Carry(new, memory, held, inner, counts, alarms, watch, (code, failure)), begun

    return step


def failed_controller(plan: "Plan", last: State, status):
    """Code of a controller, evaluated in every stage, that explains a step without solution.

    The controller is evaluated at the `last` good state, and at the states predicted half a step
    and one step later. The code is good if the controller does not fail there."""
    code, failure = status
    dynamics, dt = plan.dynamics, jnp.asarray(plan.dt)

    def look():
        t, q, v = failure - dt, last.q, last.v
        u = plan.control(t, last, ())[0]
        # if the controller already fails here, its code is used whatever the acceleration
        a = jnp.nan_to_num(dynamics.accelerate(t, q, v, u)[0])
        ahead = lambda h: State(dynamics.system.retract(q, h * (v + 0.5 * h * a)), v + h * a)
        at = lambda h: (t + h, ahead(h))
        # a loop, because controllers may take long to compile
        shares = jnp.asarray([0.0, 0.5, 1.0], last.q.dtype)
        codes = jax.lax.map(lambda share: plan.control(*at(share * dt), ())[2], shares)
        return first_code(*codes)

    unsolved = jnp.any(code == jnp.asarray(UNSOLVED, jnp.int32))
    return jax.lax.cond(unsolved, look, lambda: jnp.int32(GOOD))


_is_unset = lambda x: x is None or (isinstance(x, dict) and not x)
