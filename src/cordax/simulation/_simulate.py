"""From a machine and a state to a trajectory."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._base.checks import is_number, require, require_known, require_number, require_whole
from .._base.compiled_errors import raise_compiled
from .._base.precision import as_float_array, warn_if_single
from .._base.results import GOOD, RESULTS, Code
from .._jax.identity import one_call
from ..formulations import Formulation
from ..integrators import Integrator
from ..mechanics import State, System
from .adjoints import ADJOINTS
from .executor import advance, advance_whole
from .experiment import Experiment
from .plan import default_state, prepare
from .postprocess import join
from .time_loop import Run
from .trajectory import Trajectory

Adjoint = Literal["scan", "checkpointed", "forward"]


#: what the counter of steps holds
MOST_STEPS = 2**31

_SUCCESS = np.asarray(RESULTS.successful._value)  # pyright: ignore[reportAttributeAccessIssue]


class SimulationError(RuntimeError):
    """A run that failed; the message says when, and what to try. `simulate(..., throw=False)`
    returns it instead."""


def simulate(
    system: System | Experiment | Sequence[tuple[System, float]],
    state0: State | None = None,
    *,
    duration: float | None = None,
    dt: float | None = None,
    integrator: Integrator | str | None = None,
    formulation: Formulation | None = None,
    control: Any = None,
    accuracy: float | None = None,
    t0: float = 0.0,
    save_every: int = 1,
    adjoint: Adjoint = "scan",
    throw: bool = True,
    progress: bool = False,
) -> Trajectory:
    """Simulate a machine.

    **Arguments:**

    - `system`: the machine, or a list of phases `[(system_a, t_switch), (system_b, t_end)]` with
      times [s]; a phase after the first may be a function from the state at the switch to the
      machine (`robot.pick`), or to the machine and its state, which may have other coordinates
      (a body that is let go); `Trajectory.phases` then has each phase by itself. Where constraints
      are new, velocities jump so that momentum is conserved. Or an `Experiment`, which has all of
      these but `accuracy`, `adjoint`, `throw` and `progress`.
    - `state0`: the start; the machine's `default_state()` if not given.
    - `duration`: simulated time [s], a whole number of steps; not given with phases.
    - `dt`: step [s]; the machine's `default_dt` if not given. With `Diffrax` it is the first step
      tried, and saves are `save_every * dt` apart.
    - `integrator`: an integrator or its name; the machine's default if not given.
    - `accuracy`: error allowed in a step, relative to 1 + |x|, in every coordinate and velocity
      [SI]; implicit methods leave out velocities of vibrations that are fast for `dt`. Steps are
      then as long as it allows and `dt`, the largest of them, is the distance of the instants that
      `save_every` counts and controllers are sampled at; a step without solution is repeated
      smaller (`cordax.Adaptive`). Steps end where inputs jump if the controller states these
      instants (`Controller.switching_times`); a pulse of another function that is much shorter than
      `dt` may be missed. In batches without reverse mode take `adjoint="forward"`.
    - `formulation`: how constraints are treated; if not given `Minimal()` for machines without
      them, `Index3()` for integrators that solve them, else `Baumgarte()`.
    - `control`: a `Controller`, a function `(t, state) -> u`, constant inputs of shape (n_u,), or
      None for zero inputs.
    - `save_every`: store every n-th step. Outputs are computed for stored states only.
    - `adjoint`: what reverse-mode differentiation stores: "scan" everything (fastest),
      "checkpointed" the states every 16 steps, outside of `jit` at every 2048th (little memory, one
      more forward run), "forward" nothing (forward mode only).
    - `throw`: raise `SimulationError` on failure. Use `throw=False` in a batch: each member then
      carries its own `result`.
    - `progress`: show a progress bar (outside of `jit`).

    Composes with `jax.jit`, `grad`, `jvp` and `vmap`. Changing numbers, of the machine or of the
    call, the duration included, does not recompile the time loop, under `grad`, `jvp` and `vmap`
    neither; nor does, outside of them, a new `save_every` above 1. Within a `jax.jit` of yours a
    new duration traces your function anew. `jax.linearize`
    needs such a `jit` around the run.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    run = cordax.simulate(Pendulum(), dt=0.01, duration=1.0)
    print(run.summary(), run["angle"].shape)  # (101,) [rad]
    ```
    """
    if isinstance(system, Experiment):
        given = {
            "state0": state0,
            "duration": duration,
            "dt": dt,
            "integrator": integrator,
            "formulation": formulation,
            "control": control,
        }
        _refuse({name: x for name, x in given.items() if x is not None})
        options = {"adjoint": adjoint, "throw": throw, "progress": progress, "accuracy": accuracy}
        return simulate(**system.arguments(), **options)
    require_number("t0", t0, positive=False)
    for name, flag in (("throw", throw), ("progress", progress)):
        require(isinstance(flag, bool), name, flag, "True or False")
    phases = _phases(system, duration, t0)
    machine = phases[0][0]
    dt = machine.default_dt if dt is None else dt
    _check_times(dt, save_every, phases, t0)
    require_known("adjoint", adjoint, ADJOINTS)
    state = default_state(machine) if state0 is None else state0
    require(isinstance(state, State), "state0", type(state).__name__, "a cordax.State(q, v)")
    settings = {"accuracy": accuracy, "adjoint": adjoint, "save_every": save_every, "dt": dt}

    parts, time, memory, run = [], t0, None, None
    status = good_status(state)
    for number, (phase, end) in enumerate(phases):
        if not isinstance(phase, System):
            machine, state = _phase_start(phase, state)
        elif number > 0:
            machine = phase
        how = integrator, formulation, control
        with one_call():
            run, memory, status = _begin(machine, state, *how, settings, memory, status, time)
            if number > 0:
                entered = run.dynamics.formulation.enter(machine, as_float_array(time), state)
                go = status[0] == GOOD  # a run that has failed does not move any more
                state = jax.tree.map(
                    lambda new, old, go=go: jnp.where(go, new, old), entered, state
                )
            n_saves = round((end - time) / dt) // save_every
            part, state, memory, status = advance(
                run, state, memory, status, time, dt, n_saves, progress, joined=number > 0
            )
        parts.append(part)
        time = end
    trajectory = parts[0] if len(parts) == 1 else join(parts)
    return _raise_failure(trajectory, dt, run.integrator) if throw and run else trajectory


def _begin(machine, state, integrator, formulation, control, settings, memory, status, time):
    """The run of a phase, the memory of its controller, and whether it may start."""
    run, memory, fit = prepare(
        machine, state, integrator, formulation, control, memory=memory, **settings
    )
    warn_if_single(state.q.dtype, type(machine).__name__)
    return run, memory, _refused_unless(fit, status, time)


class Start(NamedTuple):
    """A run of one phase before its first step, and the times [s] it was asked for."""

    run: Run
    given: tuple
    t0: float
    dt: float
    duration: float | None


def start_of(
    system: System,
    state0: State | None = None,
    *,
    duration: float | None = None,
    dt: float | None = None,
    integrator: Integrator | str | None = None,
    formulation: Formulation | None = None,
    control: Any = None,
    accuracy: float | None = None,
    t0: float = 0.0,
    save_every: int = 1,
) -> Start:
    """For a run without reverse mode whose duration is data; arguments as in `simulate`."""
    require_number("t0", t0, positive=False)
    require_whole("save_every", save_every, 1)
    dt = system.default_dt if dt is None else dt
    _check_step(dt)
    state = default_state(system) if state0 is None else state0
    require(isinstance(state, State), "state0", type(state).__name__, "a cordax.State(q, v)")
    settings = {"accuracy": accuracy, "adjoint": "forward", "save_every": save_every, "dt": dt}
    how = integrator, formulation, control
    run, memory, status = _begin(system, state, *how, settings, None, good_status(state), t0)
    return Start(run, (state, memory, status), t0, dt, duration)


def simulate_steps(
    experiment: Experiment, steps: int, *, state: State | None = None, t0=None, dt=None
) -> Trajectory:
    """So many steps of an experiment without switches, for derivatives by its times: `state` at
    `t0` [s], and a step `dt` [s], may all be numbers of a transformation; the experiment's own if
    not given. Its controller starts anew."""
    require(not experiment.switches, "switches", experiment.switches, "none")
    own = experiment.dt
    usual = experiment.system.default_dt if own is None else own
    _check_step(usual)
    require_whole("steps", steps, 1)
    fits = steps % experiment.save_every == 0
    require(fits, "save_every", experiment.save_every, f"a divisor of the {steps} steps")
    state = experiment.start if state is None else state
    settings = {"accuracy": None, "adjoint": "scan", "dt": usual}
    settings["save_every"] = experiment.save_every
    how = experiment.integrator, experiment.formulation, experiment.inputs
    time = experiment.t0 if t0 is None else t0
    begun = _begin(experiment.system, state, *how, settings, None, good_status(state), time)
    run, memory, status = begun
    time, step = as_float_array(time), as_float_array(usual if dt is None else dt)
    n_saves = steps // experiment.save_every
    return advance_whole(run, state, memory, status, time, step, n_saves)


def good_status(state: State):
    """How a run goes before it starts: a code and a time of failure."""
    return np.asarray(GOOD, np.int32), np.asarray(math.inf, state.q.dtype)


def stored_count(t0: float, dt: float, duration: float | None, save_every: int) -> int:
    """How many instants after the start a run stores."""
    _check_duration(duration)
    end = t0 + duration  # pyright: ignore[reportOperatorIssue]
    _check_times(dt, save_every, [(None, end)], t0)
    return round((end - t0) / dt) // save_every


def _refused_unless(fit, status, time):
    """The status of a run whose numbers a transformation hides: `fit`, whether they are allowed."""
    if fit is True:
        return status
    code, failure = status
    refused = ~fit & (code == GOOD)
    code = jnp.where(refused, jnp.int32(Code.INVALID_NUMBERS), code)
    return code, jnp.where(refused, as_float_array(time), failure)


def _refuse(given: dict) -> None:
    if given:
        names, values = ", ".join(given), ", ".join(f"{name}=..." for name in given)
        raise ValueError(
            f"{names} cannot be given together with an Experiment; use experiment.replace({values})"
        )


def _phase_start(phase, state: State) -> tuple[Any, Any]:
    made = phase(state)
    machine, state = made if isinstance(made, tuple) and len(made) == 2 else (made, state)
    ok = isinstance(machine, System) and isinstance(state, State)
    require(ok, "system", made, "a phase function to return a System, or a System and its State")
    return machine, state


def _raise_failure(trajectory: Trajectory, dt, integrator) -> Trajectory:
    code = trajectory.result._value  # pyright: ignore[reportAttributeAccessIssue]
    machine, method = type(trajectory.system).__name__, type(integrator).__name__
    who = f"{machine} with {method} at dt = {float(dt):g} s failed"
    if isinstance(code, Tracer):
        reasons = RESULTS._index_to_message  # pyright: ignore[reportAttributeAccessIssue]
        tell = lambda reason, time: f"{who} at t = {time:g} s. {reason}"
        failed = trajectory.result != RESULTS.successful
        return raise_compiled(trajectory, failed, code, reasons, tell, trajectory.failure_time)
    if np.any(np.asarray(code) != _SUCCESS):
        time = float(trajectory.failure_time)
        raise SimulationError(f"{who} at t = {time:g} s. {RESULTS[trajectory.result]}")
    return trajectory


def _phases(system, duration, t0) -> list[tuple[System, float]]:
    if isinstance(system, System):
        _check_duration(duration)
        return [(system, t0 + duration)]  # pyright: ignore
    expected = "a System or a list of (System or function of State, end time)"
    require(isinstance(system, (list, tuple)), "system", system, expected)
    require(duration is None, "duration", duration, "None when phases give the times")
    phases = list(system)
    pair = lambda p: (
        isinstance(p, Sequence) and len(p) == 2 and is_number(p[1]) and math.isfinite(p[1])
    )
    ok = bool(phases) and all(
        pair(p) and (isinstance(p[0], System) or callable(p[0])) for p in phases
    )
    require(ok, "system", system, expected)
    require(isinstance(phases[0][0], System), "system", phases[0][0], "a System as first phase")
    times = [t0, *(end for _, end in phases)]
    require(
        all(a < b for a, b in itertools.pairwise(times)),
        "system",
        times,
        "phase times that increase",
    )
    return phases


def _check_duration(duration) -> None:
    require(duration is not None, "duration", duration, "the simulated time in seconds")
    finite = is_number(duration) and 0 < duration < math.inf
    require(finite, "duration", duration, "a finite time > 0 s")


def _check_step(dt) -> None:
    known = is_number(dt) and 0 < dt < math.inf
    require(known, "dt", dt, "a finite step > 0 s, known outside of jit")


def _check_times(dt, save_every, phases, t0) -> None:
    _check_step(dt)
    require_whole("save_every", save_every, 1)
    start = t0
    for _, end in phases:
        steps = (end - start) / dt
        span = f"{end - start:.12g} s at dt = {dt:.12g} s ({steps:.12g} steps)"
        few = f"fewer than {MOST_STEPS:.2g} steps (if t0 is a Unix timestamp, subtract it)"
        require(steps < MOST_STEPS, "duration", span, few)
        # an absolute limit, widened by the round-off of the times and of their quotient
        rounding = 4 * np.finfo(float).eps * ((abs(start) + abs(end)) / dt + steps)
        whole = abs(steps - round(steps)) < 1e-4 + rounding and round(steps) >= 1
        require(whole, "duration", span, "a whole number of steps")
        require(
            round(steps) % save_every == 0,
            "save_every",
            save_every,
            f"a divisor of the {round(steps)} steps",
        )
        start = end
