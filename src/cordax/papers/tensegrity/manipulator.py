"""Section 5.4: the manipulator holds its end effector and moves it up, down and sideways."""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

from ...control import NearRigidQP
from ...formulations import IndependentCoordinates
from ...simulation._simulate import simulate
from ...simulation.trajectory import Trajectory
from ...systems import tensegrity_manipulator
from .setup import EFFECTOR, FRICTION, LEAST_STRAIN, REST_ANGLES, REST_STRAINS, effector_path

STILL, UP, UP_FREE, ASIDE, ASIDE_FREE = (
    "stabilisation",
    "vertical",
    "vertical, no friction",
    "horizontal",
    "horizontal, no friction",
)
#: by case: friction [N m s], and the path: axis, first and second amplitude [m] (Tables 5.8 and
#: 5.9)
_CASES = {
    STILL: (FRICTION, (None, 0.0, 0.0)),
    UP: (FRICTION, (2, -0.5, 0.25)),
    UP_FREE: (0.0, (2, -0.5, 0.25)),
    ASIDE: (FRICTION, (1, -0.35, 0.35)),
    ASIDE_FREE: (0.0, (1, -0.35, 0.35)),
}
#: step [s], and interval between stored steps, equal for all runs, which then share one compiled
#: program
STEP, _KEPT = 2.5e-3, 4
#: a run is lost when a coordinate of the end effector is farther from its path than this [m]
LOST = 0.02


class Motion(NamedTuple):
    """Motion of the manipulator: times `t` (n,) [s], position `place` (n, 3) of the end effector
    and its `deviation` (n, 3) from the path [m], `angles` of the struts (n, 6) [rad], `strain`
    (n, 6), `tension` (n, 6) [N], time at which the run was `lost` [s] (inf: never), and the
    `run`."""

    t: np.ndarray
    place: np.ndarray
    deviation: np.ndarray
    angles: np.ndarray
    strain: np.ndarray
    tension: np.ndarray
    lost: float
    run: Trajectory | None = None

    @property
    def largest(self) -> np.ndarray:
        """Largest deviations, shape (3,) [m]."""
        return np.abs(self.deviation).max(axis=0)


def move(case: str, duration: float) -> Motion:
    """Simulate one of the cases."""
    friction, path = _CASES[case]
    machine, reference = tensegrity_manipulator(friction=friction), effector_path(*path)
    law = NearRigidQP(machine, reference, LEAST_STRAIN, point=EFFECTOR)
    if case == STILL:  # starts from the nominal prism
        start = machine.state_at(np.zeros(6), LEAST_STRAIN)
    else:
        start = machine.state_at(REST_ANGLES, REST_STRAINS)
    run = simulate(
        machine,
        start,
        duration=duration,
        dt=STEP,
        save_every=_KEPT,
        control=law,
        # drift of the loops by round-off would excite modes that grow a hundredfold per second
        formulation=IndependentCoordinates(),
        throw=False,
    )
    return motion(run, np.asarray(jax.vmap(reference.position)(run.t)))


def motion(run: Trajectory, wanted) -> Motion:
    """Evaluate a run until it is lost; `wanted`: desired positions (n, 3) [m]."""
    deviation = np.asarray(run.outputs["end_effector"]) - wanted
    t = np.asarray(run.t)
    good = np.all(np.abs(deviation) < LOST, axis=1)  # False for NaN
    count = len(t) if good.all() else int(np.argmin(good))
    lost = float("inf") if good.all() else float(t[count])
    parts = lambda r: (r.t, r.q, r.v, r.u, r.outputs)
    run = eqx.tree_at(parts, run, jax.tree.map(lambda x: x[:count], parts(run)))
    out = {name: np.asarray(x) for name, x in run.outputs.items()}
    y = out["coordinates"]
    return Motion(
        t[:count],
        out["end_effector"],
        deviation[:count],
        y[:, :6],
        y[:, 6:],
        out["tension"],
        lost,
        run,
    )
