"""Sections 5.2 and 5.3: the strut under constant torques, and along a path."""

from typing import NamedTuple

import jax
import numpy as np

from ...control import NearRigidQP
from ...simulation._simulate import simulate
from ...simulation.trajectory import Trajectory
from ...systems import single_strut
from .setup import (
    END_MASS,
    PULLEY_RADIUS,
    STRESS,
    STRUT_FOR,
    VARIANTS_MODULUS,
    VARIANTS_TORQUES,
    strut_path,
)

#: variants of the second coordinate of a cable, with the letters of the thesis
VARIANTS = {"strain": "eps", "stretch": "u", "length": "l"}
ENDS = "strain, cable ends with mass"
#: choices that the thesis leaves open, by name: options of the machine and of the controller
PLAIN, DAMPED, LIGHT, LOW = "mu = 0", "mu = 1 MPa s", "no block mass", "pulleys on the ground"
HELD, FED_BACK = "held for 1 ms", "held for 1 ms, feedback, mu = 10 MPa s"
_CHOICES: dict[str, tuple[dict, dict]] = {
    PLAIN: ({}, {}),
    DAMPED: ({"viscosity": 1e6}, {}),
    LIGHT: ({"block_mass": 0.0}, {}),
    LOW: ({"offset": 0.0}, {}),
    HELD: ({}, {"period": 1e-3}),
    FED_BACK: ({"viscosity": 1e7}, {"period": 1e-3, "K_p": 100.0, "K_d": 20.0}),
}
#: every n-th step is stored, with the same n for all runs, which then share one compiled program
_KEPT = 10


class Motion(NamedTuple):
    """Motion of a strut: times `t` (n,) [s], `angles` (n, 2) [rad], `strain` (n, c), `deviation`
    (n, 2) of the angles from their path [rad], the smallest allowed strain `least`, and the
    `run`."""

    t: np.ndarray
    angles: np.ndarray
    strain: np.ndarray
    deviation: np.ndarray
    least: float
    run: Trajectory | None = None

    @property
    def largest(self) -> np.ndarray:
        """Largest deviations, shape (2,) [rad]."""
        return np.abs(self.deviation).max(axis=0)


def variants(duration: float, dt: float) -> dict[str, Motion]:
    """Simulate the strut under constant torques, by variant, and with massive cable ends."""
    cases = {name: (name, 0.0) for name in VARIANTS} | {ENDS: ("strain", END_MASS)}
    found = {}
    for name, (variant, mass) in cases.items():
        machine = single_strut(variant, modulus=VARIANTS_MODULUS, cable_end_mass=mass)
        area, radius = machine.cables.area, PULLEY_RADIUS
        balanced = VARIANTS_TORQUES[1] / (radius * area * VARIANTS_MODULUS)
        start = machine.state_at((0.0, 0.0), balanced)
        u = np.array(VARIANTS_TORQUES)
        run = simulate(machine, start, duration=duration, dt=dt, save_every=_KEPT, control=u)
        found[name] = _motion(run, 0.0 * np.asarray(run.outputs["angles"]), 0.0)
    return found


def follow(modulus: float, choice: str, dt: float, duration: float = STRUT_FOR) -> Motion:
    """Simulate the strut along the path of Table 5.6, with cables of a modulus [Pa]."""
    options, control = _CHOICES[choice]
    machine, least = single_strut(modulus=modulus, **options), STRESS / modulus
    path = strut_path()
    law = NearRigidQP(machine, path, least, followed=("cross", "strut"), **control)
    start = machine.state_at((0.0, 0.0), least)
    run = simulate(machine, start, duration=duration, dt=dt, save_every=_KEPT, control=law)
    return _motion(run, np.asarray(jax.vmap(path.position)(run.t)), least)


def _motion(run: Trajectory, wanted, least: float) -> Motion:
    angles = np.asarray(run.outputs["angles"])
    strain = np.asarray(run.outputs["strain"])
    return Motion(np.asarray(run.t), angles, strain, angles - wanted, least, run)
