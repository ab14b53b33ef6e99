"""One noun for a machine, its start, its inputs and a run."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from .._base.checks import require, require_instance, require_known, require_number, require_whole
from .._base.fields import part_field
from ..formulations import Formulation
from ..integrators import BY_NAME, Integrator
from ..mechanics import State, System


class Recipe(eqx.Module):
    """A function that is no pytree leaf, so that `vmap` may return what holds it."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *arguments):
        return self.function(*arguments)


def _wrapped(x):
    return Recipe(x) if callable(x) and not isinstance(x, eqx.Module) else x


def _named(integrator) -> Any:
    if isinstance(integrator, str):
        require_known("integrator", integrator, BY_NAME)
        return BY_NAME[integrator]()
    if integrator is not None and type(integrator) is not object:
        require_instance("integrator", integrator, Integrator)
    return integrator


class Experiment(eqx.Module):
    """What is simulated: `simulate(experiment)` runs it, `identify` and batches change its numbers.

    **Arguments:**

    - `system`: the machine. Its numbers, and those of start and controller, are what a `Parameter`
      names.
    - `state0`: the start, or a function from the machine to it (an elastic machine starts from a
      stretch that depends on its stiffness); the machine's default state if not given. A module
      that can be called has numbers of its own, which a `Parameter` names: `"state0.tilt"`.
    - `control`: as in `simulate`, or a function of one argument, from the machine to any of these.
    - `duration`, `dt`, `t0` [s], `save_every`, `integrator`, `formulation`: as in `simulate`.
    - `switches`: what becomes of the machine and when, `((time, "pick"), ...)` [s]: the name of a
      method of the machine, or a function `(machine, state) -> machine`. The methods are those of
      the machine with the numbers it has then, so that a fitted payload is the one that is picked.
      Switches after the end are left out.

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
    duration: float | None = eqx.field(static=True, default=None)
    dt: float | None = eqx.field(static=True, default=None)
    integrator: Integrator | None = eqx.field(converter=_named, default=None)
    formulation: Formulation | None = part_field(default=None)
    t0: float = eqx.field(static=True, default=0.0)
    save_every: int = eqx.field(static=True, default=1)
    switches: tuple[tuple[float, Any], ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        require_number("t0", self.t0, positive=False)
        for name in ("duration", "dt"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name))
        require_whole("save_every", self.save_every, 1)
        pairs = isinstance(self.switches, tuple)
        pairs = pairs and all(isinstance(x, tuple) and len(x) == 2 for x in self.switches)
        require(pairs, "switches", self.switches, 'a tuple of (time [s], "pick")')
        before = self.t0
        for time, what in self.switches:
            later = isinstance(time, (int, float)) and np.isfinite(time) and time > before
            require(later, "switches", time, f"times that increase from t0 = {self.t0:g} s")
            known = callable(what) or callable(getattr(self.system, str(what), None))
            expected = f"a function (machine, state), or a method of {type(self.system).__name__}"
            require(known, "switches", repr(what), expected)
            before = time

    def replace(self, **changes) -> "Experiment":
        """The same with other settings."""
        for name in changes:
            require_known("replace", name, [f.name for f in dataclasses.fields(self)])
        return dataclasses.replace(self, **changes)

    @property
    def start(self) -> State:
        """The state the run begins with."""
        if self.state0 is None:
            return self.system.default_state()
        if callable(self.state0):
            return self.state0(self.system)  # pyright: ignore[reportReturnType]
        return self.state0

    @property
    def inputs(self) -> Any:
        """The inputs as `simulate` takes them."""
        control = self.control
        if isinstance(control, Recipe):
            if len(inspect.signature(control.function).parameters) == 1:
                return control(self.system)
            return control.function
        return control

    @property
    def phases(self) -> list[tuple[Any, float]]:
        """The machine, then what each switch makes of it, with the ends [s] of these phases."""
        require(self.duration is not None, "duration", self.duration, "the simulated time [s]")
        stop = self.t0 + self.duration  # pyright: ignore[reportOperatorIssue]
        inside = [(time, what) for time, what in self.switches if time < stop]
        ends = [*(time for time, _ in inside), stop]
        return list(zip([self.system, *(self._turn(w) for _, w in inside)], ends, strict=True))

    def _turn(self, what: Any) -> Callable[[State], System]:
        if callable(what):
            turn: Any = what
            return lambda state: turn(self.system, state)
        return getattr(self.system, what)

    def arguments(self, *, partial: bool = False) -> dict[str, Any]:
        """The arguments of `simulate`; with `partial`, also where the duration is still missing and
        nothing is switched."""
        if partial and not self.switches:
            run: dict[str, Any] = {"system": self.system, "duration": self.duration}
        else:
            run = {"system": self.phases}
        if isinstance(run["system"], list) and len(run["system"]) == 1:
            run = {"system": self.system, "duration": self.duration}
        return run | {
            "state0": self.start,
            "control": self.inputs,
            "dt": self.dt,
            "t0": self.t0,
            "save_every": self.save_every,
            "integrator": self.integrator,
            "formulation": self.formulation,
        }
