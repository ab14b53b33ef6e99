"""Experiments of the study, with all results in one structure."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...integrators import BY_NAME
from ..timing import ROUNDS
from .granularity import CELLS, Granularity, granularity
from .march import Run, march, timed
from .masses import MASSES, Spectrum, spectrum
from .paper import TIMES
from .schemes import (
    COMPARED_AT,
    COMPARED_STEPS,
    LABELS,
    Scheme,
    energy,
    evaluations,
    fastest,
    growth_exponent,
    mistuned_zhai,
    observed_limit,
    position_error,
    predicted_limit,
)
from .setup import AMPLITUDE, GRID_STEP, STEP, aluminium_rod, soft_rod

#: the three schemes of the paper
PAPERS = ("forest_ruth_4", "rk4", "zhai")
#: widths of the torsion tried [1/m]; 0 is the strain as printed
WIDTHS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 0.0)
#: numbers of control points for which interpretations of the mass matrix are compared
MASS_POINTS = (5, 9, 13, 19)
#: schemes whose error is followed over time, their step [s] and the duration [s]
FOLLOWED = ("forest_ruth_4", "suzuki_4", "rk4")
FOLLOWED_STEP, FOLLOWED_FOR = 1e-3, 5.0
#: steps per second at which schemes evaluate the force 3000 times per second
EQUAL_COST = {"forest_ruth_4": 1000, "rk4": 750, "suzuki_4": 600}
#: runs with real aluminium: duration [s], steps of the implicit midpoint rule [s], step of the
#: explicit runs that count as exact [s]
ALUMINIUM_FOR, ALUMINIUM_STEPS, ALUMINIUM_FINE = 0.4, (2e-3, 1e-3, 5e-4), 1e-5
#: Zhai parameter below its standard value, and omega dt at which its growth is reported
MISTUNED = (1.0 / 3.0, 1.0)


class Growth(NamedTuple):
    """Growth of a position error over time: `t` [s] (k,), `error` [m] (k,) and the power of
    time."""

    t: np.ndarray
    error: np.ndarray
    exponent: float


class Symmetry(NamedTuple):
    """Largest |y| [m] and |theta| [rad], and largest difference of height between mirrored control
    points within 5 s [m]."""

    y: float
    theta: float
    mirror: float


class Midpoint(NamedTuple):
    """The implicit midpoint rule on real aluminium: position errors against the converged run,
    largest along the run, at its end, and root mean square [m], and error of the energy [J]."""

    largest: float
    end: float
    rms: float
    energy: float


class Aluminium(NamedTuple):
    """Results with real aluminium: largest stable steps of Forest-Ruth, predicted and observed [s];
    `converged` [m]: difference between two explicit runs of fourth order; `lowest` height of a
    control point [m]; `midpoint` by step [s]."""

    predicted: float
    observed: float
    converged: float
    lowest: float
    midpoint: dict[float, Midpoint]


class Study(NamedTuple):
    """Results of all experiments: `runs` of Forest-Ruth at 2 ms by load; `seconds` of computing by
    load, scheme and simulated time [s]; `failures` [s] by torsion width [1/m] and scheme, inf if
    there is none; `equal_cost` position errors [m] at `COMPARED_AT`; `spectra` by interpretation of
    the mass matrix and number of control points; `mistuned_growth` per step of Zhai's method."""

    runs: dict[str, Run]
    schemes: dict[str, Scheme]
    growth: dict[str, Growth]
    equal_cost: dict[str, float]
    seconds: dict[str, dict[str, dict[float, float]]]
    failures: dict[float, dict[str, float]]
    symmetry: Symmetry
    granularity: Granularity
    aluminium: Aluminium
    spectra: dict[str, dict[int, Spectrum]]
    mistuned_growth: float


def measure(say: Callable[[str], None]) -> Study:
    """Run every experiment; `say` is called with a line before each group."""
    say("compiling")
    rod = soft_rod()
    # compile the slowest ones first
    pairs = [(rod, name) for name in reversed(LABELS)]
    pairs += [(soft_rod(*cell), "forest_ruth_4") for cell in reversed(CELLS) if cell != (9, 101)]
    with ThreadPoolExecutor(2) as pool:  # XLA compiles without holding the GIL
        list(pool.map(lambda pair: march(*pair, dt=STEP, duration=5 * STEP, stride=5), pairs))
    say("the paper's tables: computing times")
    seconds = {load: {name: _seconds(name, load) for name in PAPERS} for load in AMPLITUDE}
    ten = _ten_seconds()
    grid = granularity()
    say("seven schemes: order, evaluations, limits, energy; torsion; real aluminium")
    runs = {load: march(rod, "forest_ruth_4", STEP, load=load) for load in AMPLITUDE}
    exact = march(rod, "suzuki_4", 1.25e-4, FOLLOWED_FOR, stride=800)
    frequency = fastest(rod)
    with ThreadPoolExecutor(2) as pool:
        rest = pool.submit(_aluminium), pool.submit(lambda: {w: _failures(w) for w in WIDTHS})
        measured = pool.map(lambda name: _scheme(name, exact, frequency, ten[name]), LABELS)
        schemes = dict(zip(LABELS, measured, strict=True))
        aluminium, failures = (part.result() for part in rest)
    return Study(
        runs,
        schemes,
        {name: _growth(name, exact) for name in FOLLOWED},
        {name: _equal_cost(name, steps, exact) for name, steps in EQUAL_COST.items()},
        seconds,
        failures,
        _symmetry(runs["gravity"]),
        grid,
        aluminium,
        {m: {n: spectrum(aluminium_rod(n), m) for n in MASS_POINTS} for m in MASSES},
        mistuned_zhai(*MISTUNED),
    )


