"""The time loop of a run, as it is traced: steps, what is stored of them, and how it ends."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_shape
from .._base.results import GOOD, Code, code_unless, first_code
from .._jax.batch_kernel import in_lanes
from .._jax.gradient_guard import close, frozen, shield
from ..formulations import Dynamics
from ..integrators import Integrator
from ..mechanics import Controller, State, System
from ..mechanics.shape_checks import check_shapes
from .adjoints import counted, each, fits_flat, flat, loop
from .divergence import Watch
from .postprocess import stored_trajectory

#: how steps without a solution end
UNSOLVED = Code.NONFINITE_STATE, Code.NEWTON_NOT_CONVERGED, Code.ACCURACY_NOT_REACHED


class Run(eqx.Module):
    """Everything that does not change along a run."""

    dynamics: Dynamics
    integrator: Integrator
    controller: Controller
    adjoint: str = eqx.field(static=True)
    #: steps between two stored instants: compiled in, or data where it is an array
    save_every: int | jax.Array
    #: steps between two calls of a sampled controller; 0: not sampled
    hold: int = eqx.field(static=True)
    #: whether derivatives may be asked for
    traced: bool = eqx.field(static=True, default=True)
    #: whether it is one of a batch, of which nothing is differentiated
    lanes: bool = eqx.field(static=True, default=False)

    def prepared(self) -> "Run":
        """The same with what is constant along the run computed once, also where the controller
        holds the machine."""
        system = self.dynamics.system
        ready = system.prepare()
        inside = lambda x: ready if _same(x, system) else x
        is_machine = lambda x: isinstance(x, System)
        controller = jax.tree.map(inside, self.controller, is_leaf=is_machine).prepare()
        both = ready, controller
        return eqx.tree_at(lambda run: (run.dynamics.system, run.controller), self, both)

    def reversible(self) -> "Run":
        """The same for numbers that some transformation hides."""
        if self.adjoint == "forward":
            return self
        return dataclasses.replace(self, integrator=self.integrator.reversible())

    @property
    def stores_all(self) -> bool:
        """Whether every step is stored, which is known when the run is compiled."""
        return isinstance(self.save_every, int) and self.save_every == 1

    def with_stride_as_data(self) -> "Run":
        """The same, compiled for all `save_every` above 1: for runs without reverse mode."""
        every = self.save_every if self.stores_all else np.asarray(self.save_every)
        return dataclasses.replace(self, save_every=every)

    @property
    def controller_explains(self) -> bool:
        """Whether a step may have no solution because the controller has none."""
        return self.hold == 0 and self.controller.may_fail

    def control(self, t, state, memory):
        """Inputs, memory and code of the controller, which is asked what it returns while tracing,
        where it costs nothing."""
        returned = self.controller(t, state, memory)
        name, wanted = type(self.controller).__name__, 3 if self.controller.may_fail else 2
        fits = isinstance(returned, tuple) and len(returned) == wanted
        form = "(u, memory, code)" if wanted == 3 else "(u, memory), or may_fail = True"
        require(fits, "control", f"{name} returning {returned}", f"{name} to return {form}")
        u, memory, *code = returned
        n, array = self.dynamics.system.n_u, hasattr(u, "shape") and u.dtype.kind in "fiu"
        require(array, "control", f"{name} returning {u}", f"an array of {n} real numbers")
        require_shape("control", u, (n,))
        return u, memory, jnp.asarray(code[0] if code else GOOD, jnp.int32)

    def check(self, state, t) -> None:
        """Whether the machine's functions return what they should."""
        system = self.dynamics.system
        numbers = lambda n: jax.ShapeDtypeStruct((n,), state.q.dtype)
        check_shapes(system, t, state, numbers(system.n_u), numbers(system.n_constraints))


def _same(a, b) -> bool:
    """Whether two trees hold the same objects."""
    if not isinstance(a, type(b)) or jax.tree.structure(a) != jax.tree.structure(b):
        return False
    both = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(x is y for x, y in both)


class _HeldInput(eqx.Module):
    """Inputs that stay as they are within a step, and may jump between two (`held`)."""

    u: jax.Array
    held: ClassVar[bool] = True

    def __call__(self, t, q, v):
        return self.u


