"""Description of a run: machine, initial state, inputs, method and times."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import numpy as np

from .._base.checks import (
    is_number,
    require,
    require_known,
    require_number,
    require_whole,
)
from .._base.fields import part_field
from ..formulations import Formulation
from ..integrators import Integrator
from ..mechanics import State, System
from ..mechanics.controller import takes_arguments
from .adjoints import ADJOINTS
from .defaults import as_integrator, default_state
from .sensor import Sensor

Adjoint = Literal["scan", "checkpointed", "forward"]
#: the step counter is a 32-bit integer
MOST_STEPS = 2**31


class Recipe(eqx.Module):
    """A function wrapped so that it is not a pytree leaf; `vmap` may then return objects that hold
    it."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *arguments):
        return self.function(*arguments)


def _wrapped(x):
    return Recipe(x) if callable(x) and not isinstance(x, eqx.Module) else x


def _integrator(x) -> Any:
    """Convert to an integrator; None and placeholders of JAX are unchanged."""
    return x if x is None or type(x) is object else as_integrator(x)


def _python_number(x: Any) -> Any:
    """Convert a NumPy number to a Python number: equinox warns of NumPy numbers in static
    fields."""
    return x.item() if isinstance(x, np.generic) else x


class Experiment(eqx.Module):
    """Description of one run: `simulate(experiment)` runs it; `identify` and batches change its
    parameters.

    **Arguments:**

    - `system`: the machine. A `Parameter` names parameters of the machine, the initial state or the
      controller.
    - `state0`: the initial state, or a function from the machine to it (an elastic machine starts
      with a stretch that depends on its stiffness); the machine's default state if not given. A
      callable module may have parameters, which a `Parameter` names: `"state0.tilt"`.
    - `control`: as in `simulate`, or a function of one argument, from the machine to any of these.
    - `duration`, `dt`, `t0` [s], `save_every`, `integrator`, `formulation`, `accuracy`, `adjoint`:
      as in `simulate`.
    - `switches`: changes of the machine with their times, `((time, "pick"), ...)` [s]: the name of
      a method of the machine, or a function `(machine, state) -> machine`, or `-> (machine,
      state)`. Methods are called on the machine with its current parameters, so that a fitted
      payload is the one that is picked. Switches after the end are ignored.
    - `sensors`: `Sensor`s by the names of recorded channels, for `identify` and `Fit.validate`;
      they do not change the run.
    - `import_report`: list of what a reader of other file formats (`cordax.io.read_mjcf`) ignored
      or changed.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    swing = cordax.Experiment(Pendulum(), duration=1.0, dt=0.01)
    longer = cordax.simulate(swing.replace(duration=2.0))
    ```
    """

    system: System = part_field()
    state0: Any = eqx.field(converter=_wrapped, default=None)
    control: Any = eqx.field(converter=_wrapped, default=None)
    duration: float | None = eqx.field(static=True, converter=_python_number, default=None)
    dt: float | None = eqx.field(static=True, converter=_python_number, default=None)
    integrator: Integrator | None = eqx.field(converter=_integrator, default=None)
    formulation: Formulation | None = part_field(default=None)
    t0: float = eqx.field(static=True, converter=_python_number, default=0.0)
    save_every: int = eqx.field(static=True, converter=_python_number, default=1)
    switches: tuple[tuple[float, Any], ...] = eqx.field(static=True, default=())
    accuracy: Any = None
    adjoint: Adjoint = eqx.field(static=True, default="scan")
    import_report: Any = eqx.field(static=True, default=None)
    sensors: dict[str, Sensor] = eqx.field(default_factory=dict)

    def __check_init__(self):
        by_name = isinstance(self.sensors, dict)
        if by_name and type(next(iter(self.sensors.values()), None)) is not object:
            by_name = all(isinstance(x, Sensor) for x in self.sensors.values())
        require(by_name, "sensors", self.sensors, "a dictionary of Sensors by name")
        require_number("t0", self.t0, positive=False)
        if self.duration is not None:
            finite = is_number(self.duration) and 0 < self.duration < math.inf
            require(finite, "duration", self.duration, "a finite time > 0 s")
        if self.dt is not None:
            finite = is_number(self.dt) and 0 < self.dt < math.inf
            require(finite, "dt", self.dt, "a finite step > 0 s, known outside of jit")
        require_whole("save_every", self.save_every, 1)
        require_known("adjoint", self.adjoint, ADJOINTS)
        pairs = isinstance(self.switches, tuple)
        pairs = pairs and all(isinstance(x, tuple) and len(x) == 2 for x in self.switches)
        require(pairs, "switches", self.switches, 'a tuple of (time [s], "pick")')
        before = self.t0
        for time, change in self.switches:
            later = isinstance(time, (int, float)) and np.isfinite(time) and time > before
            require(later, "switches", time, f"times that increase from t0 = {self.t0:g} s")
            known = callable(change) or callable(getattr(self.system, str(change), None))
            expected = f"a function (machine, state), or a method of {type(self.system).__name__}"
            require(known, "switches", repr(change), expected)
            before = time

    @staticmethod
    def of(system: Any, **settings) -> "Experiment":
        """Experiment from a machine, from phases as in `simulate`, or from an experiment.

        `settings`: other fields; None means the default or, for an experiment, no change."""
        settings = {name: x for name, x in settings.items() if x is not None}
        if isinstance(system, Experiment):
            return system.replace(**settings) if settings else system
        if isinstance(system, System):
            return Experiment(system, **settings)
        return Experiment._of_phases(system, **settings)

    @staticmethod
    def _of_phases(phases, t0: float = 0.0, duration=None, **settings) -> "Experiment":
        expected = "a System or a list of (System or function of State, end time)"
        require(isinstance(phases, (list, tuple)), "system", phases, expected)
        require(duration is None, "duration", duration, "None when phases give the times")
        phases = list(phases)
        require(bool(phases) and all(map(_is_phase, phases)), "system", phases, expected)
        machines, ends = zip(*phases, strict=True)
        require(isinstance(machines[0], System), "system", machines[0], "a System as first phase")
        require_number("t0", t0, positive=False)
        increasing = all(a < b for a, b in itertools.pairwise([t0, *ends]))
        require(increasing, "system", [t0, *ends], "phase times that increase")
        switches = tuple(zip(map(float, ends), map(_Phase, machines[1:]), strict=False))
        times = {"t0": t0, "duration": ends[-1] - t0, "switches": switches}
        return Experiment(machines[0], **times, **settings)

    def replace(self, **changes) -> "Experiment":
        """Copy of the experiment with other settings."""
        for name in changes:
            require_known("replace", name, [f.name for f in dataclasses.fields(self)])
        return dataclasses.replace(self, **changes)

    @property
    def start(self) -> State:
        """The initial state."""
        state: Any = self.state0
        if state is None:
            return default_state(self.system)
        if callable(state):
            return state(self.system)  # pyright: ignore[reportReturnType]
        require(isinstance(state, State), "state0", type(state).__name__, "a cordax.State(q, v)")
        return state

    @property
    def inputs(self) -> Any:
        """The control; if `control` is a function of one argument, its result for the machine."""
        if not isinstance(self.control, Recipe):
            return self.control
        function = self.control.function
        from_machine = not takes_arguments(function, 2) and takes_arguments(function, 1)
        return function(self.system) if from_machine else function

    @property
    def time_step(self) -> float:
        """`dt`, or the machine's default [s]."""
        return self.system.default_dt if self.dt is None else self.dt

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return round((self.end - self.t0) / self.time_step)

    @property
    def end(self) -> float:
        """Final time [s]."""
        expected = "the simulated time in seconds"
        require(self.duration is not None, "duration", self.duration, expected)
        return self.t0 + self.duration  # pyright: ignore[reportOperatorIssue]

    @property
    def phases(self) -> list[tuple[Any, float]]:
        """Phases with their end times [s]: first the machine, then for each switch a function from
        the state to the machine, or to the machine and its state."""
        stop = self.end
        inside = [(time, change) for time, change in self.switches if time < stop]
        machines = [self.system, *(self._change(change) for _, change in inside)]
        return list(zip(machines, [*(time for time, _ in inside), stop], strict=True))

    @property
    def stored_counts(self) -> list[int]:
        """Number of stored instants of each phase, not counting its first."""
        spans = itertools.pairwise([self.t0, *(end for _, end in self.phases)])
        return [stored_count(*span, self.time_step, self.save_every) for span in spans]

    def _change(self, change: Any) -> Callable[[State], Any]:
        if callable(change):
            return lambda state: change(self.system, state)
        return getattr(self.system, change)


