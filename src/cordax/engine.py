"""The compiled part of a simulation: the time loop and how it ends."""

import dataclasses
import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._checks import require, require_shape
from ._results import GOOD, RESULTS, Code, code_unless, first_code
from .consistency import check_start, look, look_compiled
from .formulations import Dynamics
from .integrators import Adaptive, Diffrax, Integrator
from .loops import counted, each, fits_flat, flat, loop
from .math.shield import close, shield
from .mechanics import Controller, State, System
from .mechanics.shapes import check_shapes
from .stored import pieces_together, stored_trajectory


class Run(eqx.Module):
    """Everything that does not change along a run."""

    dynamics: Dynamics
    integrator: Integrator
    controller: Controller
    adjoint: str = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    #: steps between two calls of a sampled controller; 0: not sampled
    hold: int = eqx.field(static=True)
    #: whether derivatives may be asked for
    traced: bool = eqx.field(static=True, default=True)

    def prepared(self) -> "Run":
        """The same with what is constant along the run computed once."""
        both = self.dynamics.system.prepare(), self.controller.prepare()
        return eqx.tree_at(lambda run: (run.dynamics.system, run.controller), self, both)

    def reversible(self) -> "Run":
        """The same for numbers that some transformation hides."""
        if self.adjoint == "forward" or not isinstance(self.integrator, Adaptive):
            return self
        return dataclasses.replace(
            self, integrator=dataclasses.replace(self.integrator, reverse=True)
        )

    def control(self, t, state, memory):
        """Inputs, memory and code of the controller."""
        u, memory, *code = self.controller(t, state, memory)
        return u, memory, jnp.asarray(code[0] if code else GOOD, jnp.int32)


class _HeldInput(eqx.Module):
    u: jax.Array

    def __call__(self, t, q, v):
        return self.u


class _ContinuousInput(eqx.Module):
    """Inputs evaluated in every stage. Where the controller fails they are NaN, so that the step
    fails; why it did, `judge_controller` finds out afterwards."""

    run: Run

    def __call__(self, t, q, v):
        u, _, code = self.run.control(t, State(q, v), ())
        return jnp.where(code == GOOD, u, jnp.nan) if self.run.controller.may_fail else u


@eqx.filter_jit
def _integrate(run: Run, state, memory, status, t0, dt, n_saves: int):
    """One phase from `state`; `status` is how the phases before it ended, a code and a time.
    Returns the trajectory with its start, and the last state, memory and status."""
    if isinstance(run.integrator, Diffrax):
        return _integrate_diffrax(run, state, status, t0, dt, n_saves)
    start = _start(run, state, memory, status, t0, dt)
    trajectory, end = _blocks(run, start, 0, t0, dt, n_saves)
    return trajectory, end.state, end.memory, end.status


class _Carry(NamedTuple):
    """What the time loop carries: state, the controller's memory, held inputs and their code, what
    the integrator carries, the first time of every alarm, how fast speeds grow, and how the run
    goes: a code and the time of failure."""

    state: State
    memory: Any
    held: Any
    inner: Any
    alarms: dict[str, jax.Array]
    watch: "_Watch"
    status: Any


#: speeds [m/s, rad/s], against 1 and the largest at the start, that no machine has
_BEYOND = 1e10
#: speeds that are suspicious if they came about in leaps; steps of a window, the factor by which
#: the largest speed ever leaps within one, and how many leaps in a row are too many
_FAST, _WINDOW, _LEAP, _LEAPS = 1e3, 8, 1.4, 25


class _Watch(NamedTuple):
    """Whether a run grows like one whose step is too large: by some factor in every few steps, for
    ever. A motion that its steps resolve does so at its beginning at most: one that grows like t^p
    leaps about 3 p times. Speed: the sum of all |v|."""

    scale: jax.Array
    largest: jax.Array
    window: jax.Array
    #: four for a leap, one less for a window without
    leaps: jax.Array

    @staticmethod
    def of(v) -> "_Watch":
        speed = jax.lax.stop_gradient(jnp.sum(jnp.abs(v)))
        return _Watch(jnp.maximum(speed, 1.0), speed, jnp.zeros_like(speed), jnp.int32(0))

    def look(self, i, speed) -> tuple["_Watch", jax.Array]:
        """At the end of step `i`: the watch, and whether all is well."""
        window = jnp.maximum(self.window, speed)
        full = i % _WINDOW == _WINDOW - 1
        leap = jnp.where(window > _LEAP * self.largest, 4, -1)
        leaps = jnp.where(full, jnp.maximum(self.leaps + leap, 0), self.leaps)
        largest = jnp.where(full, jnp.maximum(self.largest, window), self.largest)
        window = jnp.where(full, 0.0, window)
        suspicious = (leaps > 4 * _LEAPS) & (speed > _FAST * self.scale)
        away = suspicious | (speed > _BEYOND * self.scale)
        return _Watch(self.scale, largest, window, leaps.astype(jnp.int32)), ~away


