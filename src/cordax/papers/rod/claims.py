"""Claims of the paper, each judged by the measured results."""

import numpy as np

from ..report import Claim, Verdict
from ..timing import ratio, verdict
from .experiments import MISTUNED, PAPERS, Study
from .granularity import POINTS
from .paper import TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8
from .schemes import LABELS
from .setup import GRID_STEP, STEP

#: tolerance for fractions of computing time that are saved
_SAVED = 0.15
#: relative tolerance for a printed step
_ABOUT = 0.25
#: an energy drift below this fraction of that of Runge-Kutta is negligible
_SECULAR = 0.2
#: tolerance for powers of time
_POWER = 0.5
#: tolerance for the mirror symmetry of left and right [m]
_MIRRORED = 1e-9
#: frequencies that change with the number of control points by more than this fraction do not
#: converge
_DRIFTS = 0.02
#: errors that differ by less than this fraction do not differ noticeably
_NOTICEABLE = 0.1
#: computing times that grow by less than this factor count as constant
_GROWS = 1.1


def judge(study: Study) -> list[Claim]:
    """Judge all claims, in the order of the paper."""
    return [
        _torsion(study),
        _mass(study),
        _evaluations(study),
        _energy(study),
        _error_growth(study),
        _largest_step(study),
        _steps_stable(study),
        _planar(study),
        _mirrored(study),
        _fastest(study),
        _zhai_slow(study),
        _unstable(study),
        _languages(),
        _cost(study),
        _samples(study),
        _control_points(study),
        _centre(study),
        _forgets(study),
        _best(study),
    ]


def _torsion(study: Study) -> Claim:
    printed, widest = study.failures[0.0], study.failures[max(study.failures)]
    first = sum(t < 1.5 * STEP for t in printed.values())
    running = sum(not np.isfinite(t) for t in widest.values())
    good = not np.isfinite(list(printed.values())).any()
    return Claim(
        "eq. (6): the torsion of the centre line is part of the twist, from a straight start on",
        f"with the formula as printed {first} of {len(printed)} schemes fail in their first step; "
        f"with a width of {max(study.failures):g} 1/m {running} of {len(widest)} run for 10 s",
        "reproduces" if good else "does not reproduce",
        ""
        if good
        else "a straight line has no normal, its torsion is 0/0; here curvatures below a width "
        "count as straight",
    )


def _mass(study: Study) -> Claim:
    change = lambda m: abs(_first_bending(study, m, 19) / _first_bending(study, m, 9) - 1.0)
    names = list(study.spectra)
    gram, literal = names[0], names[2]
    falls = study.spectra[literal][9].falls
    good = change(literal) < _DRIFTS
    return Claim(
        "eq. (13): every control point has the density as its mass",
        f"first bending frequency {_first_bending(study, literal, 9):.2f} rad/s with 9 control "
        f"points, {_first_bending(study, literal, 19):.2f} with 19, and control points that fall "
        f"with {falls[0]:.2f} to {falls[1]:.2f} g; with the Gram matrix "
        f"{_first_bending(study, gram, 9):.4f} and {_first_bending(study, gram, 19):.4f} rad/s, "
        "and 1 g",
        "reproduces" if good else "does not reproduce",
        ""
        if good
        else "a density is no mass: the mass of a spline is the Gram matrix of its basis "
        "functions, which overlap",
    )


def _first_bending(study: Study, reading: str, points: int) -> float:
    return study.spectra[reading][points].first_bending


def _evaluations(study: Study) -> Claim:
    ours, classic = study.schemes["forest_ruth_4"], study.schemes["rk4"]
    count = 1.0 - ours.evaluations / classic.evaluations
    share = ratio(ours.timing, classic.timing)
    near, none = share.within(0.75 - _SAVED, 0.75 + _SAVED), share.exceeds(1.0)
    judged: Verdict = "does not reproduce"
    if abs(count - 0.25) < 0.01 and none is not True:
        judged = "cannot be judged" if None in (near, none) else "reproduces" if near else "in part"
    papers = [
        1.0 - table["forest_ruth_4"][10.0] / table["rk4"][10.0] for table in (TABLE_1, TABLE_3)
    ]
    return Claim(
        "three force evaluations instead of four save about 25 % of Runge-Kutta's time",
        f"{ours.evaluations:g} and {classic.evaluations:g} evaluations per step, {share} times the "
        f"time (the paper's own tables save {100 * papers[0]:.0f} and {100 * papers[1]:.0f} %)",
        judged,
        "evaluations are counted; what else a step costs depends on the program"
        if judged == "in part"
        else "",
    )