def stored_count(start: float, end: float, dt: float, save_every: int) -> int:
    """Number of stored instants from `start` to `end` [s], not counting the first."""
    steps = (end - start) / dt
    span = f"{end - start:.12g} s at dt = {dt:.12g} s ({steps:.12g} steps)"
    few = f"fewer than {MOST_STEPS:.2g} steps (if t0 is a Unix timestamp, subtract it)"
    require(steps < MOST_STEPS, "duration", span, few)
    # an absolute tolerance, enlarged by the round-off of the times and of their quotient
    rounding = 4 * np.finfo(float).eps * ((abs(start) + abs(end)) / dt + steps)
    whole = abs(steps - round(steps)) < 1e-4 + rounding and round(steps) >= 1
    require(whole, "duration", span, "a whole number of steps")
    divides = round(steps) % save_every == 0
    require(divides, "save_every", save_every, f"a divisor of the {round(steps)} steps")
    return round(steps) // save_every


class _Phase:
    """A phase of `simulate` as a switch: a machine, or a function of the state."""

    def __init__(self, phase):
        self.phase = phase

    def __call__(self, machine: System, state: State):
        return self.phase if isinstance(self.phase, System) else self.phase(state)


def _is_phase(x) -> bool:
    pair = isinstance(x, Sequence) and len(x) == 2 and is_number(x[1]) and math.isfinite(x[1])
    return pair and (isinstance(x[0], System) or callable(x[0]))
