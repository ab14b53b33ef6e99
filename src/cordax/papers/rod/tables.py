"""Results of the study as text tables and as data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..report import Claim, claim_text, finite, section
from . import paper
from .experiments import ALUMINIUM_FINE, FOLLOWED, MASS_POINTS, PAPERS, Study
from .granularity import Cell, Error
from .schemes import COMPARED_STEPS, LABELS
from .setup import GRID_STEP, STEP

_PAPER_MACHINE = "the paper's on an Intel i5-3210M, ours after compilation on this machine"


def as_text(study: Study, claims: list[Claim]) -> str:
    """Return all results as readable text."""
    grid = "10 s at 0.8 ms with Forest-Ruth by control points (rows) and samples (columns): paper"
    unmeasured = "-- where not measured here"
    parts = [
        section(
            "Schemes on the soft rod (E = 2.5 MPa, end springs 50 N/m, 9 control points, 101 "
            "samples), gravity: position error at 1 s [m], measured order, force evaluations per "
            "step, largest stable step predicted from the fastest mode and observed in 5 s [ms], "
            "seconds for 10 s at 2 ms after compilation on this machine",
            schemes(study),
        ),
        section(
            "Error of the energy over 10 s [J]: largest, at the end, and drift (gain of a straight "
            "line through it)",
            energies(study),
        ),
        section("Position error [m] over time at 1 ms, gravity", growth(study)),
        section(
            f"Tables 1 (MATLAB) and 3 (C++). Seconds for gravity alone at 2 ms: {_PAPER_MACHINE}",
            durations(study, "gravity"),
        ),
        section(
            f"Tables 2 (MATLAB) and 4 (C++). Seconds with the force at 2 ms: {_PAPER_MACHINE}",
            durations(study, "forced"),
        ),
        *(
            section(
                f"Table {number} ({language}, {load}). Seconds for {grid} / ours, {unmeasured}",
                cells(table, study.granularity.seconds(load)),
            )
            for number, language, load, table in _GRIDS
        ),
        *(
            section(
                f"Error by control points and samples at 0.8 ms ({load}) [mm], distance from 19 "
                "control points and 251 samples: root mean square over 10 points and 2 s, in the "
                "first and in the second of them, largest, and the worst of points 1 to 10",
                resolution(errors),
            )
            for load, errors in study.granularity.errors.items()
        ),
        section(
            "Torsion. When the rod under the force at 2 ms fails, by width of the torsion [1/m] (0 "
            "is the strain as printed); below 0.1 the motion is chaotic and times depend on "
            "rounding",
            torsion(study),
        ),
        section(
            "Readings of the mass, real aluminium: fastest axial, bending and twisting, and first "
            "bending frequency [rad/s], largest step of Forest-Ruth, the same for the end springs "
            "alone, acceleration of control points in free fall",
            masses(study),
        ),
        section(
            "Real aluminium (69 GPa, end springs 10 kN/m), gravity, 0.4 s, implicit midpoint: "
            f"position error against an explicit run at {1e6 * ALUMINIUM_FINE:g} us [mm] (two such "
            f"schemes agree to {study.aluminium.converged:.0e} m; the lowest control point gets to "
            f"{1e3 * study.aluminium.lowest:.1f} mm) and error of the energy; Forest-Ruth is "
            f"stable up to {1e6 * study.aluminium.observed:.2f} us",
            aluminium(study),
        ),
        "Claims of the paper\n",
    ]
    return "\n".join([*parts, *(claim_text(claim) for claim in claims)])


_GRIDS = (
    (5, "MATLAB", "gravity", paper.TABLE_5),
    (6, "MATLAB", "forced", paper.TABLE_6),
    (7, "C++", "gravity", paper.TABLE_7),
    (8, "C++", "forced", paper.TABLE_8),
)


def schemes(study: Study) -> list[list[str]]:
    steps = [f"{1e3 * dt:g} ms" for dt in COMPARED_STEPS]
    rows = [["", *steps, "order", "evals", "predicted", "gravity", "forced", "seconds"]]
    for name, s in study.schemes.items():
        errors = [f"{s.errors[dt]:.1e}" if dt in s.errors else "" for dt in COMPARED_STEPS]
        limits = [_ms(x) for x in (s.predicted, s.observed["gravity"], s.observed["forced"])]
        order = f"{s.order:.2f}"
        cells = [*errors, order, f"{s.evaluations:g}", *limits, f"{s.seconds:.3f}"]
        rows.append([LABELS[name], *cells])
    return rows


def energies(study: Study) -> list[list[str]]:
    columns = ("largest", "end", "drift")
    rows = [["", *(f"2 ms: {c}" for c in columns), *(f"0.8 ms: {c}" for c in columns)]]
    for name, s in study.schemes.items():
        cells = []
        for dt in (STEP, GRID_STEP):
            e = s.energy.get(dt)
            cells += ["", "", ""] if e is None else [f"{e.largest:.1e}"]
            cells += [] if e is None else [f"{e.end:+.1e}", f"{e.drift:+.1e}"]
        rows.append([LABELS[name], *cells])
    return rows


def growth(study: Study) -> list[list[str]]:
    instants = (1.0, 2.0, 3.0, 4.0, 5.0)
    rows = [["", *(f"{t:g} s" for t in instants), "power of time"]]
    for name in FOLLOWED:
        g = study.growth[name]
        found = [g.error[int(np.argmin(np.abs(g.t - t)))] for t in instants]
        rows.append([LABELS[name], *(f"{x:.1e}" for x in found), f"{g.exponent:.1f}"])
    return rows


def durations(study: Study, load: str) -> list[list[str]]:
    matlab, cpp = (
        (paper.TABLE_1, paper.TABLE_3) if load == "gravity" else (paper.TABLE_2, paper.TABLE_4)
    )
    names = ("FR", "RK", "Zhai")
    head = [f"{language} {n}" for language in ("MATLAB", "C++", "ours") for n in names]
    rows = [["simulated [s]", *(h for h in head if h != "C++ Zhai")]]
    for t in paper.TIMES:
        cell = lambda table, name, t=t: f"{table[name][t]:.2f}" if name in table else "unstable"
        cells = [cell(matlab, name) for name in PAPERS]
        cells += [cell(cpp, name) for name in PAPERS[:2]]
        cells += [f"{study.seconds[load][name][t]:.4f}" for name in PAPERS]
        rows.append([f"{t:g}", *cells])
    return rows


def cells(table: Mapping[Cell, float], ours: Mapping[Cell, float]) -> list[list[str]]:
    rows = [["", *(str(m) for m in paper.SAMPLES)]]
    for n in paper.CONTROL_POINTS:
        measured = [f"{ours[n, m]:.2f}" if (n, m) in ours else "--" for m in paper.SAMPLES]
        printed = [f"{table[n, m]:g}" for m in paper.SAMPLES]
        rows.append([str(n), *(f"{a} / {b}" for a, b in zip(printed, measured, strict=True))])
    return rows


def resolution(errors: Mapping[Cell, Error]) -> list[list[str]]:
    rows = [["points, samples", "rms", "first s", "second s", "largest", "worst point"]]
    for (n, m), e in errors.items():
        sizes = [f"{1e3 * x:.1f}" for x in (e.rms, *e.halves, float(e.distances.max()))]
        rows.append([f"{n}, {m}", *sizes, f"{e.worst_point + 1}"])
    return rows


def torsion(study: Study) -> list[list[str]]:
    rows = [["width", *(LABELS[name] for name in PAPERS)]]
    tell = lambda t: f"fails at {t:.3f} s" if np.isfinite(t) else "stable 10 s"
    for width, times in study.failures.items():
        rows.append([f"{width:g}", *(tell(times[name]) for name in PAPERS)])
    return rows


def masses(study: Study) -> list[list[str]]:
    rows = [["", "n_u", "axial", "bending", "twist", "first", "limit", "springs", "fall [g]"]]
    for reading, spectra in study.spectra.items():
        for n in MASS_POINTS:
            s = spectra[n]
            fast = [f"{x:.4g}" for x in (s.axial, s.bending, s.twist)]
            limits = [f"{1e6 * x:.4g} us" for x in (s.limit, s.springs_limit)]
            fall = f"{s.falls[0]:.2f}..{s.falls[1]:.2f}"
            rows.append([reading, str(n), *fast, f"{s.first_bending:.4f}", *limits, fall])
    return rows


def aluminium(study: Study) -> list[list[str]]:
    rows = [["step [ms]", "largest", "at 0.4 s", "rms", "energy [J]"]]
    for dt, m in study.aluminium.midpoint.items():
        errors = [f"{1e3 * x:.3f}" for x in (m.largest, m.end, m.rms)]
        rows.append([f"{1e3 * dt:g}", *errors, f"{m.energy:.1e}"])
    return rows


def as_data(study: Study, claims: list[Claim]) -> dict[str, Any]:
    """Return all results as dictionaries, lists, texts, finite numbers or None, for JSON."""
    by_time = lambda x: {f"{t:g}": s for t, s in x.items()}
    by_cell = lambda x: {f"{n}x{m}": s for (n, m), s in x.items()}
    timed = {
        "gravity": {"matlab": paper.TABLE_1, "cpp": paper.TABLE_3},
        "forced": {"matlab": paper.TABLE_2, "cpp": paper.TABLE_4},
    }
    data = {
        "schemes": {
            name: {
                "position_error_m": by_time(s.errors),
                "order": s.order,
                "evaluations_per_step": s.evaluations,
                "limit_predicted_s": s.predicted,
                "limit_observed_s": s.observed,
                "energy_J": {
                    f"{dt:g}": {
                        "largest": e.largest,
                        "end": e.end,
                        "drift": e.drift,
                        "largest_kinetic": e.kinetic,
                    }
                    for dt, e in s.energy.items()
                },
                "seconds": s.seconds,
                "rounds_s": list(s.timing.rounds),
            }
            for name, s in study.schemes.items()
        },
        "error_growth": {
            name: {"t_s": g.t.tolist(), "error_m": g.error.tolist(), "power": g.exponent}
            for name, g in study.growth.items()
        },
        "equal_cost_error_m": study.equal_cost,
        "tables_1_to_4_s": {
            load: {
                "paper": {
                    language: {name: by_time(x) for name, x in table.items()}
                    for language, table in timed[load].items()
                },
                "ours": {name: by_time(x) for name, x in study.seconds[load].items()},
            }
            for load in study.seconds
        },
        "tables_5_to_8_s": {
            str(number): {
                "paper": by_cell(table),
                "ours": by_cell(study.granularity.seconds(load)),
            }
            for number, _, load, table in _GRIDS
        },
        "resolution_m": {
            load: {
                key: {"rms": e.rms, "halves": list(e.halves), "worst_point": e.worst_point + 1}
                for key, e in by_cell(errors).items()
            }
            for load, errors in study.granularity.errors.items()
        },
        "torsion_failure_s": {f"{w:g}": times for w, times in study.failures.items()},
        "symmetry": study.symmetry._asdict(),
        "masses": {
            reading: {
                str(n): s._asdict()
                | {"falls": list(s.falls), "limit_s": s.limit, "springs_limit_s": s.springs_limit}
                for n, s in spectra.items()
            }
            for reading, spectra in study.spectra.items()
        },
        "aluminium": study.aluminium._asdict()
        | {"midpoint": {f"{dt:g}": m._asdict() for dt, m in study.aluminium.midpoint.items()}},
        "zhai_mistuned_growth_per_step": study.mistuned_growth,
        "claims": [claim._asdict() for claim in claims],
    }
    return finite(data)


def _ms(x: float) -> str:
    return f"{1e3 * x:.3f}" if np.isfinite(x) else "none"