class ContinuousInput(eqx.Module):
    """Inputs evaluated in every stage. Where the controller fails they are NaN, so that the step
    fails; why it did, `failed_controller` finds out afterwards."""

    run: Run
    held: ClassVar[bool] = False

    def switching_times(self) -> jax.Array | None:
        return self.run.controller.switching_times()

    def __call__(self, t, q, v):
        dynamics = self.run.dynamics
        seen = dynamics.formulation.seen(dynamics.system, t, State(q, v))
        u, _, code = self.run.control(t, seen, ())
        return jnp.where(code == GOOD, u, jnp.nan) if self.run.controller.may_fail else u


class Carry(NamedTuple):
    """What the time loop carries: state, the controller's memory, held inputs and their code, what
    the integrator carries, the first time of every alarm, how fast speeds grow, and how the run
    goes: a code and the time of failure."""

    state: State
    memory: Any
    held: Any
    inner: Any
    alarms: dict[str, jax.Array]
    watch: Watch
    status: Any


def start(run: Run, state, memory, status, t0, dt) -> Carry:
    run.check(state, t0)
    run = run.prepared()
    u = ContinuousInput(run)
    held = None
    if run.hold:
        u = _HeldInput(run.control(t0, state, memory)[0])
        held = jnp.zeros_like(u.u), jnp.int32(GOOD)
    inner = run.integrator.init(run.dynamics, t0, dt, state, u)
    alarms = dict.fromkeys(_alarm_names(run, state, t0), jnp.full((), jnp.inf, state.q.dtype))
    return Carry(state, memory, held, inner, alarms, Watch.of(state.v), status)


def _alarm_names(run: Run, state, t) -> tuple[str, ...]:
    if run.stores_all:
        return ()  # every step is stored, and warnings are found there
    system = run.dynamics.system
    if all(getattr(type(system), x) is getattr(System, x) for x in ("alarms", "warnings")):
        return ()
    u, multipliers = jnp.zeros(system.n_u), jnp.zeros(system.n_constraints)
    alarms = jax.eval_shape(system.alarms, t, state.q, state.v, u, multipliers)
    return tuple(sorted(alarms))


def _alarms(run: Run, t, state, u, begun: "Begun", inner) -> dict[str, jax.Array]:
    """Which alarms hold at the start of a step. Nothing of it carries derivatives."""
    dynamics, (t, q, v) = run.dynamics, jax.lax.stop_gradient((t, state.q, state.v))
    dynamics, u, (inputs, multipliers) = frozen((dynamics, u, begun))
    inputs = u(t, q, v) if inputs is None else inputs
    if dynamics.system.n_constraints == 0:
        multipliers = jnp.zeros(0, q.dtype)
    elif multipliers is None:  # of the rows that act, where the method lets some go
        method, inner = frozen((run.integrator, inner))
        multipliers = method.multipliers(dynamics, method.record(inner), t, q, v, inputs)
    found = dynamics.system.alarms(t, q, v, inputs, jax.lax.stop_gradient(multipliers))
    return {name: jnp.any(x) for name, x in found.items()}


def blocks(
    run: Run, start, first, t0, dt, n_saves: int, count=None, *, reverse=False, explained=True
):
    """`n_saves` blocks of steps, from block `first` of the phase, then outputs; with `count`, which
    is data, only so many of them, in forward mode or for `reverse` mode. Returns the trajectory,
    which includes the start, and what the next block needs; unless failures are to be `explained`
    by the controller, its status is that of the steps (see `failed_controller`)."""
    unprepared, run = run.dynamics.system, run.prepared()
    t = t0 + (first + jnp.arange(n_saves + 1)) * (run.save_every * dt)
    rows = None if count is None else count + 1
    single = lambda carry, i: _stepper(run, t0, dt)(carry, i)[0]
    lanes = in_lanes(single, start, first * run.save_every) if run.lanes else None
    known = run.hold > 0 or run.integrator.begins_at_start
    if known and rows is not None and not reverse and lanes is None:
        end, stored = _rows_of_steps(run, start, first, t0, dt, n_saves, count)
    else:
        end, stored = _rows_between_steps(run, start, first, t0, dt, n_saves, count, reverse, lanes)
        stored = *stored, None
    states, records, u, multipliers = stored
    status = end.status
    if explained and run.controller_explains:
        code = failed_controller(run, dt, end.state, status)
        status = first_code(code, status[0]), status[1]
    trajectory, last, judged = stored_trajectory(
        run, unprepared, t, states, u, multipliers, records, end.alarms, status, rows, reverse
    )
    events = run.integrator.events(end.inner)
    statistics = run.integrator.statistics(end.inner)
    found = lambda x: (x.events, x.statistics)
    trajectory = eqx.tree_at(found, trajectory, (events, statistics), is_leaf=_is_unset)
    if explained:
        status = judged
    else:  # what comes after a failure of the steps may still be found not to be its reason
        status = first_code(status[0], judged[0]), judged[1]
    return trajectory, end._replace(state=last, status=status)