def _start(run: Run, state, memory, status, t0, dt) -> _Carry:
    _check_inputs(run, state, memory, t0)
    run = run.prepared()
    u = _ContinuousInput(run)
    held = None
    if run.hold:
        u = _HeldInput(run.control(t0, state, memory)[0])
        held = jnp.zeros_like(u.u), jnp.int32(GOOD)
    inner = run.integrator.init(run.dynamics, t0, dt, state, u)
    alarms = dict.fromkeys(_alarm_names(run, state, t0), jnp.full((), jnp.inf, state.q.dtype))
    return _Carry(state, memory, held, inner, alarms, _Watch.of(state.v), status)


def _alarm_names(run: Run, state, t) -> tuple[str, ...]:
    if run.save_every == 1:
        return ()  # every step is stored, and warnings are found there
    system = run.dynamics.system
    u, multipliers = jnp.zeros(system.n_u), jnp.zeros(system.n_constraints)
    alarms = jax.eval_shape(system.alarms, t, state.q, state.v, u, multipliers)
    return tuple(sorted(alarms))


def _alarms(run: Run, t, state, u, multipliers, inner) -> dict[str, jax.Array]:
    """Which alarms hold at the start of a step. Nothing of it carries derivatives."""
    dynamics, (t, q, v) = run.dynamics, jax.lax.stop_gradient((t, state.q, state.v))
    dynamics, u = _frozen((dynamics, u))
    inputs = u(t, q, v)
    if dynamics.system.n_constraints == 0:
        multipliers = jnp.zeros(0, q.dtype)
    elif multipliers is None:  # of the rows that act, where the method lets some go
        method, inner = _frozen((run.integrator, inner))
        multipliers = method.multipliers(dynamics, method.record(inner), t, q, v, inputs)
    found = dynamics.system.alarms(t, q, v, inputs, jax.lax.stop_gradient(multipliers))
    return {name: jnp.any(x) for name, x in found.items()}


def _frozen(tree):
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def _blocks(run: Run, start, first, t0, dt, n_saves: int, count=None):
    """`n_saves` blocks of steps, from block `first` of the phase, then outputs; with `count`, which
    is data, only so many of them. Returns the trajectory, which includes the start, and what the
    next block needs."""
    unprepared, run = run.dynamics.system, run.prepared()
    system = run.dynamics.system
    continuous = _ContinuousInput(run)

    def step(carry: _Carry, i):
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
        new, inner_new, solved, multipliers = method.step(dynamics, *given)
        new, projected = dynamics.formulation.project(dynamics.system, t + dt, new)
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
        alive = code == GOOD
        if alarms:
            found = _alarms(run, t, state, u, multipliers, inner)
            alarms = {
                name: jnp.where(found[name] & alive, jnp.minimum(time, t), time)
                for name, time in alarms.items()
            }
        failure = jnp.where(alive & (ended != GOOD), t + dt, failure)
        code = jnp.where(alive, ended, code)
        go = code == GOOD
        if run.traced:
            new, inner_new = close((new, inner_new), token, go)
        pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(go, a, b), new, old)
        new, inner = pick((new, inner_new), (state, inner))
        return _Carry(new, memory, held, inner, alarms, watch, (code, failure)), None

    def block(carry, j):
        j = first + j
        if run.save_every == 1:
            carry, _ = step(carry, j)
        else:
            indices = j * run.save_every + jnp.arange(run.save_every)
            carry, _ = jax.lax.scan(step, carry, indices)
        return carry, keep(carry)

    def keep(carry: _Carry):
        return carry.state, carry.memory, carry.held, run.integrator.record(carry.inner)

    steps = n_saves * run.save_every
    one_loop = run.adjoint == "scan" and run.save_every > 1 and fits_flat(keep, start, steps)
    if count is None and one_loop:
        end, stored = flat(step, keep, start, n_saves, run.save_every)
    elif count is None:
        end, stored = loop(block, start, n_saves, run.adjoint)
    else:
        end, stored = counted(block, start, n_saves, count)
    prepend = lambda first, rest: jnp.concatenate([jnp.asarray(first)[None], rest])
    states, memories, helds, records = jax.tree.map(prepend, keep(start), stored)
    k = first + jnp.arange(n_saves + 1)
    t = t0 + k * (run.save_every * dt)

    def inputs(k, t, state, memory, held):
        u = run.control(t, state, memory)[0]
        return u if run.hold <= 1 else jnp.where(k * run.save_every % run.hold == 0, u, held[0])

    rows = None if count is None else count + 1
    u = each(inputs, k, t, states, memories, helds, count=rows)
    status = end.status
    if run.hold == 0 and run.controller.may_fail:
        status = _judge_controller(run, dt, end.state, status)
    trajectory, last, status = stored_trajectory(
        run, unprepared, t, states, u, records, end.alarms, status, rows
    )
    events = run.integrator.events(end.inner)
    statistics = run.integrator.statistics(end.inner)
    found = lambda x: (x.events, x.statistics)
    trajectory = eqx.tree_at(found, trajectory, (events, statistics), is_leaf=_is_unset)
    return trajectory, end._replace(state=last, status=status)