def _seconds(name: str, load: str) -> dict[float, float]:
    """Computing times [s] by simulated time [s], at the step of the paper."""
    given, options = {name: (soft_rod(), name)}, {"load": load, "stride": 50}
    return {t: timed(given, 1, STEP, duration=t, **options)[name].seconds for t in TIMES}


def _ten_seconds() -> dict[str, Run]:
    """Run of the paper with every scheme. An implicit step costs a hundred times as much as an
    explicit one."""
    runs = {}
    for explicit, rounds in ((True, ROUNDS), (False, 1)):
        given = {x: (soft_rod(), x) for x in LABELS if BY_NAME[x].traits.explicit == explicit}
        runs |= timed(given, rounds, STEP, stride=50)
    return runs


def _scheme(name: str, exact: Run, frequency: float, ten: Run) -> Scheme:
    rod, explicit = exact.rod, BY_NAME[name].traits.explicit
    steps = COMPARED_STEPS if explicit else COMPARED_STEPS[:-1]
    errors = {
        dt: position_error(march(rod, name, dt, COMPARED_AT, stride=round(0.1 / dt)), exact)
        for dt in steps
    }
    predicted = predicted_limit(name, frequency)
    limit = lambda load: observed_limit(rod, name, predicted, load) if explicit else np.inf
    energies = {STEP: energy(march(rod, name, STEP, stride=5) if explicit else ten)}
    if explicit:
        energies[GRID_STEP] = energy(march(rod, name, GRID_STEP, stride=5))
    observed = {load: limit(load) for load in AMPLITUDE}
    count = evaluations(rod, name)
    return Scheme(errors, count, predicted, observed, energies, ten.timing)


def _growth(name: str, exact: Run) -> Growth:
    run = march(exact.rod, name, FOLLOWED_STEP, FOLLOWED_FOR, stride=100)
    off = np.max(np.abs(run.control - exact.control)[:, :, :3], axis=(1, 2))
    late = run.t > 0.5 - 1e-9
    return Growth(run.t[late], off[late], growth_exponent(run.t[late], off[late]))


def _equal_cost(name: str, steps: int, exact: Run) -> float:
    run = march(exact.rod, name, COMPARED_AT / steps, COMPARED_AT, stride=steps)
    return position_error(run, exact)


def _failures(width: float) -> dict[str, float]:
    rod = soft_rod(torsion_width=width)
    run = lambda name: march(rod, name, STEP, load="forced", stride=5)
    return {name: run(name).failure_time for name in PAPERS}


def _symmetry(run: Run) -> Symmetry:
    P = run.control[run.t < 5.0 + 1e-9]
    z = P[:, :, 2]
    largest = lambda x: float(np.max(np.abs(x)))
    return Symmetry(largest(P[:, :, 1]), largest(P[:, :, 3]), largest(z - z[:, ::-1]))


def _aluminium() -> Aluminium:
    rod = aluminium_rod()
    predicted = predicted_limit("forest_ruth_4", fastest(rod))
    observed = observed_limit(rod, "forest_ruth_4", predicted, duration=0.02)
    fine = {"dt": ALUMINIUM_FINE, "duration": ALUMINIUM_FOR, "stride": 50}
    exact, other = (march(rod, name, **fine) for name in ("suzuki_4", "forest_ruth_4"))
    P = exact.control
    return Aluminium(
        predicted,
        observed,
        float(np.max(np.abs(other.control - P)[:, :, :3])),
        float(P[:, :, 2].min()),
        {dt: _midpoint(dt, exact) for dt in ALUMINIUM_STEPS},
    )


def _midpoint(dt: float, exact: Run) -> Midpoint:
    run = march(exact.rod, "implicit_midpoint", dt, ALUMINIUM_FOR)
    if run.failed:
        raise RuntimeError(f"implicit midpoint at {dt:g} s: failed at {run.failure_time:g} s")
    every = round(dt / (exact.t[1] - exact.t[0]))
    off = (run.control - exact.control[::every])[:, :, :3]
    return Midpoint(
        float(np.max(np.abs(off))),
        float(np.max(np.abs(off[-1]))),
        float(np.sqrt(np.mean(np.sum(off**2, axis=2)))),
        energy(run).largest,
    )
