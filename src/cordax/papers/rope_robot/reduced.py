"""Errors and computing times of reduced models of the robot, compared with the full model."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import Baumgarte
from ...integrators import Diffrax
from ...mechanics import State, System
from ...reduction import piecewise_linear, select_snapshots
from ...simulation._simulate import simulate
from ...systems import AxialRopes, two_rope_robot
from ..timing import Timing, in_turn
from .setup import POINTS, RECORDED, lift

#: scale of velocities relative to coordinates, in models that use velocities [s]
VELOCITY = 0.05
#: step of explicit runs [s] for one segment; the frequency of the fastest mode of ropes grows with
#: segments^2
_EXPLICIT = 2.1e-3
#: step of all models except the axial one [s]; at steps of 1 ms, the errors of time integration
#: would be as large as those of the models
_FINE = 2.5e-4
#: tolerance of the adaptive steps of the axial model
_TOLERANCE = 1e-5


class Error(NamedTuple):
    """Deviation from the reference, root mean square over time: that of all coordinates relative to
    the coordinates (as in the paper) and relative to their motion, and that of the platform
    relative to its motion."""

    relative: float
    motion: float
    platform: float


class Reduced(NamedTuple):
    """Results of the reduced models: `segments` of each rope; simulated time `duration` [s];
    `errors` and `timings` by model; `guess`: relative error of a robot that never moves;
    `coordinates`: their number by model."""

    segments: int
    duration: float
    errors: dict[str, Error]
    timings: dict[str, Timing]
    guess: float
    coordinates: dict[str, int]


FULL, START, PAPER = "full model", "piecewise linear, at rest only", "piecewise linear, paper's"
FAR, AXIAL = "piecewise linear, far apart", "axial subspace"


def measure(segments: int, duration: float, rounds: int) -> Reduced:
    """Compare all models with an explicit run of fourth order. The full model and the piecewise
    linear models use the same method and step, and all of them the O(s) solver of the full model.
    The axial model, which is not stiff, uses explicit steps."""
    robot = two_rope_robot(segments)
    start, push = robot.rest(), lift()
    every = lambda dt: max(1, round(RECORDED / dt))
    fine = RECORDED / np.ceil(RECORDED / (_EXPLICIT / segments**2))
    index_1 = Baumgarte(20.0, 20.0)
    given = {"duration": duration, "control": push, "formulation": index_1}
    reference = simulate(robot, start, dt=fine, save_every=every(fine), integrator="rk4", **given)
    states = State(np.asarray(reference.q), np.asarray(reference.v))
    at = lambda t: int(np.argmin(np.abs(np.asarray(reference.t) - t)))
    chosen = [State(states.q[at(t)], states.v[at(t)]) for t in POINTS]
    count = len(chosen)
    axial = AxialRopes(robot)
    linear = lambda points, scale=0.0: piecewise_linear(
        robot, points, velocity_scale=scale, structured=True
    )
    models: dict[str, System] = {
        FULL: robot,
        # one point, repeated as often as the paper has points, so that no new program is compiled
        START: linear([start] * count),
        PAPER: linear(chosen),
        FAR: linear(select_snapshots(states, count, VELOCITY), VELOCITY),
        AXIAL: axial,
    }
    # stability limits these steps; a PI controller of the step size rejects fewer of them
    steps = dfx.PIDController(rtol=_TOLERANCE, atol=_TOLERANCE, pcoeff=0.4, icoeff=0.3)
    explicit = Diffrax(dfx.Tsit5(), steps)

    def whole() -> np.ndarray:
        run = simulate(
            axial, axial.project(start), dt=RECORDED, integrator=explicit, throw=False, **given
        )
        return np.asarray(jax.vmap(lambda y: axial.lift(State(y, y)).q)(run.q))

    def job(model) -> Callable[[], np.ndarray]:
        return lambda: np.asarray(
            simulate(
                model,
                start,
                dt=_FINE,
                save_every=every(_FINE),
                integrator="rosenbrock_2",
                throw=False,
                **given,
            ).q
        )

    jobs = {name: whole if name == AXIAL else job(model) for name, model in models.items()}
    for name in (FULL, PAPER, AXIAL):
        jobs[name]()
    timed = in_turn({name: jobs[name] for name in (FULL, PAPER, AXIAL)}, rounds)
    found = {name: q for name, (q, _) in timed.items()}
    found |= {name: jobs[name]() for name in (START, FAR)}
    t = np.asarray(reference.t)
    return Reduced(
        segments,
        duration,
        {name: error(t, found[name], states.q) for name in models},
        {name: timing for name, (_, timing) in timed.items()},
        error(t, np.broadcast_to(states.q[0], states.q.shape), states.q).relative,
        {name: model.n_q for name, model in models.items()},
    )


def error(t, q, reference) -> Error:
    """Error of coordinates (k, n) at times (k,); the coordinates of the platform are the last."""
    norm = lambda x: float(np.sqrt(np.trapezoid(np.sum(np.square(x), axis=1), t)))
    off, moved = q - reference, reference - reference[0]
    return Error(
        norm(off) / norm(reference),
        norm(off) / norm(moved),
        norm(off[:, -3:]) / norm(moved[:, -3:]),
    )


def force_cost(segments: int, rounds: int, evaluations: int = 1000) -> dict[str, Timing]:
    """Computing time [s] of one evaluation of the force, exact and piecewise linear, measured in a
    loop."""
    robot = two_rope_robot(segments)
    pose = [jnp.array([0.45, z, -0.25]) for z in (-3.27, -3.2, -3.15, -3.1)]
    points = [robot.hanging(p) for p in pose]
    t, u = jnp.zeros(()), jnp.zeros(3)

    @eqx.filter_jit
    def loop(model, q, v):
        step = lambda _, y: y + 1e-12 * model.force(t, y, v, u)
        return jax.lax.fori_loop(0, evaluations, step, q)

    models = {FULL: robot, PAPER: piecewise_linear(robot, points)}
    jobs = {
        name: lambda m=m: jax.block_until_ready(loop(m, points[1].q, points[1].v))
        for name, m in models.items()
    }
    for go in jobs.values():
        go()
    timed = in_turn(jobs, rounds)
    per = lambda timing: Timing(tuple(x / evaluations for x in timing.rounds))
    return {name: per(timing) for name, (_, timing) in timed.items()}
