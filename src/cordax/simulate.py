"""From a machine and a state to a trajectory."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._precision import as_float_array, warn_if_single
from ._results import RESULTS
from .formulations import Dynamics, Formulation, Minimal
from .integrators import BY_NAME, Diffrax, Integrator
from .loops import ADJOINTS, loop
from .mechanics import Controller, State, System, as_controller
from .mechanics.checks import known_values, require, require_finite, require_known, require_shape
from .trajectory import Trajectory

Adjoint = Literal["scan", "checkpointed", "forward"]


class SimulationError(RuntimeError):
    """A run that failed; the message says when, and what to try. `simulate(..., throw=False)`
    returns it instead."""


def simulate(
    system: System | Sequence[tuple[System, float]],
    state0: State | None = None,
    *,
    duration: float | None = None,
    dt: float | None = None,
    integrator: Integrator | str | None = None,
    formulation: Formulation | None = None,
    control: Any = None,
    t0: float = 0.0,
    save_every: int = 1,
    adjoint: Adjoint = "scan",
    throw: bool = True,
    progress: bool = False,
) -> Trajectory:
    """Simulate a machine.

    **Arguments:**

    - `system`: the machine, or a list of phases `[(system_a, t_switch), (system_b, t_end)]` with
      times [s].
    - `state0`: the start; the machine's `default_state()` if not given.
    - `duration`: simulated time [s], a whole number of steps; not given with phases.
    - `dt`: step [s]; the machine's `default_dt` if not given. With `Diffrax` it is the first step
      tried, and saves are `save_every * dt` apart.
    - `integrator`: an integrator or its name; the machine's default if not given.
    - `formulation`: how constraints are treated; `Minimal()` if not given.
    - `control`: a `Controller`, a function `(t, state) -> u`, constant inputs of shape (n_u,), or
      None for zero inputs.
    - `save_every`: store every n-th step. Outputs are computed for stored states only.
    - `adjoint`: what reverse-mode differentiation stores: "scan" everything (fastest),
      "checkpointed" the states at about sqrt(steps) instants (little memory, one more forward run),
      "forward" nothing (forward mode only).
    - `throw`: raise `SimulationError` on failure. Use `throw=False` in a batch: each member then
      carries its own `result`.
    - `progress`: show a progress bar (outside of `jit`).

    Composes with `jax.jit`, `grad`, `jvp` and `vmap`. Changing numbers, of the machine or of the
    call, does not recompile."""
    phases = _phases(system, duration, t0)
    machine = phases[0][0]
    dt = machine.default_dt if dt is None else dt
    _check_times(dt, save_every, phases, t0)
    require_known("adjoint", adjoint, ADJOINTS)
    state = machine.default_state() if state0 is None else state0
    require(isinstance(state, State), "state0", type(state).__name__, "a cordax.State(q, v)")
    integrator = _resolve_integrator(integrator, machine)
    formulation = Minimal() if formulation is None else formulation
    warn_if_single(state.q.dtype, type(machine).__name__)

    parts, time, memory = [], t0, None
    status = jnp.asarray(_GOOD), jnp.asarray(jnp.inf, as_float_array(t0).dtype)
    for machine, end in phases:
        _check_state(machine, state)
        dynamics = Dynamics(machine, formulation)
        formulation.check(machine)
        integrator.check(dynamics)
        controller = as_controller(control, machine, state.q.dtype)
        memory = controller.init(state) if memory is None else memory
        run = _Run(
            dynamics, integrator, controller, adjoint, save_every, _hold(controller, memory, dt)
        )
        state = formulation.enter(machine, as_float_array(time), state)
        n_saves = round((end - time) / dt) // save_every
        part, state, memory, status = _advance(
            run, state, memory, status, time, dt, n_saves, progress
        )
        parts.append(part)
        time = end
    trajectory = parts[0] if len(parts) == 1 else _join(parts)
    return _raise_failure(trajectory, dt, integrator) if throw else trajectory


class _Run(eqx.Module):
    """Everything that does not change along a run."""

    dynamics: Dynamics
    integrator: Integrator
    controller: Controller
    adjoint: str = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    hold: int = eqx.field(
        static=True
    )  # steps between two calls of a sampled controller; 0: not sampled


class _HeldInput(eqx.Module):
    u: jax.Array

    def __call__(self, t, q, v):
        return self.u


class _ContinuousInput(eqx.Module):
    controller: Controller

    def __call__(self, t, q, v):
        return self.controller(t, State(q, v), ())[0]


_GOOD, _NONFINITE, _RUNAWAY, _UNSOLVED = range(4)


@eqx.filter_jit
def _integrate(run: _Run, state, memory, status, t0, dt, n_saves: int):
    """One phase from `state`; `status` is how the phases before it ended, a code and a time.
    Returns the trajectory with its start, and the last state, memory and status."""
    if isinstance(run.integrator, Diffrax):
        return _integrate_diffrax(run, state, status, t0, dt, n_saves)
    trajectory, end = _blocks(run, _start(run, state, memory, status, t0), 0, t0, dt, n_saves)
    return trajectory, end[0], end[1], end[-1]


def _start(run: _Run, state, memory, status, t0):
    """What the time loop carries: state, memory, held inputs, the integrator's own and status."""
    _check_inputs(run, state, memory, t0)
    u = _ContinuousInput(run.controller)
    held = None
    if run.hold:
        u = _HeldInput(run.controller(t0, state, memory)[0])
        held = jnp.zeros_like(u.u)
    return state, memory, held, run.integrator.init(run.dynamics, t0, state, u), status