def _rows_of_steps(run: Run, start: Carry, first, t0, dt, n_saves: int, count):
    """The end, and of `n_saves` + 1 instants, of which `count` + 1 have a meaning: states, records,
    inputs, and multipliers where steps begin with them. Inputs are those with which the step from
    there begins: one more step, which is not taken, tells the last ones. Controller and machine are
    then compiled for steps alone."""
    step, every, dtype = _stepper(run, t0, dt), run.save_every, start.state.q.dtype
    system, with_multipliers = run.dynamics.system, run.integrator.begins_at_start
    unknown = jnp.zeros(system.n_u, dtype), None
    if with_multipliers:
        unknown = unknown[0], jnp.zeros(system.n_constraints, dtype)
    row = start.state, run.integrator.record(start.inner), *unknown
    rows = jax.tree.map(lambda x: jnp.zeros((n_saves + 1, *jnp.shape(x)), jnp.result_type(x)), row)
    last = count * every

    def one(now):
        i, carry, rows = now
        new, taken = step(carry, first * every + i, i < last)
        found = taken if with_multipliers else taken._replace(multipliers=None)
        found = (None if x is None else jnp.asarray(x, dtype) for x in found)
        row = carry.state, run.integrator.record(carry.inner), *found
        # steps between two instants write the later one, and the step from there writes it last
        k = i if run.stores_all else (i + every - 1) // every
        return i + 1, new, jax.tree.map(lambda all, one: all.at[k].set(one), rows, row)

    begin = jnp.zeros_like(last), start, rows
    _, end, rows = jax.lax.while_loop(lambda now: now[0] <= last, one, begin)
    return end, rows


def _rows_between_steps(run: Run, start: Carry, first, t0, dt, n_saves: int, count, reverse, lanes):
    """The same without multipliers, inputs computed once more from states: for methods that do not
    begin a step with the inputs at its start, for reverse mode, and steps of a batch in `lanes`."""
    step, every, together = _stepper(run, t0, dt), run.save_every, lambda carry: carry
    if lanes is not None:
        in_numbers, start, together = lanes
        step = lambda carry, i: (in_numbers(carry, i), None)

    def block(carry, j):
        j = first + j
        if run.stores_all:
            carry, _ = step(carry, j)
        elif counting:
            one = lambda i, carry: step(carry, j * every + i)[0]
            carry = jax.lax.fori_loop(0, every, one, carry)
        else:
            carry, _ = jax.lax.scan(quiet, carry, j * every + jnp.arange(every))
        return carry, keep(carry)

    def keep(carry):
        carry = together(carry)
        return carry.state, carry.memory, carry.held, run.integrator.record(carry.inner)

    quiet = lambda carry, i: (step(carry, i)[0], None)
    counting = count is not None and not reverse  # then `every` may be data
    one_loop = not (counting or run.stores_all)
    one_loop = one_loop and fits_flat(keep, start, n_saves * every, run.adjoint)
    later = lambda carry, i: quiet(carry, first * every + i)
    if reverse:
        end, stored = flat(later, keep, start, n_saves, every, count)
    elif counting:
        end, stored = counted(block, start, n_saves, count)
    elif one_loop:
        end, stored = flat(later, keep, start, n_saves, every, adjoint=run.adjoint)
    else:
        end, stored = loop(block, start, n_saves, run.adjoint)
    prepend = lambda first, rest: jnp.concatenate([jnp.asarray(first)[None], rest])
    states, memories, helds, records = jax.tree.map(prepend, keep(start), stored)

    def inputs(k, t, state, memory, held):
        u = run.control(t, state, memory)[0]
        return u if run.hold <= 1 else jnp.where(k * every % run.hold == 0, u, held[0])

    k = first + jnp.arange(n_saves + 1)
    given = k, t0 + k * (every * dt), states, memories, helds
    rows = None if count is None else count + 1
    return together(end), (states, records, each(inputs, *given, count=rows, reverse=reverse))


