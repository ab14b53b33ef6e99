"""Experiments of the study, with all results in one structure."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from ...simulation._simulate import simulate
from ...simulation.trajectory import Trajectory
from ...systems import two_rope_robot
from ..timing import Timing, in_turn
from . import reduced
from .setup import DURATION, STEP, lift

#: segments of each rope, as in the paper
SEGMENTS = 20
#: rounds of time measurement
ROUNDS = 3
#: every n-th step of the full robot is stored
_KEPT = 5
#: ropes with a tension below this [N] are slack
SLACK = 1.0


class Motion(NamedTuple):
    """Motion of the full robot. `dimension` of the equations (two per coordinate and the
    multipliers); `slack`: begin and end [s] of the first interval in which no rope pulls; `top`:
    largest height [m] and its time [s]; `snap`: time [s] of the largest tension of rope 1, and
    largest tension [N] of each rope within 0.1 s of it; `after`: smallest and largest tension [N]
    in the last second."""

    dimension: int
    slack: tuple[float, float]
    top: tuple[float, float]
    snap: tuple[float, float, float]
    after: tuple[float, float]


class Study(NamedTuple):
    """Results of all experiments: `run` of the full robot and its `motion`; `timing` of 15 s;
    `reduced` models; `force` [s]: computing time of one evaluation, by model."""

    run: Trajectory
    motion: Motion
    timing: Timing
    reduced: reduced.Reduced
    force: dict[str, Timing]


def measure(
    say: Callable[[str], None],
    segments: int = SEGMENTS,
    duration: float = DURATION,
    rounds: int = ROUNDS,
) -> Study:
    """Run every experiment; `say` is called with a line before each group."""
    say("the whole robot: taut, slack, taut")
    robot = two_rope_robot(segments)
    start, push = robot.rest(), lift()
    options = {"dt": STEP, "duration": duration, "save_every": _KEPT}

    def go() -> Trajectory:
        run = simulate(robot, start, control=push, integrator="generalised_alpha", **options)
        return jax.block_until_ready(run)

    go()
    run, timing = in_turn({"full": go}, rounds)["full"]
    say("the cost of forces")
    force = reduced.force_cost(segments, rounds)
    say("reduced models, and an explicit run of the full one to compare them with (a minute)")
    small = reduced.measure(segments, duration, rounds)
    return Study(run, motion(run), timing, small, force)


def motion(run: Trajectory) -> Motion:
    """Evaluate the motion of a run. If ropes are never slack, `slack` is an empty interval at the
    end of the run."""
    t, tension = np.asarray(run.t), np.asarray(run.outputs["tension"])
    z = np.asarray(run.outputs["pose"])[:, 1]
    pulling = np.any(tension > SLACK, axis=1)
    first = int(np.argmin(pulling)) if not pulling.all() else len(t) - 1
    again = np.flatnonzero(pulling[first:])
    last = first + int(again[0]) if len(again) else len(t) - 1
    hard = int(np.argmax(tension[:, 0]))
    near = np.abs(t - t[hard]) < 0.1
    late = tension[t > t[-1] - 1.0]
    top = int(np.argmax(z))
    return Motion(
        2 * run.q.shape[1] + 2 * tension.shape[1],
        (float(t[first]), float(t[last])),
        (float(z[top]), float(t[top])),
        (float(t[hard]), float(tension[near, 0].max()), float(tension[near, 1].max())),
        (float(late.min()), float(late.max())),
    )
