"""Plan of a run: one phase with all defaults resolved, ready to be compiled.

`Plan.of(experiment)` is cached, since constructing and checking modules takes longer than many
runs."""

import dataclasses
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_finite, require_shape
from .._base.precision import warn_if_single
from .._base.results import GOOD, Result
from .._base.revalidate import recheck
from .._jax.identity import is_constant, is_known, token_of
from .._jax.tracing import is_traced
from ..formulations import Dynamics
from ..integrators import Adaptive, Integrator
from ..mechanics import Controller, State, System, as_controller
from ..mechanics.shape_checks import check_shapes
from .defaults import (
    as_integrator,
    double_precision,
    formulation_for,
    steps_held,
    time_step_warnings,
)
from .experiment import Experiment
from .time_loop import Carry, advance, begin, no_failure
from .trajectory import Trajectory

#: number of plans in the cache
_CACHED = 8


class Plan(eqx.Module):
    """Everything that is constant along one phase of a run.

    `begin` and `advance` are the traced time loop that `simulate`, `simulate_batch`, `Environment`
    and multiple shooting share; `executor` compiles them."""

    dynamics: Dynamics
    integrator: Integrator
    controller: Controller
    #: time step [s]
    dt: Any
    adjoint: str = eqx.field(static=True)
    #: steps between two stored instants: compiled in, or data if it is an array
    save_every: int | jax.Array
    #: steps between two calls of a sampled controller; 0: not sampled
    hold: int = eqx.field(static=True)
    #: whether all parameters are within their ranges, if a transformation hides their values
    valid: Any = True
    #: whether derivatives may be requested
    traced: bool = eqx.field(static=True, default=True)
    #: whether it is a member of a batch that is not differentiated
    lanes: bool = eqx.field(static=True, default=False)

    @staticmethod
    def of(
        experiment: Experiment,
        state: State | None = None,
        *,
        machine: System | None = None,
        memory=None,
    ) -> "Plan":
        """Plan of one phase of an experiment; warns if the time step is too large.

        **Arguments:**

        - `state`: state at the start of the phase; the experiment's initial state if not given.
        - `machine`: machine of the phase; the experiment's if not given.
        - `memory`: memory of the controller at the start; its `init` if not given."""
        machine = experiment.system if machine is None else machine
        state = experiment.start if state is None else state
        require(isinstance(state, State), "state0", type(state).__name__, "a cordax.State(q, v)")
        prepared = _prepared(experiment, machine, state, memory)
        for warning in prepared.warnings:
            warnings.warn(warning, stacklevel=3)
        warn_if_single(state.q.dtype, type(machine).__name__)
        return prepared.plan

    def begin(self, state: State, t0, memory=None, status=None) -> Carry:
        """Carry of the time loop before its first step, at `t0` [s].

        `memory`: of the controller, its `init` if not given; `status`: code and failure time of
        earlier phases."""
        memory = self.controller.init(state) if memory is None else memory
        status = no_failure(state) if status is None else status
        return begin(self, state, memory, self.checked(status, t0), t0)

    def advance(self, carry: Carry, t0, n_saves: int, first=0, **how) -> tuple[Trajectory, Carry]:
        """Run `n_saves` times `save_every` steps from the instant `t0 + first * save_every * dt`
        [s].

        Returns the stored instants, including the first one, and the carry after the last step.
        `how`: see `time_loop.advance`."""
        return advance(self, carry, first, t0, n_saves, **how)

    def checked(self, status, time):
        """Status at `time` [s], with a failure if parameters are out of their ranges.

        Under a transformation their values are checked only here: the phase then fails before its
        first step."""
        if self.valid is True:
            return status
        code, failure = status
        invalid = ~self.valid & (code == GOOD)
        code = jnp.where(invalid, jnp.int32(Result.INVALID_NUMBERS), code)
        return code, jnp.where(invalid, jnp.asarray(time, failure.dtype), failure)

    def prepared(self) -> "Plan":
        """Copy in which quantities that are constant along the run are computed once, also in a
        machine that the controller holds."""
        system = self.dynamics.system
        ready = system.prepare()
        inside = lambda x: ready if _same(x, system) else x
        is_machine = lambda x: isinstance(x, System)
        controller = jax.tree.map(inside, self.controller, is_leaf=is_machine).prepare()
        both = ready, controller
        return eqx.tree_at(lambda plan: (plan.dynamics.system, plan.controller), self, both)

    def reversible(self, reverse: bool = True) -> "Plan":
        """Copy for values that are hidden by a transformation, with `reverse` mode or without."""
        if self.adjoint == "forward":
            return self
        return dataclasses.replace(self, integrator=self.integrator.reversible(reverse))

    @property
    def stores_all(self) -> bool:
        """Whether every step is stored and this is known when the run is compiled."""
        return isinstance(self.save_every, int) and self.save_every == 1

    def with_stride_as_data(self) -> "Plan":
        """Copy that is compiled once for all `save_every` above 1, for runs without reverse
        mode."""
        every = self.save_every if self.stores_all else np.asarray(self.save_every)
        return dataclasses.replace(self, save_every=every)

    @property
    def controller_explains(self) -> bool:
        """Whether a step may have no solution because the controller has none."""
        return self.hold == 0 and self.controller.may_fail

    def control(self, t, state, memory):
        """Inputs, memory and code of the controller. The form of its result is checked while
        tracing, where this costs nothing."""
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
        """Check the shapes that the machine's functions return."""
        system = self.dynamics.system
        numbers = lambda n: jax.ShapeDtypeStruct((n,), state.q.dtype)
        check_shapes(system, t, state, numbers(system.n_u), numbers(system.n_constraints))


