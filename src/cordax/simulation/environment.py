"""A machine as an environment: pure functions `reset` and `step`, with inputs as actions.

For learning and for user-written loops, with one machine or a batch; everything composes with
`jax.jit`, `jax.vmap` and `jax.grad`. `cordax.simulation.gymnasium` wraps it for Gymnasium."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._base.checks import require, require_instance, require_shape, require_whole
from .._base.precision import as_float_array, float_field
from .._base.results import GOOD
from ..mechanics import Controller, State
from .experiment import Experiment
from .plan import Plan
from .time_loop import Carry
from .trajectory import Trajectory


class Moment(NamedTuple):
    """State of an environment: the carry of the run, without its history, and the number of control
    steps taken."""

    carry: Carry
    count: Int[Array, ""]

    @property
    def state(self) -> State:
        return self.carry.state


class Outcome(NamedTuple):
    """Result of one control step: observation, (n_o,); reward; whether the task has ended
    (`terminated`, with `failed` if the simulation failed) or only its time is over (`truncated`).
    """

    observation: Float[Array, " n_o"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    failed: Bool[Array, ""]


class _Held(Controller):
    """Constant inputs during a control step.

    They are sampled with its period [s], so that methods with memory know when they jump."""

    u: Float[Array, " n_u"] = float_field()
    period: float = eqx.field(static=True, kw_only=True)

    def __call__(self, t, state, memory):
        return self.u, memory


def everything(run: Trajectory):
    """Coordinates and velocities at the end of a control step, the default observation."""
    return jnp.concatenate([run.q[-1], run.v[-1]])


def nothing(run: Trajectory):
    """Zero, the default reward."""
    return jnp.zeros((), run.q.dtype)


def never(run: Trajectory):
    return jnp.asarray(False)


class Environment(eqx.Module):
    """A machine whose inputs are chosen every `every` steps.

    **Arguments:**

    - `experiment`: machine, initial state, time step and method; its `duration` [s] is that of an
      episode, none for episodes without end. Its control is not used.
    - `every`: number of simulation steps in one control step.
    - `observe`, `reward`, `done`: functions from the `Trajectory` of a control step, which contains
      its first and last instant, `run["tension"][-1]`, to an array (n_o,), a number and a boolean;
      by default q and v at the end, zero and never. After a reset the trajectory contains the
      initial instant only.
    - `spread`: function `(key, machine, state) -> state` that draws initial states around that of
      the experiment; by default all are the same.
    """

    experiment: Experiment
    every: int = eqx.field(static=True, default=1)
    observe: Callable[..., Any] = eqx.field(static=True, default=everything)
    reward: Callable[..., Any] = eqx.field(static=True, default=nothing)
    done: Callable[..., Any] = eqx.field(static=True, default=never)
    spread: Callable[..., State] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_instance("experiment", self.experiment, Experiment)
        require_whole("every", self.every, 1)
        given = self.experiment.switches
        require(not given, "switches", given, "an experiment without")

    @property
    def period(self) -> float:
        """Time between two choices of inputs [s]."""
        return self.every * self.experiment.time_step

    @property
    def length(self) -> int | None:
        """Number of control steps in an episode, if it ends."""
        duration = self.experiment.duration
        return None if duration is None else round(duration / self.period)

    def _plan(self, state: State, u) -> Plan:
        control = _Held(u, period=self.period)
        plan = Plan.of(self.experiment.replace(control=control, save_every=self.every), state)
        method = plan.integrator
        require(
            not method.traits.owns_time_loop,
            "integrator",
            type(method).__name__,
            "one that takes steps",
        )
        return plan

    @property
    def _t0(self):
        return as_float_array(self.experiment.t0)

    def reset(self, key) -> tuple[Moment, Float[Array, " n_o"]]:
        """Start an episode; returns its moment and observation. `key`: a key of `jax.random`."""
        machine, state = self.experiment.system, self.experiment.start
        if self.spread is not None:
            state = self.spread(key, machine, state)
        plan = self._plan(state, jnp.zeros(machine.n_u, state.q.dtype))
        carry = plan.begin(state, self._t0)
        seen, _ = plan.advance(carry, self._t0, 0)
        return Moment(carry, jnp.zeros((), jnp.int32)), jnp.asarray(self.observe(seen))

    def step(self, moment: Moment, action) -> tuple[Moment, Outcome]:
        """Take one control step with inputs `action` (n_u,). If the simulation fails, the state is
        unchanged and the episode ends."""
        u = as_float_array(action).astype(moment.state.q.dtype)
        require_shape("action", u, (self.experiment.system.n_u,))
        plan = self._plan(moment.state, u)
        seen, carry = plan.advance(moment.carry, self._t0, 1, moment.count)
        count = moment.count + 1
        failed = carry.status[0] != GOOD
        late = jnp.asarray(False) if self.length is None else count >= self.length
        over = failed | self.done(seen)
        reward = jnp.asarray(self.reward(seen))
        outcome = Outcome(jnp.asarray(self.observe(seen)), reward, over, late & ~over, failed)
        return Moment(carry, count), outcome

    def step_after(self, moment: Moment, action, over, key) -> tuple[Moment, Outcome]:
        """`step`, or `reset` with zero reward if the previous step ended the episode (`over`); for
        batches whose members end at different times."""
        after, outcome = self.step(moment, action)
        again, seen = self.reset(key)
        no = jnp.asarray(False)
        begun = again, Outcome(seen, jnp.zeros_like(outcome.reward), no, no, no)
        return jax.tree.map(lambda a, b: jnp.where(over, a, b), begun, (after, outcome))
