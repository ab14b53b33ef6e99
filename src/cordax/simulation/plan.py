"""From what a user gives to a run that can be compiled. It follows from the machine and the
settings, not from the state, and is remembered for the calls that come next: making and checking
modules takes longer than many a run."""

import functools
import math
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

from .._base.checks import known_values, require, require_finite, require_known, require_shape
from .._base.revalidate import recheck
from .._jax.identity import is_constant, is_known, token_of
from ..formulations import BY_NAME as FORMULATIONS
from ..formulations import Dynamics, Formulation
from ..integrators import BY_NAME, Adaptive, Integrator
from ..mechanics import Controller, State, System, as_controller
from .time_loop import Run

#: how many machines and settings are remembered
_REMEMBERED = 8


class Prepared(NamedTuple):
    """A `run`, the sizes of its states, the memory its controller starts with where that has no
    numbers (else None), what to warn of, whether its numbers are allowed (`recheck`), and the
    objects it was made of."""

    run: Run
    n_q: int
    n_v: int
    memory: Any
    warnings: list[str]
    fit: Any
    made_of: tuple


_prepared: dict[tuple, Prepared] = {}
_states: dict[tuple, tuple[State, System]] = {}


def default_state(machine: System) -> State:
    """`machine.default_state()`, computed once per machine."""
    key = id(machine), _precision(), token_of(machine)
    found = _states.get(key)
    if found is None:
        found = machine.default_state(), machine
        if is_constant(machine):
            _remember(_states, key, found, found)
    return found[0]


def prepare(
    machine: System,
    state: State,
    integrator: Integrator | str | None,
    formulation: Formulation | None,
    control,
    *,
    accuracy,
    adjoint: str,
    save_every: int,
    dt: float,
    memory=None,
) -> tuple[Run, Any, Any]:
    """The run of a machine from `state`; the memory of its controller, as it starts unless
    `memory` is given; and whether the numbers are allowed, which a transformation may hide."""
    traced = isinstance(state.q, Tracer) or isinstance(state.v, Tracer)
    numbers = isinstance(control, np.ndarray)
    control = np.array(control) if numbers else control  # which its owner may change
    given = machine, integrator, formulation, control
    settings = accuracy, adjoint, save_every, dt, traced, _precision()
    lasting = accuracy is None or isinstance(accuracy, (int, float))
    inputs = (control.dtype, control.shape, control.tobytes()) if numbers else id(control)
    token = token_of(*given)
    key = (*map(id, given[:3]), inputs, *settings, token) if lasting else None
    found = None if key is None else _prepared.get(key)
    if found is None:
        found = _make(*given, state, memory, *settings[:-1])
        if key is not None and is_known(token) and is_constant(*given):
            _remember(_prepared, key, found, (found.run, found.fit))
    else:
        _check_precision(machine, (state.q, state.v))
        _check_state(state, found.n_q, found.n_v)
    for warning in found.warnings:
        warnings.warn(warning, stacklevel=3)
    if memory is None:
        memory = found.run.controller.init(state) if found.memory is None else found.memory
    return found.run, memory, found.fit


def _make(
    machine,
    integrator,
    formulation,
    control,
    state,
    memory,
    accuracy,
    adjoint,
    save_every,
    dt,
    traced,
) -> Prepared:
    _check_precision(machine, (machine, state))
    n_q, n_v = machine.n_q, machine.n_v
    _check_state(state, n_q, n_v)
    method = _resolve_integrator(integrator, machine)
    if accuracy is not None:
        traced = traced or is_traced((machine, control))
        method = Adaptive(method, accuracy, reverse=traced and adjoint != "forward")
    way = _default_formulation(machine, method) if formulation is None else formulation
    dynamics = Dynamics(machine, way)
    way.check(machine)
    method.check(dynamics)
    required = machine.required_control
    if required is not None:
        require(control is not None, "control", None, required)
    controller = as_controller(control, machine, state.q.dtype)
    controller = controller if accuracy is None else controller.unsampled()
    memory = controller.init(state) if memory is None else memory
    fit = recheck(dynamics, method, controller)
    run = Run(dynamics, method, controller, adjoint, save_every, _hold(controller, memory, dt))
    numbers = len(jax.tree.leaves(memory)) > 0
    warned = _too_fast(machine, method, dt)
    given = machine, integrator, formulation, control
    return Prepared(run, n_q, n_v, None if numbers else memory, warned, fit, given)


def is_traced(tree) -> bool:
    """Whether a JAX transformation hides numbers of `tree`."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def _remember(where: dict, key: tuple, value, numbers) -> None:
    """Unless some of its `numbers` belong to a transformation, which will have ended."""
    if not is_traced(numbers):
        where[key] = value
        for old in list(where)[:-_REMEMBERED]:
            where.pop(old, None)


def _precision() -> bool:
    return bool(jax.config.jax_enable_x64)  # pyright: ignore


def _check_precision(machine: System, tree) -> None:
    """One precision for the numbers of a machine, its state and what is computed from them."""
    wanted = "float64" if _precision() else "float32"
    floats = (x.dtype for x in jax.tree.leaves(tree) if isinstance(x, jax.Array))
    other = next((dtype for dtype in floats if dtype.kind == "f" and dtype.name != wanted), None)
    require(
        other is None,
        type(machine).__name__,
        f"numbers or a state in {other}",
        f"{wanted}, the present precision of JAX: call cordax.enable_x64() before making machines "
        "and states",
    )


def _check_state(state: State, n_q: int, n_v: int) -> None:
    require_shape("state0.q", state.q, (n_q,))
    require_shape("state0.v", state.v, (n_v,))
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


def _default_formulation(machine: System, integrator: Integrator) -> Formulation:
    needed = integrator.solves_constraints == "needed"
    if machine.n_constraints == 0:
        name, numbers = "minimal", {}
    elif machine.default_formulation is None or needed:
        name, numbers = "index_3" if needed else "baumgarte", {}
    elif isinstance(machine.default_formulation, str):
        name, numbers = machine.default_formulation, {}
    else:
        name, numbers = machine.default_formulation
    require_known("default_formulation", name, FORMULATIONS)
    return _formulation(name, tuple(numbers.items()), _precision())


@functools.cache
def _formulation(name: str, numbers: tuple, x64: bool) -> Formulation:
    """Made once per precision. Not within a trace, even if the first call comes from one: its
    numbers would belong to that trace."""
    with jax.ensure_compile_time_eval():
        return FORMULATIONS[name](**dict(numbers))


#: omega dt above which no step of any method resolves a vibration
UNRESOLVED = 2.0


def _too_fast(machine: System, integrator: Integrator, dt) -> list[str]:
    """What to warn of: vibrations that are too fast for the step."""
    fed = integrator.feeds_undamped and machine.separable
    frequency = machine.fastest_frequency() if integrator.explicit or fed else None
    if frequency is None:
        return []
    method, name = type(integrator).__name__, type(machine).__name__
    found = []
    if fed and frequency * dt > UNRESOLVED:
        found.append(
            f"{method} feeds energy into undamped vibrations that the step does "
            f"not resolve, and this {name} has some: the fastest take "
            f"{2.0 * math.pi / frequency:.3g} s, dt = {dt:g} s. Use GeneralisedAlpha"
        )
    limit = integrator.oscillator_limit
    if frequency * dt > limit > 0:
        found.append(
            f"dt = {dt:g} s is above the largest stable step of {method} for "
            f"this {name}, about {limit / frequency:.3g} s; take a smaller dt or "
            "an A-stable integrator such as ImplicitMidpoint or GeneralisedAlpha"
        )
    return found


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
