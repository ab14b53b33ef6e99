"""The study of the rod: verdicts that follow the numbers, tables, JSON, and what they are from."""

import dataclasses
import json

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import cordax
from cordax import Result, Trajectory
from cordax.papers.rod import figures, paper
from cordax.papers.rod.claims import judge
from cordax.papers.rod.experiments import (
    FOLLOWED,
    MASS_POINTS,
    PAPERS,
    WIDTHS,
    Aluminium,
    Growth,
    Midpoint,
    Study,
    Symmetry,
)
from cordax.papers.rod.granularity import CELLS, FINEST, Error, Granularity
from cordax.papers.rod.march import Run, march
from cordax.papers.rod.masses import MASSES, Spectrum, spectrum
from cordax.papers.rod.schemes import (
    COMPARED_STEPS,
    LABELS,
    Energy,
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
from cordax.papers.rod.setup import FORCE, aluminium_rod, soft_rod
from cordax.papers.rod.tables import as_data, as_text
from cordax.papers.timing import Timing
from cordax.systems.rod.structure import SplineStructure

INF = np.inf
EVALUATIONS = {"symplectic_euler": 1, "stormer_verlet": 1, "forest_ruth_4": 3, "suzuki_4": 5}
EVALUATIONS |= {"rk4": 4, "zhai": 1, "implicit_midpoint": 4}
SECONDS = {"forest_ruth_4": 0.75, "rk4": 1.0, "zhai": 3.2}


# --- a study that agrees with the paper ----------------------------------------------------------
def _energy(drift, falls=False):
    t = np.linspace(0.0, 10.0, 41)
    return Energy(1e-4, drift, drift, falls, 0.017, t, drift * t / 10.0 + 1e-9)


def _scheme(name, seconds=1.0, limit=2.09e-3, drift=0.0, falls=False):
    errors = {dt: dt**2 for dt in COMPARED_STEPS}
    energies = {dt: _energy(drift, falls) for dt in (2e-3, 8e-4)}
    observed = {"gravity": limit, "forced": limit}
    return Scheme(errors, EVALUATIONS[name], limit, observed, energies, _timing(seconds))


def _timing(seconds, jitter=1.0):
    """Three rounds, of which the second takes `jitter` times as long."""
    return Timing((seconds, jitter * seconds, seconds))


def _schemes(**changes):
    agreeing = {name: _scheme(name, SECONDS.get(name, 1.0)) for name in LABELS}
    agreeing["rk4"] = _scheme("rk4", 1.0, 2e-3, -2.4e-4, True)
    return agreeing | changes


def _growth(power):
    t = np.linspace(0.5, 5.0, 46)
    return Growth(t, 1e-6 * t**power, growth_exponent(t, 1e-6 * t**power))


def _failures(widest=None, printed=INF):
    rows = {w: dict.fromkeys(PAPERS, INF) for w in WIDTHS}
    rows[1.0] |= {"rk4": 1.0, "zhai": 1.0} if widest is None else widest
    rows[0.0] = dict.fromkeys(PAPERS, printed)
    return rows


def _error(size, second=0.5, where=4):
    """Larger in the first second than in the second, and largest at one point."""
    distances = np.full((20, 10), 0.5 * size)
    distances[:, where] = size
    distances[10:] *= second
    return Error(distances)


def _granularity(errors=None, scale=None):
    cost = scale or (lambda n, m: paper.TABLE_7[n, m])
    timings = {cell: _timing(1e-3 * cost(*cell)) for cell in CELLS}
    error = errors or (lambda n, m: _error(0.1 / n))
    off = {cell: error(*cell) for cell in CELLS if cell != FINEST}
    return Granularity(*({load: x for load in ("gravity", "forced")} for x in (timings, off)))


def _run():
    rod = soft_rod()
    start, rows = rod.default_state(), lambda x: jnp.tile(x, (5,) + (1,) * jnp.ndim(x))
    control = {"control": rows(rod.control(0.0, start.q).T)}
    still = rows(start.q), rows(start.v), rows(jnp.zeros(3)), rows(jnp.zeros(0)), jnp.zeros(5)
    good = {}, Result.SUCCESSFUL, jnp.asarray(INF), rod
    return Run(rod, Trajectory(0.5 * jnp.arange(5), *still, control, *good), _timing(0.1))


def _spectra(first=lambda reading, n: 6.24):
    at = lambda reading, n: Spectrum(1e5, 420.0, 3e4, first(reading, n), 6e3, (1.0, 1.0))
    return {reading: {n: at(reading, n) for n in MASS_POINTS} for reading in MASSES}


def _aluminium(limit=2e-3):
    return Aluminium(limit, limit, 1e-12, -0.03, {2e-3: Midpoint(1e-3, 7e-4, 2e-4, 3e-6)})


def _study(**changes) -> Study:
    run = _run()
    by_time = lambda s: {t: 0.1 * t * s for t in paper.TIMES}
    numbers = {
        "runs": {"gravity": run, "forced": run},
        "schemes": _schemes(),
        "growth": {name: _growth(2.0 if name == "rk4" else 1.0) for name in FOLLOWED},
        "equal_cost": {"forest_ruth_4": 1e-7, "rk4": 1e-6, "suzuki_4": 1e-6},
        "seconds": {
            load: {name: by_time(s) for name, s in SECONDS.items()}
            for load in ("gravity", "forced")
        },
        "failures": _failures(),
        "symmetry": Symmetry(0.0, 0.0, 1e-12),
        "granularity": _granularity(),
        "aluminium": _aluminium(),
        "spectra": _spectra(),
        "mistuned_growth": 1.08,
    }
    return Study(**(numbers | changes))


def _verdicts(study: Study) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judge(study)}