def _blocks(run: _Run, start, first, t0, dt, n_saves: int):
    """`n_saves` blocks of steps, from block `first` of the phase, then outputs. Returns the
    trajectory, which includes the start, and what the next block needs."""
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
            finite, jnp.where(valid, jnp.where(solved, _GOOD, _UNSOLVED), _RUNAWAY), _NONFINITE
        )
        worst = worst.astype(code.dtype)
        alive = code == _GOOD
        failure = jnp.where(alive & (worst != _GOOD), t + dt, failure)
        code = jnp.where(alive, worst, code)
        go = code == _GOOD
        pick = lambda new, old: jax.tree.map(lambda a, b: jnp.where(go, a, b), new, old)
        return (pick(new, state), memory, held, pick(inner_new, inner), (code, failure)), None

    def block(carry, j):
        j = first + j
        if run.save_every == 1:
            carry, _ = step(carry, j)
        else:
            indices = j * run.save_every + jnp.arange(run.save_every)
            carry, _ = jax.lax.scan(step, carry, indices)
        return carry, carry[:3]

    end, stored = loop(block, start, n_saves, run.adjoint)
    prepend = lambda first, rest: jnp.concatenate([jnp.asarray(first)[None], rest])
    states, memories, helds = jax.tree.map(prepend, start[:3], stored)
    k = first + jnp.arange(n_saves + 1)
    t = t0 + k * (run.save_every * dt)

    def inputs(k, t, state, memory, held):
        u = run.controller(t, state, memory)[0]
        return u if run.hold <= 1 else jnp.where(k * run.save_every % run.hold == 0, u, held)

    u = jax.vmap(inputs)(k, t, states, memories, helds)
    return _trajectory(run.dynamics, t, states, u, *end[-1]), end