class Begun(NamedTuple):
    """What a step has found at its start: inputs (n_u,) and multipliers (m,), None where it does
    not look."""

    inputs: jax.Array | None
    multipliers: jax.Array | None


def _stepper(run: Run, t0, dt):
    """`(carry, index of the step) -> (carry, Begun)` of a prepared run; a step that is not `taken`
    leaves the carry as it was."""
    system = run.dynamics.system
    continuous = ContinuousInput(run)

    def step(carry: Carry, i, taken=True):
        state, memory, held, inner, alarms, watch, (code, failure) = carry
        t = t0 + i * dt
        refused = jnp.int32(GOOD)
        u = continuous
        if run.hold:

            def sample():
                u, after, code = run.control(t, state, memory)
                return (u, code), after

            keep = lambda: (held, memory)
            due = i % run.hold == 0
            held, memory = sample() if run.hold == 1 else jax.lax.cond(due, sample, keep)
            u, refused = _HeldInput(held[0]), held[1]
        # a step that fails must not reach the derivatives of others, in reverse mode either
        given = run.integrator, run.dynamics, t, dt, state, u, inner
        (method, dynamics, *given), token = shield(given) if run.traced else (given, None)
        new, inner_new, solved, *begun = method.step(dynamics, *given)
        begun = Begun(held[0] if run.hold else begun[1], begun[0])
        project = dynamics.formulation.project
        new, projected = project(dynamics.system, t + dt, new, t, state)
        # sums, the cheapest reductions: not finite if an entry is not
        speed = jax.lax.stop_gradient(jnp.sum(jnp.abs(new.v)))
        finite = jnp.isfinite(jax.lax.stop_gradient(jnp.sum(jnp.abs(new.q))) + speed)
        watch, sane = watch.look(i, speed)
        valid = jnp.asarray(system.valid(t + dt, new.q, new.v)) & sane
        ended = first_code(
            refused,
            jnp.where(solved == Code.NEWTON_NOT_CONVERGED, GOOD, solved),
            projected,
            code_unless(finite, Code.NONFINITE_STATE),
            code_unless(valid, Code.RUNAWAY_STATE),
            solved,
        )
        alive = (code == GOOD) & taken
        if alarms:
            found = _alarms(run, t, state, u, begun, inner)
            alarms = {
                name: jnp.where(found[name] & alive, jnp.minimum(time, t), time)
                for name, time in alarms.items()
            }
        failure = jnp.where(alive & (ended != GOOD), t + dt, failure)
        code = jnp.where(alive, ended, code)
        go = alive & (code == GOOD)
        if run.traced:
            new, inner_new = close((new, inner_new), token, go)
        pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(go, a, b), new, old)
        spent = run.integrator.counting(inner, inner_new)  # also in the step that failed
        inner = jax.tree.map(lambda a, b: jnp.where(alive, a, b), spent, inner)
        new, inner = pick((new, inner_new), (state, inner))
        if taken is not True:
            now, before = (memory, held, watch), (carry.memory, carry.held, carry.watch)
            memory, held, watch = jax.tree.map(lambda a, b: jnp.where(taken, a, b), now, before)
        return Carry(new, memory, held, inner, alarms, watch, (code, failure)), begun

    return step


def failed_controller(run: Run, dt, last: State, status):
    """Whether a controller that is evaluated in every stage explains a step without solution: its
    code at the `last` good state, and half a step and a step on as the machine moves there; good
    where it does not."""
    code, failure = status
    dynamics = run.dynamics

    def look():
        t, q, v = failure - dt, last.q, last.v
        u = run.control(t, last, ())[0]
        # where the controller fails already its code is found, whatever the acceleration
        a = jnp.nan_to_num(dynamics.accelerate(t, q, v, u)[0])
        ahead = lambda h: State(dynamics.system.retract(q, h * (v + 0.5 * h * a)), v + h * a)
        at = lambda h: (t + h, ahead(h))
        # a loop: controllers may take long to compile
        shares = jnp.asarray([0.0, 0.5, 1.0], last.q.dtype)
        codes = jax.lax.map(lambda share: run.control(*at(share * dt), ())[2], shares)
        return first_code(*codes)

    unsolved = jnp.any(code == jnp.asarray(UNSOLVED, jnp.int32))
    return jax.lax.cond(unsolved, look, lambda: jnp.int32(GOOD))


_is_unset = lambda x: x is None or (isinstance(x, dict) and not x)