def test_a_study_that_agrees_with_the_paper():
    """All but how fast two programs are that nobody can run."""
    others = {claim: v for claim, v in _verdicts(_study()).items() if v != "reproduces"}
    assert list(others.values()) == ["cannot be judged"]
    assert "MATLAB" in next(iter(others))


def _drifting(reading, n):
    return 6.24 if reading == "Gram matrix" else 60.0 / n


def _taking(jitter=1.0, **seconds):
    """With other times; Forest-Ruth's changes by a factor from round to round."""
    changed = {name: s for name, s in _schemes().items() if name in SECONDS}
    for name, x in (SECONDS | seconds).items():
        timing = _timing(x, jitter if name == "forest_ruth_4" else 1.0)
        changed[name] = changed[name]._replace(timing=timing)
    return {"schemes": _schemes(**changed)}


def _disturbed(cell):
    """In one round a cell takes twice as long."""
    grid = _granularity()
    timings = grid.timings["gravity"] | {cell: _timing(1e-3 * paper.TABLE_7[cell], 2.0)}
    return {"granularity": grid._replace(timings={"gravity": timings, "forced": timings})}


@pytest.mark.parametrize(
    ("claim", "change", "verdict"),
    [
        ("eq. (6)", {"failures": _failures(printed=0.002)}, "does not reproduce"),
        ("eq. (13)", {"spectra": _spectra(_drifting)}, "does not reproduce"),
        (
            "three force evaluations",
            {"schemes": _schemes(forest_ruth_4=_scheme("forest_ruth_4", 0.4))},
            "in part",
        ),
        (
            "three force evaluations",
            {"schemes": _schemes(forest_ruth_4=_scheme("forest_ruth_4", 1.1))},
            "does not reproduce",
        ),
        (
            "secular",
            {"schemes": _schemes(forest_ruth_4=_scheme("forest_ruth_4", 0.75, drift=1e-4))},
            "does not reproduce",
        ),
        (
            "secular",
            {"schemes": _schemes(rk4=_scheme("rk4", limit=2e-3, drift=-2.4e-4))},
            "in part",
        ),
        ("position errors", {"growth": {n: _growth(3.2) for n in FOLLOWED}}, "does not reproduce"),
        ("rod of aluminium", {"aluminium": _aluminium(1.5e-5)}, "does not reproduce"),
        ("stable for 10 s at 2 ms", {"aluminium": _aluminium(1.5e-5)}, "only with these choices"),
        (
            "stable for 10 s at 2 ms",
            {"schemes": _schemes(forest_ruth_4=_scheme("forest_ruth_4", limit=1.5e-3))},
            "does not reproduce",
        ),
        ("y stays zero", {"symmetry": Symmetry(1e-15, 0.0, 0.0)}, "does not reproduce"),
        ("mirrored", {"symmetry": Symmetry(0.0, 0.0, 1e-6)}, "does not reproduce"),
        ("faster than Runge-Kutta and Zhai", _taking(zhai=0.1), "in part"),
        ("faster than Runge-Kutta and Zhai", _taking(forest_ruth_4=9.0), "does not reproduce"),
        ("Zhai's method is the slowest", _taking(zhai=0.1), "does not reproduce"),
        ("faster than Runge-Kutta and Zhai", _taking(jitter=2.0), "cannot be judged"),
        ("three force evaluations", _taking(jitter=1.3), "cannot be judged"),
        ("Zhai's method is the slowest", _taking(jitter=2.0), "reproduces"),
        ("computing time grows", _disturbed((19, 101)), "cannot be judged"),
        (
            "under the sinusoidal force",
            {"failures": _failures({"rk4": INF, "zhai": INF})},
            "does not reproduce",
        ),
        ("under the sinusoidal force", {"failures": _failures({"rk4": INF, "zhai": 1})}, "in part"),
        ("computing time grows", {"granularity": _granularity(scale=lambda n, m: m)}, "in part"),
        (
            "computing time grows",
            {"granularity": _granularity(scale=lambda n, m: 1.0)},
            "does not reproduce",
        ),
        (
            "number of samples",
            {"granularity": _granularity(lambda n, m: _error(0.1 / n / m))},
            "does not reproduce",
        ),
        (
            "number of control points",
            {"granularity": _granularity(lambda n, m: _error(0.1))},
            "does not reproduce",
        ),
        (
            "number of control points",
            {"granularity": _granularity(lambda n, m: _error(0.01 if n == 11 else 0.1 / n))},
            "reproduces",
        ),
        (
            "number of control points",
            {"granularity": _granularity(lambda n, m: _error(1e-3 if n == 11 else 0.1 / n))},
            "in part",
        ),
        (
            "at the centre",
            {"granularity": _granularity(lambda n, m: _error(0.1, where=8))},
            "does not reproduce",
        ),
        (
            "at the centre",
            {"granularity": _granularity(lambda n, m: _error(0.1, where=8 if n == 5 else 5))},
            "in part",
        ),
        (
            "decreases over time",
            {"granularity": _granularity(lambda n, m: _error(0.1 / n, second=2.0))},
            "does not reproduce",
        ),
        (
            "best choice",
            {"equal_cost": {"forest_ruth_4": 2e-6, "rk4": 8e-7, "suzuki_4": 2e-7}},
            "in part",
        ),
        (
            "best choice",
            {
                "equal_cost": {"forest_ruth_4": 2e-6, "rk4": 8e-7, "suzuki_4": 2e-7},
                "schemes": _schemes(rk4=_scheme("rk4", limit=3.76e-3, falls=True)),
            },
            "does not reproduce",
        ),
    ],
)
def test_verdicts_follow_the_numbers(claim, change, verdict):
    found = {name: v for name, v in _verdicts(_study(**change)).items() if claim in name}
    assert list(found.values()) == [verdict]


