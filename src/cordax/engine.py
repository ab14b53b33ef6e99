"""The compiled part of a simulation: time loop, status codes, outputs of stored states."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from ._checks import require, require_shape
from ._precision import as_float_array
from ._results import RESULTS
from .formulations import Dynamics
from .integrators import Diffrax, Integrator
from .loops import each, loop
from .mechanics import Controller, State
from .mechanics.constraints import rank_margin
from .trajectory import Trajectory


class Run(eqx.Module):
    """Everything that does not change along a run."""

    dynamics: Dynamics
    integrator: Integrator
    controller: Controller
    adjoint: str = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    #: steps between two calls of a sampled controller; 0: not sampled
    hold: int = eqx.field(static=True)

    def prepared(self) -> "Run":
        """The same with what is constant along the run computed once."""
        machine = self.dynamics.system.prepare()
        return eqx.tree_at(lambda run: run.dynamics.system, self, machine)


class _HeldInput(eqx.Module):
    u: jax.Array

    def __call__(self, t, q, v):
        return self.u


class _ContinuousInput(eqx.Module):
    controller: Controller

    def __call__(self, t, q, v):
        return self.controller(t, State(q, v), ())[0]


GOOD, _NONFINITE, _RUNAWAY, _UNSOLVED, _DRIFTED, _SINGULAR = range(6)

#: largest |Phi| of a run that counts as one
MAX_DRIFT = 1e-3
#: smallest pivot of the scaled Phi_q M^-1 Phi_q^T below which rows count as redundant
REDUNDANT = 1e-11


@eqx.filter_jit
def _integrate(run: Run, state, memory, status, t0, dt, n_saves: int):
    """One phase from `state`; `status` is how the phases before it ended, a code and a time.
    Returns the trajectory with its start, and the last state, memory and status."""
    if isinstance(run.integrator, Diffrax):
        return _integrate_diffrax(run, state, status, t0, dt, n_saves)
    trajectory, end = _blocks(run, _start(run, state, memory, status, t0, dt), 0, t0, dt, n_saves)
    return trajectory, end[0], end[1], end[-1]


def _start(run: Run, state, memory, status, t0, dt):
    """What the time loop carries: state, memory, held inputs, the integrator's own and status."""
    _check_inputs(run, state, memory, t0)
    run = run.prepared()
    u = _ContinuousInput(run.controller)
    held = None
    if run.hold:
        u = _HeldInput(run.controller(t0, state, memory)[0])
        held = jnp.zeros_like(u.u)
    return state, memory, held, run.integrator.init(run.dynamics, t0, dt, state, u), status


def _blocks(run: Run, start, first, t0, dt, n_saves: int):
    """`n_saves` blocks of steps, from block `first` of the phase, then outputs. Returns the
    trajectory, which includes the start, and what the next block needs."""
    unprepared, run = run.dynamics.system, run.prepared()
    system = run.dynamics.system
    continuous = _ContinuousInput(run.controller)

    def step(carry, i):
        state, memory, held, inner, (code, failure) = carry
        t = t0 + i * dt
        if run.hold:
            sample = lambda: run.controller(t, state, memory)
            keep = lambda: (held, memory)
            due = i % run.hold == 0
            held, memory = sample() if run.hold == 1 else jax.lax.cond(due, sample, keep)
            u = _HeldInput(held)
        else:
            u = continuous
        new, inner_new, solved = run.integrator.step(run.dynamics, t, dt, state, u, inner)
        new = run.dynamics.formulation.project(system, t + dt, new)
        finite = jnp.all(jnp.isfinite(jnp.concatenate([new.q, new.v])))
        valid = jnp.asarray(system.valid(t + dt, new.q, new.v))
        worst = jnp.where(
            finite, jnp.where(valid, jnp.where(solved, GOOD, _UNSOLVED), _RUNAWAY), _NONFINITE
        )
        worst = worst.astype(code.dtype)
        alive = code == GOOD
        failure = jnp.where(alive & (worst != GOOD), t + dt, failure)
        code = jnp.where(alive, worst, code)
        go = code == GOOD
        pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(go, a, b), new, old)
        return (pick(new, state), memory, held, pick(inner_new, inner), (code, failure)), None

    def block(carry, j):
        j = first + j
        if run.save_every == 1:
            carry, _ = step(carry, j)
        else:
            indices = j * run.save_every + jnp.arange(run.save_every)
            carry, _ = jax.lax.scan(step, carry, indices)
        return carry, keep(carry)

    def keep(carry):
        state, memory, held, inner, _ = carry
        return state, memory, held, run.integrator.record(inner)

    end, stored = loop(block, start, n_saves, run.adjoint)
    prepend = lambda first, rest: jnp.concatenate([jnp.asarray(first)[None], rest])
    states, memories, helds, records = jax.tree.map(prepend, keep(start), stored)
    k = first + jnp.arange(n_saves + 1)
    t = t0 + k * (run.save_every * dt)

    def inputs(k, t, state, memory, held):
        u = run.controller(t, state, memory)[0]
        return u if run.hold <= 1 else jnp.where(k * run.save_every % run.hold == 0, u, held)

    u = each(inputs, k, t, states, memories, helds)
    trajectory = _trajectory(run, unprepared, t, states, u, records, *end[-1])
    events = run.integrator.events(end[3])
    return eqx.tree_at(lambda x: x.events, trajectory, events, is_leaf=_is_none), end


