"""What a file says of a cable robot: the machine, its start and how to run it."""

from typing import Any, NamedTuple

import numpy as np

from .._base.checks import require_known
from ..control import Pulses
from ..formulations import Formulation
from ..integrators import BY_NAME, Integrator, Unilateral
from ..mechanics import State
from ..simulation._simulate import simulate
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from ..systems import CableRobot


class RobotFile(NamedTuple):
    """A robot, its `start`, and a run: step `dt` and `duration` [s], every `save_every`-th step
    stored.

    `inputs` (n_u,) are constant, `pulses` (k, n_u) act between `pulse_times` (k, 2) [s]; `switches`
    name what happens to the payload ("pick", "place", "drop") and when [s]. `slack`: "report" keeps
    cables as rods and says when one would have to push; "unilateral" lets them go slack. `law`: a
    controller, instead of inputs and pulses. Change a setting with `_replace`."""

    name: str
    robot: CableRobot
    start: State
    dt: float
    duration: float
    save_every: int
    integrator: str
    formulation: Formulation | None
    slack: str
    inputs: np.ndarray
    pulse_times: np.ndarray
    pulses: np.ndarray
    switches: tuple[tuple[float, str], ...]
    law: Any = None

    @property
    def control(self):
        """A controller where there is one; else the constant inputs, with pulses on top."""
        if self.law is not None:
            return self.law
        if len(self.pulses) == 0:
            return self.inputs
        return Pulses(self.pulse_times, self.pulses, period=self.dt, base=self.inputs)

    @property
    def method(self) -> Integrator:
        require_known("integrator", self.integrator, BY_NAME)
        method = BY_NAME[self.integrator]()
        return Unilateral(method) if self.slack == "unilateral" else method

    @property
    def phases(self) -> list[tuple[Any, float]]:
        """As `simulate` takes them: the robot, then what each switch makes of it."""
        return self.experiment.phases

    @property
    def experiment(self) -> Experiment:
        """The robot, its start, its inputs and the run, as `simulate` and `identify` take them."""
        return Experiment(
            self.robot,
            self.start,
            self.control,
            duration=self.duration,
            dt=self.dt,
            integrator=self.method,
            formulation=self.formulation,
            save_every=self.save_every,
            switches=self.switches,
        )

    def simulate(self, **options) -> Trajectory:
        """Run it; `options` are `adjoint`, `throw` and `progress` of `cordax.simulate`."""
        return simulate(self.experiment, **options)
