"""Simulate an experiment and return its trajectory."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_whole
from .._base.precision import as_float_array
from .._base.results import GOOD, MESSAGES, Result
from .._jax.compiled_errors import raise_compiled
from .._jax.identity import one_call
from .._jax.tracing import is_traced
from ..formulations import Formulation
from ..integrators import Integrator
from ..mechanics import State, System
from ..mechanics.controller import check_function
from .executor import run_in_one_loop, run_phase
from .experiment import Adjoint, Experiment
from .plan import Plan
from .postprocess import join
from .time_loop import no_failure
from .trajectory import Trajectory


class SimulationError(RuntimeError):
    """Failure of a run. The message contains the time of failure and a suggestion.

    `simulate(..., throw=False)` returns the trajectory up to the failure instead."""


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
    t0: float | None = None,
    save_every: int | None = None,
    adjoint: Adjoint | None = None,
    throw: bool = True,
    progress: bool = False,
) -> Trajectory:
    """Simulate a machine.

    **Arguments:**

    - `system`: the machine, a list of phases, or an `Experiment`. Phases `[(system_a, t_switch),
      (system_b, t_end)]` have end times in [s]. A phase after the first may be a function from the
      state at the switch to the machine (`robot.pick`), or to the machine and its state, which may
      have other coordinates (a body that is released); `Trajectory.phases` then contains each phase
      separately. Where constraints are new, velocities jump so that momentum is conserved. An
      `Experiment` contains all arguments except `throw` and `progress`; only `accuracy` and
      `adjoint` may be given together with it.
    - `state0`: the initial state; the machine's `default_state()` if not given.
    - `duration`: simulated time [s], a whole number of steps; not given with phases.
    - `dt`: time step [s]; the machine's `default_dt` if not given. With `Diffrax` it is the first
      step tried, and stored instants are `save_every * dt` apart.
    - `integrator`: an integrator or its name; the machine's default if not given.
    - `accuracy`: error allowed in a step, relative to 1 + |x|, in every coordinate and velocity
      [SI]; implicit methods exclude velocities of vibrations that are fast for `dt`. The step size
      is then adapted (`cordax.Adaptive`), and a step that does not converge is repeated with a
      smaller step size. `dt` is the largest step size; it is also the interval that `save_every`
      counts and at which controllers are sampled. Steps end where inputs jump if the controller
      provides these instants (`Controller.switching_times`); a pulse of another function that is
      much shorter than `dt` may be missed. Use `adjoint="forward"` in batches without reverse mode.
    - `formulation`: how constraints are treated; if not given `Minimal()` for machines without
      constraints, `Index3()` for integrators that solve them, else `Baumgarte()`.
    - `control`: a `Controller`, a function `(t, state) -> u`, constant inputs of shape (n_u,), or
      None for zero inputs.
    - `save_every`: store every n-th step. Outputs are computed for stored states only.
    - `adjoint`: what reverse-mode differentiation stores: "scan" everything (fastest),
      "checkpointed" the state every 16 steps, outside of `jit` every 2048 steps (little memory, one
      more forward run), "forward" nothing (forward mode only).
    - `throw`: raise `SimulationError` on failure. Use `throw=False` in a batch: each member then
      has its own `result`.
    - `progress`: show a progress bar (outside of `jit`).

    The function composes with `jax.jit`, `grad`, `jvp` and `vmap`. New values of parameters or
    arguments, including the duration, do not recompile the time loop, neither directly nor under
    `grad`, `jvp` and `vmap`. Outside of these transformations a new `save_every` above 1 does not
    recompile either. Inside your own `jax.jit`, a new duration traces your function again.
    `jax.linearize` requires such a `jit` around the run.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    run = cordax.simulate(Pendulum(), dt=0.01, duration=1.0)
    print(run.summary(), run["angle"].shape)  # (101,) [rad]
    ```
    """
    for name, flag in (("throw", throw), ("progress", progress)):
        require(isinstance(flag, bool), name, flag, "True or False")
    settings = {
        "state0": state0,
        "control": control,
        "duration": duration,
        "dt": dt,
        "integrator": integrator,
        "formulation": formulation,
        "t0": t0,
        "save_every": save_every,
    }
    if isinstance(system, Experiment):
        _refuse([name for name, x in settings.items() if x is not None])
    else:
        check_function(control)
    experiment = Experiment.of(system, **settings, accuracy=accuracy, adjoint=adjoint)
    return _run(experiment, throw, progress)


def _refuse(names: list[str]) -> None:
    if names:
        values = ", ".join(f"{name}=..." for name in names)
        raise ValueError(
            f"{', '.join(names)} cannot be given together with an Experiment; "
            f"use experiment.replace({values})"
        )


def _run(experiment: Experiment, throw: bool, progress: bool) -> Trajectory:
    """Run all phases of an experiment, each with its own plan."""
    state, time, memory = experiment.start, experiment.t0, None
    status, parts, plan = no_failure(state), [], None
    phases = zip(experiment.phases, experiment.stored_counts, strict=True)
    for number, ((machine, end), n_saves) in enumerate(phases):
        if number > 0:
            machine, state = _phase_start(machine(state), state)
        with one_call():
            plan = Plan.of(experiment, state, machine=machine, memory=memory)
            if number > 0:
                entered = plan.dynamics.formulation.enter(machine, as_float_array(time), state)
                go = plan.checked(status, time)[0] == GOOD  # a failed run stays where it is
                state = jax.tree.map(
                    lambda new, old, go=go: jnp.where(go, new, old), entered, state
                )
            part, state, memory, status = run_phase(
                plan, state, memory, status, time, n_saves, progress=progress, joined=number > 0
            )
        parts.append(part)
        time = end
    trajectory = parts[0] if len(parts) == 1 else join(parts)
    if not throw or plan is None:
        return trajectory
    return _raise_failure(trajectory, experiment.time_step, plan)


def simulate_steps(
    experiment: Experiment, steps: int, *, state: State | None = None, t0=None, dt=None
) -> Trajectory:
    """Simulate a number of steps of an experiment without switches, for derivatives by its times.

    `state` at `t0` [s], `t0` and the time step `dt` [s] may all be traced; those of the experiment
    if not given. The controller starts with its initial memory."""
    require(not experiment.switches, "switches", experiment.switches, "none")
    require_whole("steps", steps, 1)
    every = experiment.save_every
    require(steps % every == 0, "save_every", every, f"a divisor of the {steps} steps")
    state = experiment.start if state is None else state
    plan = Plan.of(experiment, state)
    if dt is not None:
        plan = dataclasses.replace(plan, dt=as_float_array(dt))
    time = as_float_array(experiment.t0 if t0 is None else t0)
    return run_in_one_loop(plan, state, None, no_failure(state), time, steps // every)


def _phase_start(made, state: State) -> tuple[Any, Any]:
    machine, state = made if isinstance(made, tuple) and len(made) == 2 else (made, state)
    ok = isinstance(machine, System) and isinstance(state, State)
    require(ok, "system", made, "a phase function to return a System, or a System and its State")
    return machine, state


def _raise_failure(trajectory: Trajectory, dt, plan: Plan) -> Trajectory:
    code = trajectory.result
    if not is_traced(code) and np.all(np.asarray(code) == GOOD):
        return trajectory
    machine, method = type(trajectory.system).__name__, type(plan.integrator).__name__
    who = f"{machine} with {method} at dt = {float(dt):g} s failed"
    if is_traced(code):
        tell = lambda reason, time: f"{who} at t = {time:g} s. {reason}"
        return raise_compiled(
            trajectory, code != GOOD, code, MESSAGES, tell, trajectory.failure_time
        )
    time = float(trajectory.failure_time)
    text = f"{who} at t = {time:g} s. {Result(int(code)).message}"
    if code == Result.QP_INFEASIBLE:
        text = f"{text} {plan.controller.failure_reason(time, trajectory.end)}".rstrip()
    raise SimulationError(text)