def _energy(study: Study) -> Claim:
    at = lambda name, dt: study.schemes[name].energy[dt]
    classic, ours = (
        {dt: at(name, dt) for dt in (STEP, GRID_STEP)} for name in ("rk4", "forest_ruth_4")
    )
    secular = all(e.falls for e in classic.values())
    bounded = all(abs(ours[dt].drift) < _SECULAR * abs(classic[dt].drift) for dt in ours)
    judged: Verdict = (
        "reproduces" if secular and bounded else "in part" if bounded else "does not reproduce"
    )
    tell = lambda e: f"{e[STEP].drift:+.1e} J at 2 ms and {e[GRID_STEP].drift:+.1e} J at 0.8 ms"
    return Claim(
        "the symplectic scheme has no secular error of the energy, Runge-Kutta has one",
        f"drift over 10 s: Forest-Ruth {tell(ours)}, Runge-Kutta {tell(classic)}"
        f"{', a loss in every second' if secular else ''} (largest kinetic energy "
        f"{ours[STEP].kinetic:.3f} J)",
        judged,
        "the error of the energy is bounded, not zero: what is preserved is the symplectic form"
        if bounded
        else "",
    )


def _error_growth(study: Study) -> Claim:
    ours, classic = (study.growth[name].exponent for name in ("forest_ruth_4", "rk4"))
    good = abs(ours - 1.0) < _POWER and abs(classic - 2.0) < _POWER
    return Claim(
        "position errors grow with time for the symplectic scheme, with its square for Runge-Kutta",
        f"with powers {ours:.1f} and {classic:.1f} of time between 0.5 and 5 s at 1 ms",
        "reproduces" if good else "does not reproduce",
        ""
        if good
        else "that holds for integrable motions; the rod is a string of many modes, weakly chaotic",
    )


def _largest_step(study: Study) -> Claim:
    metal, readings = study.aluminium, list(study.spectra)
    good = abs(metal.observed / STEP - 1.0) < _ABOUT
    gram, heavy = (study.spectra[readings[i]][9] for i in (0, 3))
    return Claim(
        "2 ms is the largest stable step for the rod of aluminium",
        f"{_us(metal.predicted)} predicted, {_us(metal.observed)} observed; the end springs of 10 "
        f"kN/m alone, on a rod without stiffness, would allow {_us(gram.springs_limit)}",
        "reproduces" if good else "does not reproduce",
        ""
        if good
        else "axial waves in aluminium are too fast; with the mass of the whole rod at every "
        f"control point the springs alone would give {1e3 * heavy.springs_limit:.2f} ms",
    )


def _steps_stable(study: Study) -> Claim:
    soft = min(study.schemes["forest_ruth_4"].observed.values())
    grids = all(np.isfinite(e.rms) for x in study.granularity.errors.values() for e in x.values())
    metal = study.aluminium.observed
    near = STEP <= soft < (1.0 + _ABOUT) * STEP
    judged: Verdict = "does not reproduce"
    if near and grids:
        judged = "reproduces" if metal >= STEP else "only with these choices"
    return Claim(
        "the symplectic scheme is stable for 10 s at 2 ms, and at 0.8 ms in all grids",
        f"with a modulus of 2.5 MPa and end springs of 50 N/m the limit is {1e3 * soft:.2f} ms, "
        "and 0.8 ms is stable up to 19 control points and 251 samples",
        judged,
        "this soft rod is chosen so that both steps work; the paper gives no modulus",
    )


def _planar(study: Study) -> Claim:
    found = study.symmetry
    good = found.y == 0.0 and found.theta == 0.0
    return Claim(
        "gravity alone: y stays zero",
        f"largest |y| {found.y:.0e} m, largest |theta| {found.theta:.0e} rad",
        "reproduces" if good else "does not reproduce",
        "",
    )


def _mirrored(study: Study) -> Claim:
    good = study.symmetry.mirror < _MIRRORED
    return Claim(
        "gravity alone: mirrored control points have one curve z(t)",
        f"they differ by at most {study.symmetry.mirror:.0e} m in 5 s",
        "reproduces" if good else "does not reproduce",
        "where a sample lies on a knot the third derivative jumps; with a one-sided value the "
        "symmetry would be lost",
    )


