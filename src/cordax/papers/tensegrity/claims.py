"""Claims of the thesis, each judged by the measured results."""

import itertools

import numpy as np

from ..report import Claim, Verdict
from .experiments import Study
from .manipulator import ASIDE, ASIDE_FREE, STILL, UP, UP_FREE
from .setup import (
    END_MASS,
    MINIMAL_MODEL,
    NEAR_ANGLE,
    NEAR_HEIGHT,
    REFERENCE_ANGLES,
    REFERENCE_HEIGHTS,
    TABLE_5_7,
)
from .strut import DAMPED, ENDS, FED_BACK, HELD, PLAIN, VARIANTS

#: tolerance for the agreement of variants, in rad and strain
_SAME = 1e-9
#: factor within which deviations agree with those of the thesis; least factor by which they fall
#: per decade of E
_FACTOR, _FALL = 4.0, 3.0
#: relative tolerance for two models of the same machine
_ONE_PERCENT = 0.01
#: deviation [m] for "considerable accuracy", in motions of 0.75 m; factor by which deviations of
#: the sideways motion must be larger for "comparably worse"
_ACCURATE, _WORSE = 1.5e-3, 2.0
#: the end effector is lowest after 5 s; a run that is accurate beyond this time [s] has passed the
#: lowest point
_LOWEST = 8.0
#: second angle of a strut in the singular configuration [rad], and its tolerance
_SINGULAR, _NEAR = -0.2206, 0.01
#: largest deviation of an end effector that is held [m]
_HELD = 0.01


def judge(study: Study) -> list[Claim]:
    """Judge all claims, in the order of the thesis."""
    return [
        _spline(study),
        _printed_spline(study),
        _turns(study),
        _variants(study),
        _ends(study),
        _stiffer(study),
        _table_5_7(study),
        _models(study),
        _timing(study),
        _feedback(study),
        _bound(study),
        _stabilises(study),
        _vertical(study),
        _undamped(study),
        _horizontal(study),
        _program(study),
    ]


def _yes(good: bool) -> Verdict:
    return "reproduces" if good else "does not reproduce"


def _spline(study: Study) -> Claim:
    s = study.spline
    good = s.missed < 1e-12 and s.jump < 1e-6 and s.kink > 1.0
    return Claim(
        "the spline of Table 4.1 goes through its control values and is C1",
        f"misses them by {s.missed:.0e}; at knots rates jump by {s.jump:.0e} (of instants 2 ns "
        f"apart), accelerations by {s.kink:.2f}",
        _yes(good),
        "",
    )


def _printed_spline(study: Study) -> Claim:
    missed = study.spline.missed_printed
    return Claim(
        "equation 4.3.2: pieces are C M_H D psi",
        f"as printed the ends of pieces miss their control values by up to {missed:.1f}",
        _yes(missed < 1e-9),
        "D belongs before M_H, as in equation 4.2.2" if missed >= 1e-9 else "",
    )


def _turns(study: Study) -> Claim:
    m = study.variants["strain"]
    phi, psi = np.abs(m.angles[:, 0]).max(), m.angles[-1, 1]
    return Claim(
        "more torque on the first cable turns the strut about y: psi moves, phi does not",
        f"psi is {psi:.6e} rad after {m.t[-1]:g} s, phi at most {phi:.0e}",
        _yes(bool(psi > 1e-6 and phi < 1e-12)),
        "initial strain (balance of 0.1 N m) and duration are not in the thesis",
    )


def _variants(study: Study) -> Claim:
    reference = study.variants["strain"]
    off = {
        letter: max(
            np.abs(study.variants[name].angles - reference.angles).max(),
            np.abs(study.variants[name].strain - reference.strain).max(),
        )
        for name, letter in VARIANTS.items()
        if name != "strain"
    }
    n = round(study.variants["strain"].t[-1] / (1e-4 if study.full else 1e-3))
    return Claim(
        "the variants of the compliant involute joint are equivalent",
        ", ".join(f"{x:.0e} between {letter} and eps" for letter, x in off.items())
        + f", angles [rad] and strains, after {n} steps",
        _yes(max(off.values()) < _SAME),
        "",
    )


def _ends(study: Study) -> Claim:
    with_mass, without = study.variants[ENDS], study.variants["strain"]
    off = np.abs(with_mass.angles - without.angles).max()
    return Claim(
        "Simscape's l variant, which needs massive cable ends, deviates more",
        f"ends of {1e3 * END_MASS:g} g alone change the angles by up to {off:.1e} rad",
        "cannot be judged",
        "neither the inertia that was added nor the deviations are printed as numbers",
    )