def _judge_controller(run: Run, dt, last: State, status):
    """Whether a controller that is evaluated in every stage explains a step without solution: its
    code at the last good state, and half a step and a step on."""
    code, failure = status
    retract = run.dynamics.system.retract

    def look():
        at = lambda h: (failure - dt + h, State(retract(last.q, h * last.v), last.v))
        # a loop: controllers may take long to compile
        shares = jnp.asarray([0.0, 0.5, 1.0], last.q.dtype)
        codes = jax.lax.map(lambda share: run.control(*at(share * dt), ())[2], shares)
        return first_code(*codes, code)

    unsolved = (code == Code.NONFINITE_STATE) | (code == Code.NEWTON_NOT_CONVERGED)
    return jax.lax.cond(unsolved, look, lambda: code.astype(jnp.int32)), failure


_is_unset = lambda x: x is None or (isinstance(x, dict) and not x)


def _integrate_diffrax(run: Run, state, status, t0, dt, n_saves: int):
    unprepared, run = run.dynamics.system, run.prepared()
    assert isinstance(run.integrator, Diffrax)
    require(
        run.hold == 0,
        "control",
        type(run.controller).__name__,
        "a controller without memory or period, which Diffrax evaluates in every stage",
    )
    _check_inputs(run, state, (), t0)
    adjoint = (
        diffrax.ForwardMode() if run.adjoint == "forward" else diffrax.RecursiveCheckpointAdjoint()
    )
    t = t0 + jnp.arange(n_saves + 1) * (run.save_every * dt)
    u = _ContinuousInput(run)
    (q, v), finite, result = run.integrator.solve(run.dynamics, t, dt, state, u, adjoint)
    system = run.dynamics.system
    valid = jax.vmap(lambda t, q, v: jnp.asarray(system.valid(t, q, v)))(t, q, v)
    earlier = status[0] != GOOD
    bad = ~(finite & valid) | earlier
    first = jnp.argmax(bad)
    kind = jnp.where(finite[first], Code.RUNAWAY_STATE, Code.NONFINITE_STATE)
    code = jnp.where(jnp.any(bad), kind, GOOD)
    code = jnp.where(earlier, status[0], code.astype(status[0].dtype))
    failure = jnp.where(earlier, status[1], jnp.where(code == GOOD, jnp.inf, t[first]))
    # rows after the failure repeat the last good one, as with a fixed step
    last_good = jnp.where(code == GOOD, n_saves, jnp.maximum(first - 1, 0))
    row = jnp.minimum(jnp.arange(n_saves + 1), last_good)
    states = State(q[row], v[row])
    inputs = jax.vmap(lambda t, s: run.controller(t, s, ())[0])(t, states)
    trajectory, last, (code, failure) = stored_trajectory(
        run, unprepared, t, states, inputs, (), {}, (code, failure)
    )
    # Where diffrax gave up, states are missing; its reason says more than that they are.
    ended = RESULTS.promote(result)
    known = (ended == RESULTS.successful) | earlier | (code == Code.RUNAWAY_STATE)
    merged = RESULTS.where(known, trajectory.result, ended)
    trajectory = eqx.tree_at(lambda x: x.result, trajectory, merged)
    return trajectory, last, (), (code, failure)


#: stored instants of a compiled piece: the number of pieces, and of instants in the last, is data
CAPACITY = 2048


