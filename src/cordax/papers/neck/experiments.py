"""Experiments of the study, with all results in one structure."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...formulations import Dynamics, Minimal
from ...integrators import BY_NAME
from ..timing import in_turn
from .limits import Predicted, observe_closed_loop, observe_open_loop, predict, with_choices
from .march import Run, difference, march
from .setup import Controlled, Tendons, controlled

#: the two schemes of the paper
SCHEMES = {"explicit": "explicit_euler", "implicit": "linearly_implicit_euler"}
JOINTS = (3, 4)
#: steps tried [s]
RIGID_STEPS = (4e-4, 2e-3, 5e-2)
EXPLICIT_STEPS = (2.5e-5, 1e-4, 3e-4, 4e-4, 5e-4, 1e-3, 2e-3)
IMPLICIT_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 1e-2, 2e-2)
#: another rotor inertia [kg m^2] and bandwidth [rad/s], as plausible as the default values
OTHER_CHOICES = (3e-5, 4.0)
#: rotor inertia [kg m^2] of a small motor, on which frozen dry friction chatters
SMALL_ROTOR = 1e-6
#: time at which schemes are compared with the converged motion [s]
COMPARED_AT = 1.0
COMPARED_STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)

Key = tuple[int, Tendons, str]


class Tried(NamedTuple):
    """One run of a scan: largest tracking error [rad], inf if it failed, and time of failure
    [s]."""

    joints: int
    tendons: Tendons
    scheme: str
    dt: float
    error: float
    failure_time: float


class Limits(NamedTuple):
    """Largest stable steps of the explicit scheme with elastic tendons [s]."""

    predicted: Predicted
    open_loop: float
    closed_loop: float
    other_choices: float


class Convergence(NamedTuple):
    """Convergence of one scheme: steps [s], errors of the joint angles at `COMPARED_AT` [rad] (inf
    if the run failed) and wall time per step [s]."""

    dt: np.ndarray
    error: np.ndarray
    seconds_per_step: float


class Study(NamedTuple):
    """Results of all experiments. `runs`: at the steps of the paper, by joints, tendons and scheme;
    `runs_at_04`: those of Table 2 at 0.4 ms; `accurate`: explicit runs with elastic tendons at
    0.2 ms."""

    runs: dict[Key, Run]
    runs_at_04: dict[str, Run]
    at_smallest: Run
    accurate: dict[int, Run]
    differences: dict[int, dict[str, float]]
    tried: list[Tried]
    limits: dict[int, Limits]
    chatter: dict[float, float]
    convergence: dict[str, Convergence]
    rigid_errors: dict[str, Convergence]
    left_out: dict[str, str]


def measure(say: Callable[[str], None]) -> Study:
    """Run every experiment; `say` is called with a line before each group."""
    kinds: tuple[Tendons, ...] = ("rigid", "elastic")
    cases: dict[tuple[int, Tendons], Controlled] = {
        (n, kind): controlled(n, kind) for n in JOINTS for kind in kinds
    }
    say("compiling")
    accepted, left_out = _accepted(cases[3, "elastic"])
    others = [name for name in accepted if name not in SCHEMES.values()]
    # the implicit schemes, which are last by name, take longest to compile, so they start first
    pairs = [(cases[3, "elastic"], name) for name in reversed(others)]
    pairs += [(case, name) for case in cases.values() for name in SCHEMES.values()]
    with ThreadPoolExecutor() as pool:  # XLA compiles without holding the GIL
        list(pool.map(lambda pair: march(*pair, dt=1e-4, duration=1e-4), pairs))
    say("the motion at 2 ms: 3 and 4 joints, rigid and elastic tendons, both schemes")
    runs = _timed(
        {
            (n, kind, scheme): (case, SCHEMES[scheme], 2e-3)
            for (n, kind), case in cases.items()
            for scheme in SCHEMES
        }
    )
    at_04 = _timed({str(kind): (cases[3, kind], "explicit_euler", 4e-4) for kind in kinds})
    at_smallest = march(cases[4, "elastic"], "explicit_euler", 2.5e-5)
    accurate = {n: march(cases[n, "elastic"], "explicit_euler", 2e-4) for n in JOINTS}
    say("stability at other steps")
    tried = [
        _try(cases[n, kind], (n, kind, scheme), dt)
        for (n, kind, scheme) in runs
        for dt in (
            RIGID_STEPS
            if kind == "rigid"
            else EXPLICIT_STEPS
            if scheme == "explicit"
            else IMPLICIT_STEPS
        )
    ]
    say("limits of the explicit scheme: predicted and observed, open and closed loop")
    with ThreadPoolExecutor() as pool:
        followed = [runs[n, "elastic", "implicit"] for n in JOINTS]
        limits = dict(zip(JOINTS, pool.map(_limits, followed), strict=True))
    chatter = {i: _chatter(with_choices(cases[3, "elastic"], i, 6.5)) for i in (5e-5, SMALL_ROTOR)}
    say("error against step of every scheme")
    convergence = _convergence(cases[3, "elastic"], accepted)
    rigid = {s: _against_desired(cases[3, "rigid"], SCHEMES[s]) for s in SCHEMES}
    differences = {n: _differences(n, runs, accurate[n]) for n in JOINTS}
    return Study(
        runs,
        at_04,
        at_smallest,
        accurate,
        differences,
        tried,
        limits,
        chatter,
        convergence,
        rigid,
        left_out,
    )


def _timed(given: dict) -> dict:
    """Run cases that have been compiled, and measure them alternately."""
    jobs = {key: lambda arguments=arguments: march(*arguments) for key, arguments in given.items()}
    return {key: run._replace(timing=timing) for key, (run, timing) in in_turn(jobs).items()}


def _try(case: Controlled, key: Key, dt: float) -> Tried:
    run = march(case, SCHEMES[key[2]], dt)
    return Tried(*key, dt, run.error, run.failure_time)


def _limits(run: Run) -> Limits:
    case = run.case
    return Limits(
        predict(run),
        observe_open_loop(case),
        observe_closed_loop(case),
        observe_closed_loop(with_choices(case, *OTHER_CHOICES)),
    )


def _differences(n: int, runs: dict[Key, Run], accurate: Run) -> dict[str, float]:
    """Largest differences of joint angles between models and schemes [rad]."""
    rigid = {s: runs[n, "rigid", s] for s in SCHEMES}
    implicit = runs[n, "elastic", "implicit"]
    return {
        "rigid explicit - rigid implicit": difference(rigid["explicit"], rigid["implicit"]),
        "elastic implicit - rigid implicit": difference(implicit, rigid["implicit"]),
        "elastic explicit - rigid explicit": difference(accurate, rigid["explicit"]),
        "elastic explicit - elastic implicit": difference(accurate, implicit),
    }


def _chatter(case: Controlled) -> float:
    """Largest change of a joint rate from one implicit step of 2 ms to the next [rad/s] in the
    first 0.1 s, in which the motors are nearly at rest."""
    run = march(case, "linearly_implicit_euler", 2e-3, duration=0.1)
    return float(
        np.max(np.abs(np.diff(run.series(lambda p: p.v)[:, : case.neck.n_joints], axis=0)))
    )


def _accepted(case: Controlled) -> tuple[list[str], dict[str, str]]:
    """Schemes that support the machine, and for the others the reason why they do not."""
    accepted, left_out = [], {}
    dynamics = Dynamics(case.neck, Minimal())
    for name, method in BY_NAME.items():
        try:
            method().check(dynamics)
            accepted.append(name)
        except ValueError as refused:
            left_out[name] = str(refused)
    return accepted, left_out


def _convergence(case: Controlled, schemes: list[str]) -> dict[str, Convergence]:
    exact = march(case, "rk4", 6.25e-5, COMPARED_AT).alpha[-1]
    found = {}
    for name in schemes:
        runs = [march(case, name, dt, COMPARED_AT) for dt in COMPARED_STEPS]
        error = lambda run: (
            np.inf if run.error > 1.0 else float(np.max(np.abs(run.alpha[-1] - exact)))
        )
        fastest = min(run.seconds_per_step for run in runs)
        found[name] = Convergence(
            np.array(COMPARED_STEPS), np.array([error(r) for r in runs]), fastest
        )
    return found


def _against_desired(case: Controlled, integrator: str) -> Convergence:
    """Convergence to the desired motion. With rigid tendons the controlled motion is exactly the
    desired one, so the tracking error is the error of the scheme."""
    runs = [march(case, integrator, dt, COMPARED_AT) for dt in COMPARED_STEPS]
    error = [float(np.max(np.abs((r.alpha - r.desired)[-1]))) for r in runs]
    fastest = min(r.seconds_per_step for r in runs)
    return Convergence(np.array(COMPARED_STEPS), np.array(error), fastest)


def order(convergence: Convergence) -> float:
    """Order of convergence: slope of error over step from the two smallest steps whose errors are
    above rounding (1e-11 rad)."""
    good = np.flatnonzero(np.isfinite(convergence.error) & (convergence.error > 1e-11))[-2:]
    if len(good) < 2:
        return float("nan")
    e, dt = convergence.error[good], convergence.dt[good]
    return float(np.log(e[0] / e[1]) / np.log(dt[0] / dt[1]))
