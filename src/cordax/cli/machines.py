"""Machines that commands know by name, each with a motion that shows it."""

from collections.abc import Callable
from pathlib import Path

from .._checks import require
from ..control import ComputedTorque, Hermite, NearRigidQP, RaisedCosine
from ..experiment import Experiment
from ..io import EXAMPLES, example_path, read_robot
from ..reproduce.neck.setup import DURATION, amplitude
from ..reproduce.rope_robot.setup import lift
from ..systems import Neck, SplineRod, single_strut, two_rope_robot


def _neck() -> Experiment:
    # the controller keeps the numbers it was designed with; the start follows the machine's
    control = ComputedTorque(Neck.default(3), RaisedCosine(amplitude(3)))
    begin = lambda machine: ComputedTorque(machine, RaisedCosine(amplitude(3))).start()
    method = {"dt": 2e-3, "integrator": "linearly_implicit_euler", "save_every": 5}
    return Experiment(Neck.default(3), begin, control, duration=DURATION, **method)


def _rod() -> Experiment:
    rod = SplineRod(2.0, 2e-3, 2700.0, 69e9, 0.33, control_points=9)
    return Experiment(rod, duration=1.0, dt=2e-3, integrator="generalised_alpha", save_every=5)


def _rope_robot() -> Experiment:
    robot = two_rope_robot(10)
    method = {"dt": 1e-3, "integrator": "generalised_alpha", "save_every": 10}
    return Experiment(robot, robot.rest(), lift(52.0), duration=6.0, **method)


def _strut() -> Experiment:
    strut = single_strut()
    times, angles = [0.0, 1.0, 2.0], [[0.0, 0.0], [0.3, 0.15], [0.0, 0.0]]
    path = Hermite(times, angles, [[0.0, 0.0]] * 3)
    control = NearRigidQP(strut, path, 0.01, followed=("cross", "strut"))
    begin = lambda machine: machine.state_at((0.0, 0.0), 0.01)
    return Experiment(strut, begin, control, duration=2.0, dt=1e-3, save_every=20)


KNOWN: dict[str, Callable[[], Experiment]] = {
    "neck": _neck,
    "rod": _rod,
    "rope-robot": _rope_robot,
    "strut": _strut,
    **{name: lambda name=name: read_robot(example_path(name)).experiment for name in EXAMPLES},
}


def experiment_of(machine: str) -> Experiment:
    """By name, or from a file that describes a machine."""
    if machine.endswith(".toml"):
        return read_robot(Path(machine)).experiment
    names = ", ".join(KNOWN)
    require(machine in KNOWN, "machine", repr(machine), f"a .toml file or one of {names}")
    return KNOWN[machine]()