def _integrate_diffrax(run: _Run, state, status, t0, dt, n_saves: int):
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
    earlier = status[0] != _GOOD
    bad = ~(finite & valid) | earlier
    first = jnp.argmax(bad)
    code = jnp.where(jnp.any(bad), jnp.where(finite[first], _RUNAWAY, _NONFINITE), _GOOD)
    code = jnp.where(earlier, status[0], code.astype(status[0].dtype))
    failure = jnp.where(earlier, status[1], jnp.where(code == _GOOD, jnp.inf, t[first]))
    # rows after the failure repeat the last good one, as with a fixed step
    last_good = jnp.where(code == _GOOD, n_saves, jnp.maximum(first - 1, 0))
    row = jnp.minimum(jnp.arange(n_saves + 1), last_good)
    states = State(q[row], v[row])
    inputs = jax.vmap(lambda t, s: run.controller(t, s, ())[0])(t, states)
    trajectory = _trajectory(run.dynamics, t, states, inputs, code, failure)
    # Where diffrax gave up, states are missing; its reason says more than that they are.
    ended = RESULTS.promote(result)
    merged = RESULTS.where(
        (ended == RESULTS.successful) | earlier | (code == _RUNAWAY), trajectory.result, ended
    )
    trajectory = eqx.tree_at(lambda x: x.result, trajectory, merged)
    return trajectory, jax.tree.map(lambda x: x[-1], states), (), (code, failure)


def _trajectory(dynamics: Dynamics, t, states, u, code, failure) -> Trajectory:
    """Outputs and warnings of the stored states."""
    system = dynamics.system

    def look(t, q, v, u):
        multipliers = dynamics.multipliers(t, q, v, u) if has_constraints else jnp.zeros(0, q.dtype)
        outputs = system.outputs(t, q, v, u, multipliers)
        bad = {name: jnp.any(x) for name, x in system.warnings(outputs).items()}
        return multipliers, outputs, bad

    has_constraints = jax.eval_shape(system.constraint, t[0], states.q[0]).shape[0] > 0
    multipliers, outputs, bad = jax.vmap(look)(t, states.q, states.v, u)
    within = t < failure
    first = lambda b: jnp.where(jnp.any(b & within), t[jnp.argmax(b & within)], jnp.inf)
    result: Any = RESULTS.successful
    for value, name in (
        (_NONFINITE, "nonfinite_state"),
        (_RUNAWAY, "runaway_state"),
        (_UNSOLVED, "newton_not_converged"),
    ):
        result = RESULTS.where(code == value, getattr(RESULTS, name), result)
    warnings = {name: first(b) for name, b in bad.items()}
    return Trajectory(
        t, states.q, states.v, u, multipliers, outputs, warnings, result, failure, system
    )


def _advance(run: _Run, state, memory, status, t0, dt, n_saves, progress):
    """One phase, in pieces when a progress bar is wanted: the compiled loop itself never calls
    back."""
    time, step = as_float_array(t0), as_float_array(dt)
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((run, state)))
    if not progress or traced or isinstance(run.integrator, Diffrax):
        return _integrate(run, state, memory, status, time, step, n_saves)
    from tqdm.auto import tqdm

    per_piece, parts = n_saves // _pieces(n_saves), []
    carry = eqx.filter_jit(_start)(run, state, memory, status, time)
    with tqdm(total=n_saves * run.save_every, unit="step", unit_scale=True) as bar:
        for first in range(0, n_saves, per_piece):
            part, carry = _piece(run, carry, jnp.asarray(first), time, step, per_piece)
            parts.append(part)
            bar.update(per_piece * run.save_every)
    return _join(parts), carry[0], carry[1], carry[-1]


_piece = eqx.filter_jit(_blocks)


def _pieces(n_saves: int) -> int:
    """The largest divisor of `n_saves` up to 50, so that all pieces share one compiled function."""
    return max(d for d in range(1, 51) if n_saves % d == 0)


def _join(parts: list[Trajectory]) -> Trajectory:
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
        arrays(lambda p: p.multipliers),
        outputs,
        warnings,
        result,
        failure,
        last.system,
    )