def _fastest(study: Study) -> Claim:
    times = {name: study.schemes[name].timing for name in PAPERS}
    ours = times.pop("forest_ruth_4")
    slower = {name: ratio(t, ours).exceeds(1.0) for name, t in times.items()}
    others = ", ".join(f"{LABELS[name]} {t.seconds:.3f} s" for name, t in times.items())
    return Claim(
        "at equal steps the symplectic scheme is faster than Runge-Kutta and Zhai (Table 1)",
        f"Forest-Ruth {ours.seconds:.3f} s for 10 s, {others}",
        verdict(slower.values()),
        "Zhai's method needs one evaluation per step" if slower["zhai"] is False else "",
    )


def _zhai_slow(study: Study) -> Claim:
    ours = ratio(study.schemes["zhai"].timing, study.schemes["rk4"].timing)
    papers = TABLE_1["zhai"][10.0] / TABLE_1["rk4"][10.0]
    slower = ours.exceeds(1.0)
    return Claim(
        f"Zhai's method is the slowest, {papers:.1f} times Runge-Kutta",
        f"{ours} times; {study.schemes['zhai'].evaluations:g} evaluation per step, limit "
        f"{1e3 * study.schemes['zhai'].predicted:.2f} ms against "
        f"{1e3 * study.schemes['forest_ruth_4'].predicted:.2f} ms of Forest-Ruth",
        verdict([slower]),
        "without damping its positions are those of velocity Verlet; with parameters of "
        f"{MISTUNED[0]:.2f} instead of 1/2 it would amplify an oscillation of omega dt = "
        f"{MISTUNED[1]:g} by {100 * (study.mistuned_growth - 1):.0f} % per step"
        if slower is False
        else "",
    )


def _unstable(study: Study) -> Claim:
    widest = study.failures[max(study.failures)]
    others = [widest[name] for name in ("rk4", "zhai")]
    stable = not np.isfinite(widest["forest_ruth_4"])
    failing = sum(bool(np.isfinite(t)) for t in others)
    judged: Verdict = "does not reproduce"
    if stable and failing:
        judged = "reproduces" if failing == len(others) else "in part"
    narrow = [w for w, row in study.failures.items() if 0 < w < max(study.failures)]
    rows = [study.failures[w] for w in narrow if np.isfinite(min(study.failures[w].values()))]
    first = sum(row["forest_ruth_4"] == min(row.values()) for row in rows)
    return Claim(
        "under the sinusoidal force Runge-Kutta and Zhai are unstable at 2 ms, the symplectic "
        "scheme is stable (Table 2)",
        f"{len(others) - failing} of {len(others)} run for 10 s; Forest-Ruth "
        f"{'does' if stable else 'fails'}. With narrower torsion widths, where schemes do "
        f"fail, Forest-Ruth is the first in {first} of {len(rows)} cases",
        judged,
        "Runge-Kutta's interval of stability is wider; the force is what first bends the rod out "
        "of a plane, where the singular torsion acts"
        if failing < len(others)
        else "",
    )


def _languages() -> Claim:
    ratios = [m[key] / c[key] for m, c in ((TABLE_5, TABLE_7), (TABLE_6, TABLE_8)) for key in m]
    long = [
        m["forest_ruth_4"][10.0] / c["forest_ruth_4"][10.0]
        for m, c in ((TABLE_1, TABLE_3), (TABLE_2, TABLE_4))
    ]
    return Claim(
        "C++ is about three times as fast as MATLAB",
        f"by the paper's own tables {min(ratios):.1f} to {max(ratios):.1f} times in the grids, "
        f"{min(long):.1f} and {max(long):.1f} times over 10 s at 2 ms",
        "cannot be judged",
        "neither program is public",
    )


def _cost(study: Study) -> Claim:
    times = study.granularity.timings["gravity"]
    ours = ratio(times[19, 101], times[5, 101]), ratio(times[9, 251], times[9, 51])
    papers = TABLE_7[19, 101] / TABLE_7[5, 101], TABLE_7[9, 251] / TABLE_7[9, 51]
    near = lambda a, b: a.within((1.0 - _ABOUT) * b, (1.0 + _ABOUT) * b)
    alike = [near(a, b) for a, b in zip(ours, papers, strict=True)]
    grows = [x.exceeds(_GROWS) for x in ours]
    judged: Verdict = "cannot be judged"
    if all(alike):
        judged = "reproduces"
    elif False in alike and None not in grows:
        judged = "in part" if any(grows) else "does not reproduce"
    return Claim(
        f"computing time grows {papers[0]:.1f} times from 5 to 19 control points and "
        f"{papers[1]:.1f} times from 51 to 251 samples (C++)",
        f"{ours[0]} and {ours[1]} times",
        judged,
        ""
        if False not in alike
        else "at these sizes much of a step costs the same whatever their number",
    )