# --- the paper's numbers and the tables ----------------------------------------------------------
def test_printed_tables_are_consistent():
    """Checks that a slip in a digit would fail: times grow along every row and column, and the runs
    at 0.8 ms take 2/0.8 times as long as those at 2 ms."""
    for table in (paper.TABLE_1, paper.TABLE_2, paper.TABLE_3, paper.TABLE_4):
        for column in table.values():
            times = [column[t] for t in paper.TIMES]
            assert np.all(np.diff(times) > 0)
            # a second of motion takes as long as any other, within a fifth
            rates = np.diff(times) / np.diff(paper.TIMES)
            assert np.all(np.abs(rates[10:] / np.median(rates[10:]) - 1.0) < 0.2)
    for table in (paper.TABLE_5, paper.TABLE_6, paper.TABLE_7, paper.TABLE_8):
        grid = np.array([[table[n, m] for m in paper.SAMPLES] for n in paper.CONTROL_POINTS])
        assert np.all(np.diff(grid, axis=0) > 0) and np.all(np.diff(grid, axis=1) > 0)
    assert paper.TABLE_7[9, 101] / paper.TABLE_3["forest_ruth_4"][10.0] == pytest.approx(2.5, 5e-3)


def test_tables_and_json_hold_the_numbers():
    study = _study(failures=_failures({"rk4": INF, "zhai": 4.686}, 0.002))
    claims = judge(study)
    text = as_text(study, claims)
    for expected in ("2204.93", "490.59", "334.40", "388.04", "5090.28", "5035.5", "2021.42"):
        assert expected in text
    for expected in ("fails at 0.002 s", "fails at 4.686 s", "stable 10 s", "unstable", "455.4 / "):
        assert expected in text
    assert text.count(" / --") == 4 * (36 - len(CELLS))  # cells that are not measured say so
    assert max(len(line) for line in text.splitlines() if ":" not in line) < 110
    data = json.loads(json.dumps(as_data(study, claims), allow_nan=False))
    assert data["tables_5_to_8_s"]["8"]["paper"]["19x251"] == 2023.9
    assert data["tables_5_to_8_s"]["8"]["ours"]["19x251"] == pytest.approx(2.02142)
    assert data["tables_1_to_4_s"]["gravity"]["paper"]["matlab"]["zhai"]["0.1"] == 34.85
    assert data["torsion_failure_s"]["1"] == {"forest_ruth_4": None, "rk4": None, "zhai": 4.686}
    assert data["aluminium"]["midpoint"]["0.002"]["end"] == 7e-4
    assert [c["verdict"] for c in data["claims"]] == [c.verdict for c in claims]