def _same(a, b) -> bool:
    """Whether two trees contain the same objects."""
    if not isinstance(a, type(b)) or jax.tree.structure(a) != jax.tree.structure(b):
        return False
    both = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(x is y for x, y in both)


class _Prepared(NamedTuple):
    """A plan, the sizes of its states, its warnings, and the objects whose `id` is in its key."""

    plan: Plan
    n_q: int
    n_v: int
    warnings: list[str]
    made_of: tuple


_plans: dict[tuple, _Prepared] = {}


def _prepared(experiment: Experiment, machine: System, state: State, memory) -> _Prepared:
    integrator = experiment.integrator
    control, accuracy = experiment.inputs, experiment.accuracy
    by_value = isinstance(control, np.ndarray)
    control = np.array(control) if by_value else control  # the caller may change it later
    parts = machine, integrator, experiment.formulation, control
    settings = experiment.adjoint, experiment.save_every, experiment.time_step
    traced = is_traced((state.q, state.v))
    inputs = (control.dtype, control.shape, control.tobytes()) if by_value else id(control)
    token = token_of(*parts)
    key = *map(id, parts[:3]), inputs, accuracy, *settings, traced, double_precision(), token
    cacheable = is_known(token) and (accuracy is None or isinstance(accuracy, (int, float)))
    cached = _plans.get(key) if cacheable else None
    if cached is None:
        cached = _prepare(*parts, state, memory, accuracy, *settings, traced)
        if cacheable and is_constant(*parts) and not is_traced(cached.plan):
            _plans[key] = cached
            for old in list(_plans)[:-_CACHED]:
                _plans.pop(old, None)
    else:
        _check_precision(machine, (state.q, state.v))
        _check_state(state, cached.n_q, cached.n_v)
    return cached


def _prepare(
    machine: System,
    integrator: Integrator | None,
    formulation,
    control,
    state: State,
    memory,
    accuracy,
    adjoint: str,
    save_every: int,
    dt: float,
    traced: bool,
) -> _Prepared:
    parts = machine, integrator, formulation, control
    _check_precision(machine, (machine, state))
    n_q, n_v = machine.n_q, machine.n_v
    _check_state(state, n_q, n_v)
    integrator = as_integrator(machine.default_integrator) if integrator is None else integrator
    integrator = integrator if accuracy is None else Adaptive(integrator, accuracy)
    if adjoint != "forward" and (traced or is_traced((machine, control))):
        integrator = integrator.reversible()
    formulation = formulation_for(machine, integrator) if formulation is None else formulation
    dynamics = Dynamics(machine, formulation)
    formulation.check(machine)
    integrator.check(dynamics)
    required = machine.presentation().required_control
    if required is not None:
        require(control is not None, "control", None, required)
    controller = as_controller(control, machine, state.q.dtype)
    controller = controller if accuracy is None else controller.unsampled()
    hold = steps_held(controller, controller.init(state) if memory is None else memory, dt)
    valid = recheck(dynamics, integrator, controller)
    step = np.asarray(dt, state.q.dtype)
    plan = Plan(dynamics, integrator, controller, step, adjoint, save_every, hold, valid)
    return _Prepared(plan, n_q, n_v, time_step_warnings(machine, integrator, dt), parts)


def _check_precision(machine: System, tree) -> None:
    """Check that the parameters of a machine and its state have the present precision."""
    wanted = "float64" if double_precision() else "float32"
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