def _samples(study: Study) -> Claim:
    rows = {
        load: [e.rms for (n, _), e in errors.items() if n == 9]
        for load, errors in study.granularity.errors.items()
    }
    spread = max(max(x) / min(x) - 1.0 for x in rows.values())
    return Claim(
        "the number of samples has no noticeable effect on the error",
        "; ".join(f"{load} {_mm(min(x))} to {_mm(max(x))} mm" for load, x in rows.items())
        + " with 51 to 251 samples (root mean square over 2 s)",
        "reproduces" if spread < _NOTICEABLE else "does not reproduce",
        "the conclusions of the paper say that fewer samples reduce the precision",
    )


def _control_points(study: Study) -> Claim:
    rows = {
        load: [errors[n, 101].rms for n in (5, 7, 9, 11, 13)]
        for load, errors in study.granularity.errors.items()
    }
    falls = all(x[-1] < 0.5 * x[0] for x in rows.values())
    steadily = all(np.all(np.diff(x) < 0) for x in rows.values())
    judged: Verdict = (
        "reproduces" if falls and steadily else "in part" if falls else "does not reproduce"
    )
    return Claim(
        "the error falls with the number of control points",
        "; ".join(f"{load} {', '.join(map(_mm, x))} mm" for load, x in rows.items())
        + " with 5, 7, 9, 11, 13 (root mean square over 2 s, against 19 and 251)",
        judged,
        "slowly and not at every step: the release between ends that are held sends kinks along "
        "the rod"
        if judged == "in part"
        else "",
    )


def _centre(study: Study) -> Claim:
    worst = [
        errors[n, 101].worst_point
        for errors in study.granularity.errors.values()
        for n in (5, 7, 9, 11, 13)
    ]
    middle = sum(i in (POINTS // 2 - 1, POINTS // 2) for i in worst)
    judged: Verdict = (
        "reproduces"
        if middle == len(worst)
        else "in part"
        if middle > 0.5 * len(worst)
        else "does not reproduce"
    )
    return Claim(
        "the error is largest at the centre of the rod",
        f"at one of the two points next to it in {middle} of {len(worst)} runs",
        judged,
        "",
    )


def _forgets(study: Study) -> Claim:
    halves = {load: errors[9, 101].halves for load, errors in study.granularity.errors.items()}
    falls = [b < a for a, b in halves.values()]
    judged: Verdict = (
        "reproduces" if all(falls) else "in part" if any(falls) else "does not reproduce"
    )
    return Claim(
        "the error decreases over time",
        "; ".join(
            f"{load} {_mm(a)} mm in the first second, {_mm(b)} mm in the second"
            for load, (a, b) in halves.items()
        ),
        judged,
        "" if all(falls) else "nothing damps the rod: it cannot forget an error",
    )


def _best(study: Study) -> Claim:
    ours, classic = study.equal_cost["forest_ruth_4"], study.equal_cost["rk4"]
    per = {
        name: study.schemes[name].predicted / study.schemes[name].evaluations
        for name in ("forest_ruth_4", "rk4")
    }
    accurate, stable = ours < classic, per["forest_ruth_4"] > per["rk4"]
    judged: Verdict = (
        "reproduces"
        if accurate and stable
        else "in part"
        if accurate or stable
        else "does not reproduce"
    )
    return Claim(
        "the symplectic scheme is the best choice: fastest and most stable",
        f"with equally many force evaluations Forest-Ruth is wrong by {ours:.1e} m at 1 s, "
        f"Runge-Kutta by {classic:.1e}, Suzuki's splitting by {study.equal_cost['suzuki_4']:.1e}; "
        f"per evaluation they allow {1e3 * per['forest_ruth_4']:.2f}, {1e3 * per['rk4']:.2f} and "
        f"{1e3 * study.schemes['suzuki_4'].predicted / study.schemes['suzuki_4'].evaluations:.2f} "
        f"ms, Stormer-Verlet {1e3 * study.schemes['stormer_verlet'].predicted:.2f} ms",
        judged,
        "its advantage is the energy over long times, and other splittings share it"
        if not (accurate and stable)
        else "",
    )


def _us(x: float) -> str:
    return f"{1e6 * x:.4g} us"


def _mm(x: float) -> str:
    return f"{1e3 * x:.1f}"
