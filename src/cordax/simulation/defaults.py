"""Defaults that depend on the machine: integrator, formulation, initial state and controller
period; warnings about the time step."""

import functools
import math
from typing import Any

import jax

from .._base.checks import known_values, require, require_known
from .._jax.identity import is_constant, token_of
from .._jax.tracing import is_traced
from ..formulations import BY_NAME as FORMULATIONS
from ..formulations import Formulation
from ..integrators import BY_NAME as INTEGRATORS
from ..integrators import Integrator
from ..mechanics import Controller, State, System

#: omega dt above which no method resolves a vibration
UNRESOLVED = 2.0
#: number of machines whose default state is cached
_CACHED = 8


def double_precision() -> bool:
    """Whether JAX computes in float64."""
    return bool(jax.config.jax_enable_x64)  # pyright: ignore


_states: dict[tuple, tuple[State, System]] = {}


def default_state(machine: System) -> State:
    """`machine.default_state()`, computed once per machine and precision."""
    key = id(machine), double_precision(), token_of(machine)
    cached = _states.get(key)
    if cached is None:
        cached = machine.default_state(), machine
        if is_constant(machine) and not is_traced(cached):
            _states[key] = cached
            for old in list(_states)[:-_CACHED]:
                _states.pop(old, None)
    return cached[0]


def as_integrator(x: Any) -> Integrator:
    """Integrator from an integrator or its name.

    A name gives the same object at every call, so that cached plans can be reused."""
    if isinstance(x, str):
        require_known("integrator", x, INTEGRATORS)
        return _integrator(x, double_precision())
    expected = "an Integrator or one of " + ", ".join(INTEGRATORS)
    require(isinstance(x, Integrator), "integrator", x, expected)
    return x


@functools.cache
def _integrator(name: str, x64: bool) -> Integrator:
    # outside of any trace: parameters of a cached object must not be traced
    with jax.ensure_compile_time_eval():
        return INTEGRATORS[name]()


def formulation_for(machine: System, integrator: Integrator) -> Formulation:
    """Default formulation of a machine with this integrator."""
    needed = integrator.traits.solves_constraints == "needed"
    if machine.n_constraints == 0:
        name, numbers = "minimal", {}
    elif machine.default_formulation is None or needed:
        name, numbers = "index_3" if needed else "baumgarte", {}
    elif isinstance(machine.default_formulation, str):
        name, numbers = machine.default_formulation, {}
    else:
        name, numbers = machine.default_formulation
    require_known("default_formulation", name, FORMULATIONS)
    return _formulation(name, tuple(numbers.items()), double_precision())


@functools.cache
def _formulation(name: str, numbers: tuple, x64: bool) -> Formulation:
    # outside of any trace: parameters of a cached object must not be traced
    with jax.ensure_compile_time_eval():
        return FORMULATIONS[name](**dict(numbers))


def time_step_warnings(machine: System, integrator: Integrator, dt) -> list[str]:
    """Warnings about vibrations that are too fast for the time step `dt` [s]."""
    structure = machine.structure()
    fed = integrator.traits.amplifies_unresolved and structure.separable
    frequency = structure.fastest_frequency() if integrator.traits.explicit or fed else None
    if frequency is None:
        return []
    method, name = type(integrator).__name__, type(machine).__name__
    messages = []
    if fed and frequency * dt > UNRESOLVED:
        messages.append(
            f"{method} feeds energy into undamped vibrations that the step does "
            f"not resolve, and this {name} has some: the fastest take "
            f"{2.0 * math.pi / frequency:.3g} s, dt = {dt:g} s. Use GeneralisedAlpha"
        )
    limit = integrator.traits.oscillator_limit
    if frequency * dt > limit > 0:
        messages.append(
            f"dt = {dt:g} s is above the largest stable step of {method} for "
            f"this {name}, about {limit / frequency:.3g} s; take a smaller dt or "
            "an A-stable integrator such as ImplicitMidpoint or GeneralisedAlpha"
        )
    return messages


def steps_held(controller: Controller, memory, dt) -> int:
    """Number of steps of `dt` [s] for which the output of a controller with this `memory` is held;
    0 if it is evaluated in every stage."""
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