_is_none = lambda x: x is None


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
    u = _ContinuousInput(run.controller)
    (q, v), finite, result = run.integrator.solve(run.dynamics, t, dt, state, u, adjoint)
    system = run.dynamics.system
    valid = jax.vmap(lambda t, q, v: jnp.asarray(system.valid(t, q, v)))(t, q, v)
    earlier = status[0] != GOOD
    bad = ~(finite & valid) | earlier
    first = jnp.argmax(bad)
    code = jnp.where(jnp.any(bad), jnp.where(finite[first], _RUNAWAY, _NONFINITE), GOOD)
    code = jnp.where(earlier, status[0], code.astype(status[0].dtype))
    failure = jnp.where(earlier, status[1], jnp.where(code == GOOD, jnp.inf, t[first]))
    # rows after the failure repeat the last good one, as with a fixed step
    last_good = jnp.where(code == GOOD, n_saves, jnp.maximum(first - 1, 0))
    row = jnp.minimum(jnp.arange(n_saves + 1), last_good)
    states = State(q[row], v[row])
    inputs = jax.vmap(lambda t, s: run.controller(t, s, ())[0])(t, states)
    trajectory = _trajectory(run, unprepared, t, states, inputs, (), code, failure)
    # Where diffrax gave up, states are missing; its reason says more than that they are.
    ended = RESULTS.promote(result)
    merged = RESULTS.where(
        (ended == RESULTS.successful) | earlier | (code == _RUNAWAY), trajectory.result, ended
    )
    trajectory = eqx.tree_at(lambda x: x.result, trajectory, merged)
    return trajectory, jax.tree.map(lambda x: x[-1], states), (), (code, failure)


def _trajectory(run: Run, system, t, states, u, records, code, failure) -> Trajectory:
    """Outputs, warnings and constraint errors of the stored states; `system` as the user gave
    it."""
    dynamics, integrator = run.dynamics, run.integrator
    machine = dynamics.system
    constrained = machine.n_constraints > 0

    def look(t, q, v, u, record):
        if constrained:
            multipliers = integrator.multipliers(dynamics, record, t, q, v, u)
            drift = jnp.max(jnp.abs(integrator.violation(dynamics, record, t, q)))
        else:
            multipliers, drift = jnp.zeros(0, q.dtype), jnp.zeros((), q.dtype)
        outputs = machine.outputs(t, q, v, u, multipliers)
        bad = {name: jnp.any(x) for name, x in machine.warnings(outputs).items()}
        return multipliers, drift, outputs, bad

    multipliers, drift, outputs, bad = each(look, t, states.q, states.v, u, records)
    within = t < failure
    first = lambda b: jnp.where(jnp.any(b & within), t[jnp.argmax(b & within)], jnp.inf)
    warnings = {name: first(b) for name, b in bad.items()}
    if constrained:
        code, failure = _judge_constraints(
            dynamics, t, states, first(drift > MAX_DRIFT), code, failure
        )
    result: Any = RESULTS.successful
    for value, name in (
        (_NONFINITE, "nonfinite_state"),
        (_RUNAWAY, "runaway_state"),
        (_UNSOLVED, "newton_not_converged"),
        (_DRIFTED, "constraint_drift"),
        (_SINGULAR, "singular_constraints"),
    ):
        result = RESULTS.where(code == value, getattr(RESULTS, name), result)
    return Trajectory(
        t, states.q, states.v, u, multipliers, drift, outputs, warnings, result, failure, system
    )


