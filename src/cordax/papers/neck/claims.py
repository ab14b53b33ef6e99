"""Claims of the paper, each judged by the measured results."""

import numpy as np

from ..report import Claim, Verdict
from ..timing import ratio, verdict
from .experiments import JOINTS, OTHER_CHOICES, SMALL_ROTOR, Study, Tried
from .limits import FINE, SMALLEST
from .setup import amplitude

#: differences below this fraction of the amplitude of the motion are negligible
_NEGLIGIBLE = 0.01
#: relative tolerance for limits that the paper gives as "about"
_ABOUT = 0.25
#: relative tolerance within which limits count as equal
_SAME = 0.03
#: factor above which an increase of the computing time counts as large
_MUCH = 1.5
#: changes of a joint rate from step to step above this count as chatter [rad/s]
_CHATTER = 0.05


def judge(study: Study) -> list[Claim]:
    """Judge all claims, in the order of the paper."""
    return [
        _rigid_stable(study),
        _rigid_agree(study),
        _explicit_faster(study),
        _more_joints_slower(study),
        _limit_three(study),
        _limit_four(study),
        _limit_falls(study),
        _implicit_stable(study),
        _elastic_close(study),
        _elasticity_cheap(study),
        _elongations(study),
        _more_precise(study),
    ]


def fine(tried: Tried) -> bool:
    """Whether a run followed the desired motion."""
    return tried.error < FINE


def _rigid_stable(study: Study) -> Claim:
    runs = [x for x in study.tried if x.tendons == "rigid"]
    bad = [x for x in runs if not fine(x)]
    steps = [x.dt * 1e3 for x in runs]
    worst = max(x.error for x in runs)
    return Claim(
        "rigid tendons: both schemes are stable at 2 ms and at larger and smaller steps",
        f"{len(runs) - len(bad)} of {len(runs)} runs from {min(steps):g} to {max(steps):g} ms "
        f"follow the motion, largest error {worst:.1e} rad",
        "does not reproduce" if bad else "reproduces",
        "",
    )


def _rigid_agree(study: Study) -> Claim:
    shares = {n: study.differences[n]["rigid explicit - rigid implicit"] / _span(n) for n in JOINTS}
    sizes = ", ".join(
        f"{study.differences[n]['rigid explicit - rigid implicit']:.1e} rad ({n} joints)"
        for n in JOINTS
    )
    good = max(shares.values()) < _NEGLIGIBLE
    return Claim(
        "rigid tendons: explicit and implicit results differ negligibly",
        f"largest difference {sizes}",
        "reproduces" if good else "does not reproduce",
        "both schemes are of first order; their difference shrinks with the step" if good else "",
    )


def _explicit_faster(study: Study) -> Claim:
    time = lambda n, kind, scheme: study.runs[n, kind, scheme].timing
    found = [
        ratio(time(n, kind, "implicit"), time(n, kind, "explicit"))
        for n in JOINTS
        for kind in ("rigid", "elastic")
    ]
    low, high = min(r.value for r in found), max(r.value for r in found)
    return Claim(
        "at equal steps the explicit scheme is faster (paper: 4.5 and 6 times)",
        f"an implicit step costs {low:.1f} to {high:.1f} times an explicit one",
        verdict(r.exceeds(1.0) for r in found),
        "",
    )


def _more_joints_slower(study: Study) -> Claim:
    found = [
        ratio(study.runs[4, "rigid", s].timing, study.runs[3, "rigid", s].timing)
        for s in ("explicit", "implicit")
    ]
    return Claim(
        "computing time rises with the number of joints (paper: 1.25 and 1.7 times)",
        f"4 joints take {found[0]} times 3 joints, explicit, and {found[1]} times, implicit",
        verdict(r.exceeds(1.0) for r in found),
        "",
    )


def _limit_three(study: Study) -> Claim:
    limits = study.limits[3]
    near = abs(limits.closed_loop - 4e-4) <= _ABOUT * 4e-4
    moves = abs(limits.other_choices - 4e-4) > _ABOUT * 4e-4
    judged: Verdict = (
        "only with these choices"
        if near and moves
        else "reproduces"
        if near
        else "does not reproduce"
    )
    return Claim(
        "elastic tendons, explicit, 3 joints: the limit is about 0.4 ms",
        f"{_ms(limits.closed_loop)} with rotor inertia and gains chosen to give this; "
        f"{_ms(limits.other_choices)} with {_choices()}; {_ms(limits.open_loop)} without control",
        judged,
        "rotor inertia and gains are not in the paper, and they decide this limit; without control "
        "it is damping/stiffness of the tendons",
    )


def _limit_four(study: Study) -> Claim:
    limits = study.limits[4]
    growth = float(limits.predicted.growth.max())
    fails = limits.closed_loop == 0.0
    judged: Verdict = (
        "does not reproduce"
        if not fails
        else "only with these choices"
        if limits.other_choices > SMALLEST
        else "reproduces"
    )
    true_instability = (
        f"the closed loop itself is unstable (growth {growth:+.1f} 1/s): no step helps any scheme"
        if growth > 0
        else "the closed loop is stable: a smaller step would help"
    )
    return Claim(
        "elastic tendons, explicit, 4 joints: no convergence even at 0.025 ms",
        f"{'fails' if fails else 'works'} at 0.025 ms; fine up to {_ms(limits.other_choices)} with "
        f"{_choices()}",
        judged,
        true_instability,
    )