def falls(study: Study, choice: str) -> np.ndarray:
    """Factors (decades, 2) by which deviations decrease from one modulus to the next."""
    rows = [study.followed[E, choice].largest for E in TABLE_5_7]
    return np.array([a / b for a, b in itertools.pairwise(rows)])


def _stiffer(study: Study) -> Claim:
    factors = falls(study, PLAIN)
    return Claim(
        "inverse dynamics for rigid cables is the more accurate the stiffer the cables",
        f"deviations fall by factors of {factors.min():.1f} to {factors.max():.1f} per decade of E",
        _yes(bool(factors.min() >= _FALL)),
        "",
    )


def _table_5_7(study: Study) -> Claim:
    ratios = np.array([study.followed[E, PLAIN].largest / TABLE_5_7[E] for E in TABLE_5_7])
    apart = np.maximum(ratios, 1.0 / ratios)
    same = bool(apart.max() < 1.05)
    return Claim(
        "the largest deviations of Table 5.7",
        f"ours are {ratios.min():.2f} to {ratios.max():.2f} times the thesis'",
        "reproduces" if same else "in part" if apart.max() < _FACTOR else "does not reproduce",
        ""
        if same
        else "the order of magnitude; digits depend on mass and place of the blocks, viscosity, "
        "and the phase of undamped oscillations, none of which are given: see the table",
    )


def _models(study: Study) -> Claim:
    off = {
        case: np.abs(study.followed[case[0], name].largest / wanted - 1.0).max()
        for case, wanted in MINIMAL_MODEL.items()
        for name in (PLAIN if case[1] == 0.0 else DAMPED,)
    }
    worst = max(off, key=lambda case: off[case])
    return Claim(
        "(not the thesis') a model of the strut in minimal coordinates has the same deviations",
        f"within {100 * off[worst]:.2f} %, all moduli, with and without viscosity",
        _yes(bool(off[worst] < _ONE_PERCENT)),
        "",
    )


def _timing(study: Study) -> Claim:
    held = np.array([study.followed[E, HELD].largest for E in TABLE_5_7])
    plain = np.array([study.followed[E, PLAIN].largest for E in TABLE_5_7])
    factors = held[:-1] / held[1:]
    only = bool(factors.max() < _FALL and np.all(held > plain))
    return Claim(
        "(not said) when torques are computed: with every evaluation, or once in a period",
        f"torques held for 1 ms: deviations of {held.min():.1e} to {held.max():.1e} rad whatever "
        f"the modulus, against {plain.min():.1e} to {plain.max():.1e}",
        "only with these choices" if only else "cannot be judged",
        "the strut falls within a quarter of a second and nothing brings it back; the thesis' "
        "decrease with E needs torques computed inside of the integrator",
    )


def _feedback(study: Study) -> Claim:
    found = study.followed[2e9, FED_BACK].largest
    held = study.followed[2e9, HELD].largest
    return Claim(
        "(outlook) feedback makes torques that are held accurate",
        f"{found.max():.1e} rad with feedback and mu = 10 MPa s, {held.max():.1e} without",
        _yes(bool(found.max() < 0.1 * held.max())),
        "without viscosity feedback is unstable",
    )


def _bound(study: Study) -> Claim:
    cases = [m for (_, choice), m in study.followed.items() if choice == PLAIN]
    low = min(float(m.strain.min() / m.least) for m in cases)
    exact = low >= 1.0 - 1e-6
    return Claim(
        "sigma0/E is a lower bound of the strains throughout the simulation",
        f"the least strain is {low:.3f} of it",
        "reproduces" if exact else "in part" if low > 0.9 else "does not reproduce",
        ""
        if exact
        else "the programme bounds the strain it expects; the cables oscillate about that",
    )