def test_figures_are_drawn():
    matplotlib.use("Agg")
    study = _study()
    for draw in ("_control_points", "_shapes", "_energy", "_schemes", "_errors"):
        figure = getattr(figures, draw)(study)
        figure.canvas.draw()
        assert figure.axes
        matplotlib.pyplot.close(figure)


# --- what is measured ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def small():
    return soft_rod(5, 21)


def test_runs_are_those_of_simulate(small):
    run = march(small, "stormer_verlet", 2e-3, 0.4, "forced", stride=20)
    push = lambda t, state: jnp.stack([0.0 * t, FORCE * jnp.sin(2.0 * jnp.pi * t), 0.0 * t])
    options = {"dt": 2e-3, "duration": 0.4, "save_every": 20, "integrator": "stormer_verlet"}
    wanted = cordax.simulate(small, control=push, **options)
    assert not run.failed
    np.testing.assert_allclose(run.t, wanted.t, atol=1e-12)
    np.testing.assert_allclose(run.control, wanted["control"], atol=1e-11)
    np.testing.assert_allclose(run.energy, wanted.energy()["total"], atol=1e-13)
    assert np.abs(run.control[:, :, 1]).max() > 1e-3


def test_largest_step_is_found_where_it_is_predicted(small):
    predicted = predicted_limit("stormer_verlet", fastest(small))
    assert observed_limit(small, "stormer_verlet", predicted, duration=1.0) == pytest.approx(
        predicted, rel=0.05
    )
    above = march(small, "stormer_verlet", 1.2 * predicted, 1.0)
    assert above.failed and above.failure_time < 1.0
    assert np.abs(above.control[:, :, :3]).max() < 5.0  # what is kept is what was still in place
    assert position_error(above, above) == INF


def test_the_printed_torsion_fails_at_once():
    singular = march(soft_rod(5, 21, torsion_width=0.0), "stormer_verlet", 2e-3, 0.1, "forced")
    assert singular.failure_time == pytest.approx(2e-3)


def test_frequencies_of_the_masses():
    """The consistent mass is the machine's own; lighter and heavier ones are not a rod's."""
    gram, rows, literal, heavy = (spectrum(aluminium_rod(), reading) for reading in MASSES)
    exact = dataclasses.replace(aluminium_rod(), quadrature=("gauss", 4))
    assert gram.axial == pytest.approx(SplineStructure(exact).fastest_frequency(), rel=1e-9)
    assert gram.limit == pytest.approx(14.86e-6, rel=1e-3)
    theory = (np.pi / 2.0) ** 2 * np.sqrt(5.41925e-2 / 8.48230e-3)
    assert gram.first_bending == pytest.approx(theory, rel=1e-4)
    assert heavy.springs_limit == pytest.approx(2.049e-3, rel=1e-3)
    assert literal.first_bending == pytest.approx(np.sqrt(2.0) * heavy.first_bending)
    assert rows.falls == pytest.approx((1.0, 1.0))
    assert literal.falls == pytest.approx((1 / 12, 1 / 3))


@pytest.mark.parametrize("name", ["stormer_verlet", "rk4", "implicit_midpoint"])
def test_evaluations_are_counted(small, name):
    found = evaluations(small, name)
    if name == "implicit_midpoint":  # one per iteration; the second one tells that it is solved
        assert 2 <= found <= 6
    else:
        assert found == EVALUATIONS[name]


def test_energy_of_a_run(small):
    run = march(small, "rk4", 2e-3, 2.0, stride=10)
    found = energy(run)
    assert found.end == pytest.approx(run.energy[-1] - run.energy[0])
    assert found.largest >= abs(found.end) > 0
    assert found.kinetic == pytest.approx(np.max(run.kinetic))
    assert np.sign(found.drift) == np.sign(found.end)


def test_powers_of_time_and_zhais_parameters():
    t = np.linspace(0.5, 5.0, 10)
    assert growth_exponent(t, 3.0 * t**1.7) == pytest.approx(1.7)
    assert mistuned_zhai(0.5, 1.9) == pytest.approx(1.0, abs=1e-9)
    assert mistuned_zhai(0.5, 2.1) > 1.1
    assert mistuned_zhai(1 / 3, 1.0) > 1.05
    assert mistuned_zhai(0.6, 1.0) < 1.0


def test_errors_of_a_cell():
    found = _error(2.0, second=0.5, where=7)
    assert found.worst_point == 7
    assert found.halves[0] == pytest.approx(np.sqrt((9 * 1.0 + 4.0) / 10))
    assert found.halves[1] == pytest.approx(0.5 * found.halves[0])
    assert found.rms == pytest.approx(np.sqrt(np.mean(np.square(found.halves))))