def _judge_constraints(dynamics: Dynamics, t, states, drifted, code, failure):
    """Whether constraints explain how a run ended: drift, or, where steps had no solution, rows
    that have become redundant in the last good state."""
    last = jax.tree.map(lambda x: x[-1], states)
    unsolved = (code == _NONFINITE) | (code == _UNSOLVED)
    margin = jax.lax.cond(
        unsolved,
        lambda: rank_margin(dynamics.system, t[-1], last.q),
        lambda: jnp.ones((), last.q.dtype),
    )
    # a margin that is not a number means that even a diagonal entry has vanished
    singular = unsolved & ~(margin > REDUNDANT)
    code = jnp.where(singular, _SINGULAR, code)
    late = (code == GOOD) & jnp.isfinite(drifted)
    return jnp.where(late, _DRIFTED, code), jnp.where(late, drifted, failure)


def advance(run: Run, state, memory, status, t0, dt, n_saves, progress):
    """One phase, in pieces when a progress bar is wanted: the compiled loop itself never calls
    back."""
    time, step = as_float_array(t0), as_float_array(dt)
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((run, state)))
    if not progress or traced or isinstance(run.integrator, Diffrax):
        return _integrate(run, state, memory, status, time, step, n_saves)
    from tqdm.auto import tqdm

    per_piece, parts = n_saves // _pieces(n_saves), []
    carry = eqx.filter_jit(_start)(run, state, memory, status, time, step)
    with tqdm(total=n_saves * run.save_every, unit="step", unit_scale=True) as bar:
        for first in range(0, n_saves, per_piece):
            part, carry = _piece(run, carry, jnp.asarray(first), time, step, per_piece)
            parts.append(part)
            bar.update(per_piece * run.save_every)
    return join(parts), carry[0], carry[1], carry[-1]


_piece = eqx.filter_jit(_blocks)


def _pieces(n_saves: int) -> int:
    """The largest divisor of `n_saves` up to 50, so that all pieces share one compiled function."""
    return max(d for d in range(1, 51) if n_saves % d == 0)


def join(parts: list[Trajectory]) -> Trajectory:
    """Trajectories end to end; the instant two of them share is taken from the later one."""
    arrays = lambda get: jnp.concatenate([get(p)[:-1] for p in parts[:-1]] + [get(parts[-1])])
    last = parts[-1]
    outputs = {name: arrays(lambda p, n=name: p.outputs[n]) for name in last.outputs}
    warnings = {n: jnp.min(jnp.stack([p.warnings[n] for p in parts])) for n in last.warnings}
    result, failure = parts[0].result, parts[0].failure_time
    for part in parts[1:]:
        good = result == RESULTS.successful
        result = RESULTS.where(good, part.result, result)
        failure = jnp.where(good, part.failure_time, failure)
    return Trajectory(
        arrays(lambda p: p.t),
        arrays(lambda p: p.q),
        arrays(lambda p: p.v),
        arrays(lambda p: p.u),
        _padded(parts),
        arrays(lambda p: p.violation),
        outputs,
        warnings,
        result,
        failure,
        last.system,
        _all_events(parts),
    )


def _padded(parts: list[Trajectory]):
    """Multipliers end to end; a phase with fewer constraints than another has zeros for the
    rest."""
    rows = max(p.multipliers.shape[-1] for p in parts)
    wide = [jnp.pad(p.multipliers, ((0, 0), (0, rows - p.multipliers.shape[-1]))) for p in parts]
    return jnp.concatenate([w[:-1] for w in wide[:-1]] + [wide[-1]])


def _all_events(parts: list[Trajectory]):
    if any(p.events is None for p in parts):
        return None
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *(p.events for p in parts))


def _check_inputs(run: Run, state, memory, t) -> None:
    """The shape of what the controller returns; done while tracing, where it costs nothing."""
    u = jax.eval_shape(lambda: run.controller(t, state, memory)[0])
    require_shape("control", u, (run.dynamics.system.n_u,))