def _limit_falls(study: Study) -> Claim:
    three, four = study.limits[3], study.limits[4]
    falls = four.closed_loop < (1 - _SAME) * three.closed_loop
    same = abs(four.open_loop / three.open_loop - 1.0) < _SAME
    judged: Verdict = (
        "does not reproduce" if not falls else "only with these choices" if same else "reproduces"
    )
    return Claim(
        "the limit falls with the complexity of the robot",
        f"controlled {_ms(three.closed_loop)} and {_ms(four.closed_loop)} for 3 and 4 joints; "
        f"without control {_ms(three.open_loop)} and {_ms(four.open_loop)}",
        judged,
        "only through the controller, whose rate feedback takes damping from the elastic modes, "
        "most from the slow ones of a long neck"
        if falls and same
        else "",
    )


def _implicit_stable(study: Study) -> Claim:
    runs = [x for x in study.tried if x.tendons == "elastic" and x.scheme == "implicit"]
    bad = [x for x in runs if not fine(x)]
    good = [x for x in runs if fine(x)]
    chatters = study.chatter[SMALL_ROTOR] > _CHATTER
    failures = "; ".join(f"{x.joints} joints fail at {_ms(x.dt)}" for x in bad)
    range_ = (
        f"{_ms(min(x.dt for x in good))} to {_ms(max(x.dt for x in good))}" if good else "nowhere"
    )
    judged: Verdict = (
        "does not reproduce" if not good else "in part" if bad or chatters else "reproduces"
    )
    reasons = []
    if bad and study.limits[4].predicted.growth.max() > 0:
        reasons.append(
            "large steps damp the unstable mode of the 4-joint loop and hide it, small ones do not"
        )
    if chatters:
        reasons.append(
            f"with a rotor of {SMALL_ROTOR:g} kg m^2 the joint rates alternate by "
            f"{study.chatter[SMALL_ROTOR]:.2f} rad/s from step to step at 2 ms (held dry friction)"
        )
    return Claim(
        "elastic tendons: the implicit scheme is always stable",
        f"{len(good)} of {len(runs)} runs fine, at {range_}"
        + (f"; {failures}" if failures else ""),
        judged,
        "; ".join(reasons),
    )


def _elastic_close(study: Study) -> Claim:
    sizes = {n: study.differences[n]["elastic implicit - rigid implicit"] for n in JOINTS}
    good = all(sizes[n] < _NEGLIGIBLE * _span(n) for n in JOINTS)
    return Claim(
        "results with elastic tendons are close to those with rigid ones",
        ", ".join(f"{sizes[n]:.1e} rad ({n} joints)" for n in JOINTS)
        + f" at amplitudes up to {_span(3):g} rad",
        "reproduces" if good else "does not reproduce",
        "",
    )


def _elasticity_cheap(study: Study) -> Claim:
    explicit = ratio(study.runs_at_04["elastic"].timing, study.runs_at_04["rigid"].timing)
    implicit = ratio(
        study.runs[3, "elastic", "implicit"].timing, study.runs[3, "rigid", "implicit"].timing
    )
    above = [r.exceeds(_MUCH) for r in (explicit, implicit)]
    cheap = [None if x is None else not x for x in above]
    return Claim(
        "elasticity does not raise the computing time much (paper: 1.2 times)",
        f"{explicit} times with the explicit scheme at 0.4 ms, {implicit} times with the implicit "
        "one at 2 ms",
        verdict(cheap, mixed="does not reproduce"),
        "",
    )


def _elongations(study: Study) -> Claim:
    run = study.runs[3, "elastic", "implicit"]
    stretch = 1e3 * run.series(lambda p: p.outputs["elongation"])
    level = float(np.mean(stretch[0]))
    return Claim(
        "tendon elongations come out of the simulation",
        f"{stretch.min():.2f} to {stretch.max():.2f} mm (3 joints)",
        "reproduces" if stretch.min() > 0 else "in part",
        f"their level, {level:.2f} mm at the start, is the chosen mean tension over the stiffness; "
        "the paper shows them in a figure only",
    )


def _more_precise(study: Study) -> Claim:
    explicit, implicit = (study.rigid_errors[s] for s in ("explicit", "implicit"))
    ratio = float(np.median(implicit.error / explicit.error))
    return Claim(
        "implicit integration gives more precise results",
        f"at equal steps its error is {ratio:.1f} times the explicit one (3 joints, rigid tendons)",
        "reproduces" if ratio < 1.0 else "does not reproduce",
        "both are of first order; the elastic model adds realism, not precision of the scheme",
    )


def _span(n: int) -> float:
    return float(np.max(np.abs(amplitude(n))))


def _choices() -> str:
    return f"{OTHER_CHOICES[0]:g} kg m^2 and {OTHER_CHOICES[1]:g} rad/s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds > 0 else f"none (< {SMALLEST * 1e3:g} ms)"
