"""Experiments of the study, with all results in one structure."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import Baumgarte, Projected, UdwadiaKalaba
from ...integrators import Unilateral
from ...math.rotations import matrix
from ...mechanics import State
from ...simulation._simulate import simulate
from ...simulation.experiment import Experiment
from ...simulation.trajectory import Trajectory
from ...statics import modes
from ...systems.cable_robot.payload import EQUAL, Payload
from ..timing import Timing, in_turn
from .setup import (
    PENALTY,
    PRINTED,
    STEP,
    STORED,
    motorised,
    overturning,
    picking,
    robot_of,
    suspended,
    with_step,
)

MODELS = (1, 2, 3)
#: time at which the push on the plate ends [s]
FREE = 0.52
#: time at which the payload is picked up [s]
PICK = 11.0
#: further values of linear [N s/m] and angular [N m s] damping of the overturning triangle, besides
#: (1, 0.02)
OTHER_DAMPING = ((0.2, 0.005), (0.5, 0.01), (2.0, 0.05))


class Drift(NamedTuple):
    """Constraint drift of one formulation: largest |Phi| and |dPhi/dt|; largest errors of position
    [m] and tension [N] over the first half of the run, relative to a run with half the time step;
    and the range of the energy after the push [J]."""

    dt: float
    duration: float
    phi: float
    rate: float
    position: float
    tension: float
    energy: float
    violation: np.ndarray


class Picked(NamedTuple):
    """Results of a pick: tensions before and long after it [N], sag and sideways motion of the
    platform [m], and its speed at the pick [m/s]."""

    before: np.ndarray
    after: np.ndarray
    sag: float
    sideways: float
    speed: float


class Joint(NamedTuple):
    """Comparison of the payload joint of eq. (20), with equal pairs of axes, with crossed pairs:
    numbers of vanishing singular values of the scaled constraint Jacobian, and largest differences
    of tensions [N] and payload position [m] in the second after the pick."""

    vanishing_equal: int
    vanishing_crossed: int
    tension: float
    payload: float


class Overturned(NamedTuple):
    """Results of an overturning: time at which the platform is upright [s], time at which a cable
    first pushes [s], smallest tension [N] and its time, largest tension [N]."""

    flip: float
    pushes: float
    least: float
    least_at: float
    largest: float


class Study(NamedTuple):
    impulse: dict[int, Trajectory]
    printed: dict[int, Trajectory]
    printed_moment: float
    frequencies: dict[int, np.ndarray]
    drift: dict[str, Drift]
    pick: Trajectory
    pick_off: Trajectory
    picked: Picked
    picked_off: Picked
    joint: Joint
    overturn: Trajectory
    unilateral: Trajectory
    overturned: Overturned
    overturned_penalty: Drift
    flips: dict[str, float]
    norm_factor: float
    timings: dict[str, Timing]


def measure(say: Callable[[str], None]) -> Study:
    """Run every experiment; `say` is called with a line before each group."""
    say("compiling")
    with ThreadPoolExecutor(2) as pool:  # XLA compiles without holding the GIL
        pending = pool.submit(overturning), pool.submit(picking, True)
        plates = dict(zip(MODELS, pool.map(suspended, MODELS), strict=True))
        triangle, crate = (x.result() for x in pending)
        ways = _formulations(plates[2])
        loose = triangle.replace(integrator=Unilateral(), save_every=10)
        papers = with_step(triangle, STEP, save_every=round(STORED / STEP), formulation=PENALTY)
        motors = motorised(triangle)
        # start the longest runs first
        every = [crate, loose, *ways.values(), *plates.values(), motors, triangle, papers]
        list(pool.map(_go, every))
    say("the push: three models of exits, six formulations")
    measured = in_turn({model: lambda file=file: _go(file) for model, file in plates.items()})
    impulse = {model: run for model, (run, _) in measured.items()}
    timings = {f"Model {model}": timing for model, (_, timing) in measured.items()}
    measured = in_turn({"overturning": lambda: _go(papers)}, rounds=1)
    penalty_run, timings["overturning"] = measured["overturning"]
    printed = {model: _go(suspended(model, PRINTED)) for model in (1, 2)}
    drift = _drifts(plates[2], impulse[2], ways)
    frequencies = {model: _frequencies(file) for model, file in plates.items()}
    say("the pick")
    crate_off = picking(False)
    pick, pick_off = _go(crate), _go(crate_off)
    joint, timings["pick"] = _joint(crate_off, pick_off)
    say("the overturning")
    overturn = _go(triangle)
    flips = {
        f"damping {a:g} N s/m, {b:g} N m s": flip_time(_go(overturning(a, b)))
        for a, b in OTHER_DAMPING
    }
    flips["lengths held by motors"] = flip_time(_go(motors))
    unilateral = _go(loose)
    flips["cables that go slack"] = flip_time(unilateral)
    return Study(
        impulse=impulse,
        printed=printed,
        printed_moment=_unbalanced_moment(suspended(1, PRINTED)),
        frequencies=frequencies,
        drift=drift,
        pick=pick,
        pick_off=pick_off,
        picked=_picked(pick),
        picked_off=_picked(pick_off),
        joint=joint,
        overturn=overturn,
        unilateral=unilateral,
        overturned=_overturned(overturn),
        overturned_penalty=_drift(papers, penalty_run),
        flips=flips,
        norm_factor=_norm_factor(plates[1]),
        timings=timings,
    )


def _go(file: Experiment) -> Trajectory:
    return jax.block_until_ready(simulate(file))


# --- the push ------------------------------------------------------------------------------------
def _formulations(plate: Experiment) -> dict[str, Experiment]:
    """Experiments with formulations other than that of the paper, with which the models are run."""
    return {
        "penalty": plate.replace(formulation=PENALTY),
        "projected": plate.replace(formulation=Projected()),
        # every evaluation needs a singular value decomposition, so the run lasts only one second
        "Udwadia-Kalaba 1e3, 1e3": plate.replace(formulation=UdwadiaKalaba(1e3, 1e3), duration=1.0),
        "index 3, generalised alpha": with_step(
            plate, 1e-3, formulation=None, integrator="generalised_alpha", save_every=10
        ),
    }


def _drifts(plate: Experiment, baumgarte: Trajectory, ways: dict[str, Experiment]):
    bare = plate.replace(formulation=Baumgarte(0.0, 0.0))
    assert plate.duration is not None
    # half the time step and half the duration: equally many steps, so the program is compiled once
    half = with_step(bare, 0.5 * STEP, duration=0.5 * plate.duration)
    reference = _go(half)
    rows = {"Baumgarte 1e3, 1e3": (plate, baumgarte), "bare index 1": (bare, _go(bare))}
    rows |= {name: (file, _go(file)) for name, file in ways.items()}
    return {name: _drift(file, run, reference) for name, (file, run) in rows.items()}


def _drift(file: Experiment, run: Trajectory, reference: Trajectory | None = None) -> Drift:
    off = lambda name: np.nan
    if reference is not None:
        n = min(len(run.t), (len(reference.t) + 1) // 2)
        off = lambda name: float(np.max(np.abs(run[name][:n] - reference[name][: 2 * n : 2])))
    energy = np.asarray(run.energy()["total"])[np.asarray(run.t) > FREE + 1e-9]
    return Drift(
        file.dt,
        file.duration,
        float(np.max(run.drift())),
        float(np.max(np.abs(_rates(robot_of(file), run.t, run.q, run.v)))),
        off("position"),
        off("tension"),
        float(np.ptp(energy)),
        np.asarray(run.drift()),
    )


@eqx.filter_jit
def _rates(robot, t, q, v):
    return jax.lax.map(lambda x: robot.structure().constraint_terms(*x).rate, (t, q, v))


def _frequencies(file: Experiment) -> np.ndarray:
    """Frequencies of undamped small motions about the initial state [Hz], each once, without those
    of rigid-body motions."""
    found = modes(robot_of(file), file.start).frequency
    return np.sort(found[found > 1e-3])[::2]


def _unbalanced_moment(file: Experiment) -> float:
    """Moment that remains with the tensions that best hold the platform [N m]."""
    robot = robot_of(file)
    left = robot.structure_matrix() @ robot.static_tensions() - robot.static_wrench()
    return float(jnp.linalg.norm(left[3:]))


def _norm_factor(file: Experiment) -> float:
    """Ratio of the norm of the generalised force of a cable to its tension, in the coordinates of
    the plate in the paper: r_j 0.1 m along y from r_i, v_i along x, v_j along z."""
    body = robot_of(file).platform
    papers = type(body)(
        body.mass, body.inertia, r_j=(0.0, 0.1, 0.0), v_i=(1.0, 0.0, 0.0), v_j=(0.0, 0.0, 1.0)
    )
    return float(jnp.linalg.norm(papers.weights(robot_of(file).attachments[0])))


def rms(a: Trajectory, b: Trajectory, name: str = "position") -> np.ndarray:
    """Root mean square of the difference of two runs over time, for each component."""
    return np.sqrt(np.mean((np.asarray(a[name]) - np.asarray(b[name])) ** 2, axis=0))


# --- the pick ------------------------------------------------------------------------------------
def _picked(run: Trajectory) -> Picked:
    t, p, f = (np.asarray(x) for x in (run.t, run["position"], run["tension"]))
    at, later = int(np.searchsorted(t, PICK - 1e-9)), t > PICK + 1e-9
    still = later & (t < 13.0)  # before the payload is lifted
    moved = np.abs(p[later][:, :2] - p[at, :2])
    return Picked(
        f[at - 1],
        f[still][-1],
        float(p[at, 2] - p[still][:, 2].min()),
        float(moved.max()),
        float(np.linalg.norm(run["velocity"][at])),
    )


def _joint(file: Experiment, run: Trajectory) -> tuple[Joint, Timing]:
    """Compare both kinds of joints in the second after the pick, with the penalty formulation;
    return also the estimated computing time of the whole run with it."""
    at = int(np.searchsorted(np.asarray(run.t), PICK - 1e-9))
    state = State(run.q[at], run.v[at])
    load = robot_of(file).payload
    assert load is not None
    paired = Payload(load.body, load.joint, pairs=EQUAL)
    equal = eqx.tree_at(lambda r: r.payload, robot_of(file), paired)
    robots = [robot_of(file).pick(state), equal.pick(state)]
    options = {"dt": STEP, "duration": 1.0, "save_every": 100, "t0": PICK, "formulation": PENALTY}
    crossed, same = (jax.block_until_ready(simulate(r, state, **options)) for r in robots)
    again = lambda: jax.block_until_ready(simulate(robots[0], state, **options))
    second = in_turn({"second": again}, rounds=1)["second"][1]
    assert file.duration is not None
    whole = Timing(tuple(x * file.duration for x in second.rounds))
    off = lambda name: float(np.max(np.abs(crossed[name] - same[name])[1:]))
    vanishing = [_vanishing(r, state) for r in robots]
    return Joint(vanishing[1], vanishing[0], off("tension"), off("payload_position")), whole


def _vanishing(robot, state: State) -> int:
    J = np.asarray(robot.structure().constraint_terms(jnp.asarray(PICK), state.q, state.v).jacobian)
    sizes = np.linalg.svd(J / np.linalg.norm(J, axis=1, keepdims=True), compute_uv=False)
    return int(np.sum(sizes < 1e-8))


# --- the overturning -----------------------------------------------------------------------------
def flip_time(run: Trajectory) -> float:
    """Time at which the x axis of the platform is vertical [s]: the pitch is 90 degrees, and Z-Y-X
    Euler angles are singular."""
    level = np.asarray(jax.vmap(matrix)(run["quaternion"])[:, 0, 0])
    return _crossing(np.asarray(run.t), level)


def _crossing(t: np.ndarray, x: np.ndarray) -> float:
    """First time at which x falls through zero, by linear interpolation; inf if it never does."""
    below = np.flatnonzero((x[1:] < 0) & (x[:-1] >= 0))
    if below.size == 0:
        return np.inf
    i = int(below[0])
    return float(t[i] + (t[i + 1] - t[i]) * x[i] / (x[i] - x[i + 1]))


def _overturned(run: Trajectory) -> Overturned:
    t, f = np.asarray(run.t), np.asarray(run["tension"])
    least = int(np.argmin(f.min(axis=1)))
    return Overturned(
        flip_time(run),
        _crossing(t, f.min(axis=1)),
        float(f[least].min()),
        float(t[least]),
        float(f.max()),
    )