def advance(run: Run, state, memory, status, t0, dt, n_saves, progress, *, joined=False):
    """One phase of `n_saves` blocks of steps. Outside of JAX's transformations in pieces of a fixed
    size, so that no duration compiles anew; a progress bar moves from piece to piece, as the
    compiled loop itself never calls back. `joined`: constraints are new."""
    given = state, memory, status
    leaves, structure = jax.tree.flatten(run)
    known = not any(isinstance(x, Tracer) for x in (*leaves, *jax.tree.leaves(given)))
    time, step = (np.asarray(x, state.q.dtype) for x in (t0, dt))
    if known and not isinstance(run.integrator, Diffrax):
        found = _in_pieces(run, leaves, structure, given, time, step, n_saves, progress, joined)
        if found is not None:
            return found
        run = run.reversible()
    system, time, step = run.dynamics.system, jnp.asarray(time), jnp.asarray(step)
    if (system.n_constraints or type(system).valid is not System.valid) and not _any_traced(
        (system, state)
    ):
        looked = look_compiled(system, state, time, run.integrator.lets_go)
        check_start(system, state, time, looked, joined=joined)
    return _integrate(run, *given, time, step, n_saves)


def _in_pieces(run: Run, leaves, structure, given, time, step, n_saves, progress, joined):
    """None where it turns out that a function of the machine or of the controller refers to a
    number of some transformation."""
    is_array = tuple(isinstance(x, (jax.Array, np.ndarray)) for x in leaves)
    others = tuple(None if a else x for a, x in zip(is_array, leaves, strict=True))
    static = structure, is_array, others
    arrays = [x for a, x in zip(is_array, leaves, strict=True) if a]
    carry, looked = _compiled_start(static, arrays, *given, time, step)
    if _any_traced(carry):
        return None
    system = run.dynamics.system
    check_start(system, given[0], time, looked, joined=joined)
    if progress:
        from tqdm.auto import tqdm

        bar = tqdm(total=n_saves * run.save_every, unit="step", unit_scale=True)
    else:
        bar = None
    per_piece = min(CAPACITY, -(-n_saves // 50)) if progress else CAPACITY
    parts, counts = [], []
    for first in range(0, n_saves, per_piece):
        count = min(per_piece, n_saves - first)
        numbers = np.asarray(first), time, step, np.asarray(count)
        part, carry = _compiled_blocks(static, CAPACITY, arrays, carry, *numbers)
        if _any_traced((part, carry)):
            return None
        parts.append(part)
        counts.append(count)
        if bar is not None:
            jax.block_until_ready(part.t)
            bar.update(count * run.save_every)
    if bar is not None:
        bar.close()
    return pieces_together(parts, counts, system), carry.state, carry.memory, carry.status


def _any_traced(tree) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


# `jax.jit` on the bare arrays of a run: calling `eqx.filter_jit` takes as long as many a run.
@functools.partial(jax.jit, static_argnums=0)
def _compiled_start(static, arrays, state, memory, status, t0, dt):
    run = _untraced(static, arrays)
    carry = _start(run, state, memory, status, t0, dt)
    return carry, look(run.dynamics.system, state, t0, run.integrator.lets_go)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled_blocks(static, capacity: int, arrays, carry, first, t0, dt, count):
    part, carry = _blocks(_untraced(static, arrays), carry, first, t0, dt, capacity, count)
    return dataclasses.replace(part, system=None), carry


def _untraced(static, arrays) -> Run:
    """The run with its arrays put back, without what derivatives would need."""
    structure, is_array, others = static
    arrays = iter(arrays)
    leaves = [next(arrays) if a else x for a, x in zip(is_array, others, strict=True)]
    return dataclasses.replace(jax.tree.unflatten(structure, leaves), traced=False)


def _check_inputs(run: Run, state, memory, t) -> None:
    """What the controller returns; done while tracing, where it costs nothing."""
    name, wanted = type(run.controller).__name__, 3 if run.controller.may_fail else 2
    returned = jax.eval_shape(lambda: run.controller(t, state, memory))
    fits = isinstance(returned, tuple) and len(returned) == wanted
    form = "(u, memory, code)" if wanted == 3 else "(u, memory), or may_fail = True"
    require(fits, "control", f"{name} returning {returned}", f"{name} to return {form}")
    system = run.dynamics.system
    u, n = returned[0], system.n_u
    array = hasattr(u, "shape") and u.dtype.kind in "fiu"
    require(array, "control", f"{name} returning {u}", f"an array of {n} real numbers")
    require_shape("control", u, (n,))
    numbers = lambda n: jax.ShapeDtypeStruct((n,), state.q.dtype)
    check_shapes(system, t, state, numbers(system.n_u), numbers(system.n_constraints))