def _stabilises(study: Study) -> Claim:
    m = study.moved[STILL]
    last = m.angles[-1, 1::2]
    there = bool(np.abs(last - _SINGULAR).max() < _NEAR)
    held = bool(m.largest.max() < _HELD)
    ratio = float(m.tension[-1, 1] / m.tension[-1, 0])
    drift = float((m.place[-1, 2] - m.place[len(m.t) // 2, 2]) / (m.t[-1] - m.t[len(m.t) // 2]))
    return Claim(
        "the manipulator stabilises itself in a singular configuration and holds its end effector",
        f"second strut angles {last.min():.4f} to {last.max():.4f} rad after {m.t[-1]:g} s (rest: "
        f"{_SINGULAR}), tensions bottom to top {ratio:.2f}, end effector off by "
        f"{1e3 * m.largest.max():.1f} mm, rising {1e3 * drift:.1f} mm/s",
        "only with these choices" if there and held else "does not reproduce",
        "with viscous friction in the joints of the struts, which the thesis does not mention",
    )


def _vertical(study: Study) -> Claim:
    m = study.moved[UP]
    off = np.abs(m.deviation).max(axis=1) >= _ACCURATE
    left = bool(off.any()) or bool(np.isfinite(m.lost))
    until = int(np.argmax(off)) if off.any() else len(m.t)
    near = np.abs(m.deviation[:until])
    judged: Verdict = (
        "only with these choices"
        if not left
        else "in part"
        if m.t[until - 1] > _LOWEST
        else "does not reproduce"
    )
    return Claim(
        "the vertical trajectory is followed with considerable accuracy",
        f"within {1e3 * near[:, 2].max():.2f} mm along z, {1e3 * near[:, :2].max():.3f} mm across, "
        f"until {m.t[until - 1]:.1f} s"
        + (f"; off by more than {1e3 * _ACCURATE:g} mm after that" if left else ""),
        judged,
        "with viscous friction in the joints of the struts"
        + (
            "; while the structure is low, asymmetric modes grow from round-off, a hundredfold in "
            "a second, and how far is chance"
            if left
            else ""
        ),
    )


def _undamped(study: Study) -> Claim:
    m, damped = study.moved[UP_FREE], study.moved[UP]
    lost = np.isfinite(m.lost)
    begin = m.t <= 5.0
    return Claim(
        "(not said) the vertical trajectory needs no friction",
        f"within {1e3 * np.abs(m.deviation[begin, 2]).max():.2f} mm for the first "
        f"{m.t[begin][-1]:g} s, "
        + (
            f"lost at {m.lost:.1f} s"
            if lost
            else f"{1e3 * m.largest.max():.2f} mm in {m.t[-1]:g} s"
        ),
        "does not reproduce"
        if lost
        else "cannot be judged"
        if m.t[-1] < damped.t[-1]
        else "reproduces",
        "two asymmetric modes of the free degrees of freedom grow from round-off" if lost else "",
    )


def _horizontal(study: Study) -> Claim:
    aside, up = study.moved[ASIDE], study.moved[UP]
    end = min(aside.t[-1], up.t[-1])
    largest = [float(np.abs(m.deviation[m.t <= end]).max()) for m in (aside, up)]
    worse = largest[0] > _WORSE * largest[1] or bool(np.isfinite(aside.lost))
    text = f"within {1e3 * largest[0]:.2f} mm in {end:g} s, vertical {1e3 * largest[1]:.2f} mm"
    if ASIDE_FREE in study.moved:
        free = study.moved[ASIDE_FREE]
        text += f"; without friction {1e3 * free.largest.max():.2f} mm in {free.t[-1]:g} s"
        text += f", lost at {free.lost:.1f} s" if np.isfinite(free.lost) else ""
    return Claim(
        "tracking along the horizontal axis is comparably worse",
        text,
        _yes(worse),
        ""
        if worse
        else "with friction it is not; modes that grow without it are a cause of what the thesis "
        "saw, and agree with its own explanation",
    )


def _program(study: Study) -> Claim:
    texts, good = [], []
    for case, heights in REFERENCE_HEIGHTS.items():
        m = study.moved[case]
        rows = [int(np.argmin(np.abs(m.t - s))) for s in range(1, len(heights) + 1) if s <= m.t[-1]]
        off = np.abs(m.place[rows, 2] - heights[: len(rows)]).max(initial=0.0)
        good.append(off < NEAR_HEIGHT[case])
        text = f"{case} {1e6 * off:.1f} um"
        if case in REFERENCE_ANGLES:
            turned = m.angles[rows, 1] - REFERENCE_ANGLES[case][: len(rows)]
            good.append(np.abs(turned).max(initial=0.0) < NEAR_ANGLE)
            text += f" and {np.abs(turned).max(initial=0.0):.1e} rad"
        texts.append(f"{text} until {len(rows)} s")
    return Claim(
        "(not the thesis') another program for the manipulator has the same motions",
        "heights off by " + ", ".join(texts),
        _yes(all(good)),
        "",
    )
