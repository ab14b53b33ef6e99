"""Claims of the paper, each judged by the measured results."""

from ..report import Claim, Verdict
from ..timing import ratio
from .experiments import Study
from .reduced import AXIAL, FAR, FULL, PAPER, START
from .setup import PAPER_SECONDS, POINTS

#: relative errors in this interval are comparable to the 4.1 % of the paper
_SIZE = (0.02, 0.08)
#: tolerance for the claim of half the computing time
_HALF = 0.15
#: a model is more accurate if its error is smaller by this factor
_BETTER = 0.8


def judge(study: Study) -> list[Claim]:
    """Judge all claims, in the order of the paper."""
    return [
        _dimension(study),
        _taut_slack_taut(study),
        _snap(study),
        _error(study),
        _automatic(study),
        _half(study),
        _force(study),
        _time(study),
        _projection(study),
    ]


def _yes(good: bool) -> Verdict:
    return "reproduces" if good else "does not reproduce"


def _dimension(study: Study) -> Claim:
    size = study.motion.dimension
    text = f"{size}: twice {study.run.q.shape[1]} coordinates and 4 multipliers"
    return Claim("the equations have the dimension 170", text, _yes(size == 170), "")


def _taut_slack_taut(study: Study) -> Claim:
    m = study.motion
    begin, end = m.slack
    there = end - begin > 0.5 and begin < min(POINTS[1:]) and end > max(POINTS)
    good = there and m.after[1] > 5.0
    return Claim(
        "the ropes are taut, get slack, and are taut again, with other forces than before",
        f"no rope pulls with 1 N from {begin:.2f} to {end:.2f} s; in the last second tensions are "
        f"{m.after[0]:.1f} to {m.after[1]:.1f} N, before "
        + " and ".join(f"{x:.1f}" for x in study.run.outputs["tension"][0])
        + " N",
        "only with these choices" if good else "does not reproduce",
        "the force, the mass of the platform and the ropes are not in the paper: they are chosen "
        "such that ropes are slack at the instants of its linearisations",
    )


def _snap(study: Study) -> Claim:
    when, first, second = study.motion.snap
    top, at = study.motion.top
    return Claim(
        "figure 3: deflection of the platform, and forces when ropes get taut",
        f"the platform is highest, {top:.4f} m, at {at:.2f} s; ropes snap taut at {when:.2f} s "
        f"with {first:.1f} and {second:.1f} N, of instants 5 ms apart: it is over so soon that "
        "coarser ones show less",
        "cannot be judged",
        "the parameters behind the figure are not in the paper",
    )


def _error(study: Study) -> Claim:
    r = study.reduced
    found, start = r.errors[PAPER], r.errors[START]
    near = _SIZE[0] < found.relative < _SIZE[1]
    return Claim(
        "piecewise linear about four points, the relative error is 4.1 %",
        f"{_percent(found.relative)} with {r.segments} segments over {r.duration:g} s; "
        f"{_percent(start.relative)} about "
        f"the start alone, {_percent(r.guess)} for a robot that never moves; relative to the "
        f"motion {_percent(found.motion)}, of the platform {_percent(found.platform)}; the full "
        f"model at the same step {_percent(r.errors[FULL].relative)}",
        "in part" if near else "does not reproduce",
        "the number says little: it is relative to coordinates that are mostly the height of the "
        "platform over an origin, not to what moves",
    )


def _automatic(study: Study) -> Claim:
    errors = study.reduced.errors
    found, papers = errors[FAR].relative, errors[PAPER].relative
    good = found < _BETTER * papers
    return Claim(
        "points chosen automatically would make the reduced model more accurate",
        f"{_percent(found)} with four points of the trajectory far apart in coordinates and "
        f"velocities, {_percent(papers)} with the paper's",
        _yes(good),
        ""
        if good
        else "elastic forces are linear in these coordinates already; what is not is quadratic in "
        "the velocities, and four points do not cover it",
    )


def _half(study: Study) -> Claim:
    times = study.reduced.timings
    share = ratio(times[PAPER], times[FULL])
    near, slower = share.within(0.5 - _HALF, 0.5 + _HALF), share.exceeds(1.0)
    judged: Verdict = (
        "does not reproduce" if slower else "reproduces" if near else "cannot be judged"
    )
    return Claim(
        f"piecewise linear, the robot takes half the time ({PAPER_SECONDS[0]:g} and "
        f"{PAPER_SECONDS[1]:g} s)",
        f"{share} times the time of the full model, {study.reduced.segments} segments, same method "
        "and steps",
        judged,
        "both solve along the ropes, in a time proportional to the segments, and so does the exact "
        "force; blended matrices are full"
        if slower
        else "",
    )


def _force(study: Study) -> Claim:
    share = ratio(study.force[PAPER], study.force[FULL])
    slower = share.exceeds(1.0)
    judged: Verdict = "cannot be judged" if slower is None else _yes(not slower)
    return Claim(
        "the force is what is expensive, and cheaper piecewise linear",
        f"{1e6 * study.force[FULL].seconds:.1f} us exactly, "
        f"{1e6 * study.force[PAPER].seconds:.1f} us piecewise linear: {share} times, "
        f"{study.run.q.shape[1]} coordinates",
        judged,
        "a pass along the ropes against four full matrices" if slower else "",
    )


def _time(study: Study) -> Claim:
    seconds = study.timing.seconds
    return Claim(
        f"15 s take {PAPER_SECONDS[0]:g} s to compute, in full",
        f"{seconds:.2f} s after compilation for {float(study.run.t[-1]):g} s, with "
        f"{study.run.q.shape[1]} coordinates at 1 ms",
        "cannot be judged",
        "another machine, language and method: told beside, not judged",
    )


def _projection(study: Study) -> Claim:
    r = study.reduced
    share = ratio(r.timings[AXIAL], r.timings[FULL])
    off, full = r.errors[AXIAL].relative, r.errors[FULL].relative
    slower = share.exceeds(1.0)
    judged: Verdict = "cannot be judged" if slower is None else _yes(not slower and off <= full)
    return Claim(
        "projection on a subspace would be more efficient",
        f"elongations constant and linear along each rope: {r.coordinates[AXIAL]} coordinates "
        f"instead of {r.coordinates[FULL]}, {r.timings[AXIAL].seconds:.2f} s at an error of "
        f"{_percent(off)}, the full model {r.timings[FULL].seconds:.2f} s at {_percent(full)}: "
        f"{share} times the time",
        judged,
        "what is left out are axial waves, and with them the stiffness: explicit steps of high "
        "order do, and each costs in proportion to the segments"
        if judged == "reproduces"
        else "",
    )


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"