def _raise_failure(trajectory: Trajectory, dt, integrator) -> Trajectory:
    failed = trajectory.result != RESULTS.successful
    if isinstance(failed, Tracer):
        return trajectory.result.error_if(trajectory, failed)
    if bool(np.any(failed)):
        machine = type(trajectory.system).__name__
        raise SimulationError(
            f"{machine} with {type(integrator).__name__} at dt = {float(dt):g} s failed at t = "
            f"{float(trajectory.failure_time):g} s. {RESULTS[trajectory.result]}"
        )
    return trajectory


def _phases(system, duration, t0) -> list[tuple[System, float]]:
    if isinstance(system, System):
        require(duration is not None, "duration", duration, "the simulated time in seconds")
        require(
            _is_number(duration) and duration > 0 and math.isfinite(duration),
            "duration",
            duration,
            "a finite time > 0 s",
        )  # pyright: ignore
        return [(system, t0 + duration)]  # pyright: ignore
    require(duration is None, "duration", duration, "None when phases give the times")
    phases = list(system) if isinstance(system, Sequence) else []
    pair = lambda p: isinstance(p, Sequence) and len(p) == 2 and isinstance(p[0], System)
    ok = bool(phases) and all(pair(p) and _is_number(p[1]) for p in phases)
    require(ok, "system", system, "a System or a list of (System, end time)")
    times = [t0, *(end for _, end in phases)]
    require(
        all(a < b for a, b in itertools.pairwise(times)),
        "system",
        times,
        "phase times that increase",
    )
    return phases


def _check_times(dt, save_every, phases, t0) -> None:
    require(
        _is_number(dt) and math.isfinite(dt) and dt > 0,
        "dt",
        dt,
        "a finite step > 0 s, known outside of jit",
    )
    require(
        isinstance(save_every, int) and save_every >= 1,
        "save_every",
        save_every,
        "a whole number >= 1",
    )
    start = t0
    for _, end in phases:
        steps = (end - start) / dt
        whole = abs(steps - round(steps)) < 1e-6 * max(1.0, steps) and round(steps) >= 1
        require(whole, "duration", f"{end - start:g} s at dt = {dt:g} s", "a whole number of steps")
        require(
            round(steps) % save_every == 0,
            "save_every",
            save_every,
            f"a divisor of the {round(steps)} steps",
        )
        start = end


def _check_state(system: System, state: State) -> None:
    require_shape("state0.q", state.q, (system.n_q,))
    require_shape("state0.v", state.v, (system.n_v,))
    require_finite("state0.q", state.q)
    require_finite("state0.v", state.v)


def _resolve_integrator(integrator, system: System) -> Integrator:
    name = system.default_integrator if integrator is None else integrator
    if isinstance(name, str):
        require_known("integrator", name, BY_NAME)
        return BY_NAME[name]()
    require(
        isinstance(name, Integrator),
        "integrator",
        name,
        "an Integrator or one of " + ", ".join(BY_NAME),
    )
    return name


def _check_inputs(run: _Run, state, memory, t) -> None:
    """The shape of what the controller returns; done while tracing, where it costs nothing."""
    u = jax.eval_shape(lambda: run.controller(t, state, memory)[0])
    require_shape("control", u, (run.dynamics.system.n_u,))


def _hold(controller: Controller, memory, dt) -> int:
    """How many steps a controller's output is held; 0 if it is evaluated in every stage."""
    has_memory = len(jax.tree.leaves(memory)) > 0
    if controller.period is None:
        return 1 if has_memory else 0
    period = known_values(controller.period)
    require(
        period is not None, "control.period", controller.period, "a number known outside of jit"
    )
    steps = float(period) / dt  # pyright: ignore
    require(
        abs(steps - round(steps)) < 1e-6 and round(steps) >= 1,
        "control.period",
        controller.period,
        f"a whole number of steps of dt = {dt:g} s",
    )
    return round(steps)


def _is_number(x) -> bool:
    return isinstance(x, (int, float, np.floating, np.integer)) and not isinstance(x, bool)
