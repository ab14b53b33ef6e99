"""Results of the study as text tables and as data."""

from typing import Any

from ..report import Claim, claim_text, finite, section
from .experiments import Study
from .reduced import AXIAL, PAPER
from .setup import PAPER_SECONDS


def as_text(study: Study, claims: list[Claim]) -> str:
    """Return all results as readable text."""
    parts = [
        section(
            f"Models of two ropes of {study.reduced.segments} segments and a platform, "
            f"{study.reduced.duration:g} s, Rosenbrock's method at 0.25 ms, the axial one by "
            "explicit steps that adapt, against an explicit run of fourth order: coordinates; "
            "error relative to coordinates (the paper's), to their motion, and of the platform to "
            "its motion [%]; seconds after compilation on this machine, -- where not measured",
            models(study),
        ),
        section(
            "Seconds for 15 s: the paper's in MATLAB, ours after compilation on this machine (the "
            "full model by generalised alpha at 1 ms), and one evaluation of the force [us]",
            seconds(study),
        ),
        "Claims of the paper\n",
    ]
    return "\n".join([*parts, *(claim_text(claim) for claim in claims)])


def models(study: Study) -> list[list[str]]:
    r = study.reduced
    rows = [["", "coordinates", "error", "of motion", "of platform", "seconds"]]
    for name, e in r.errors.items():
        time = f"{r.timings[name].seconds:.3f}" if name in r.timings else "--"
        cells = [f"{100 * x:.2f}" for x in e]
        rows.append([name, str(r.coordinates[name]), *cells, time])
    rows.append(["a robot that never moves", "0", f"{100 * r.guess:.2f}", "100.00", "100.00", "--"])
    return rows


def seconds(study: Study) -> list[list[str]]:
    full, reduced = PAPER_SECONDS
    n = study.run.q.shape[1]
    own = lambda name: f"{study.reduced.timings[name].seconds:.2f}"
    force = [f"{1e6 * timing.seconds:.2f}" for timing in study.force.values()]
    return [
        ["", "paper", f"ours, {n} coordinates", "force"],
        ["full model", f"{full:g}", f"{study.timing.seconds:.2f}", force[0]],
        ["piecewise linear", f"{reduced:g}", own(PAPER), force[1]],
        ["axial subspace", "--", own(AXIAL), "--"],
    ]


def as_data(study: Study, claims: list[Claim]) -> dict[str, Any]:
    """Return all results as dictionaries, lists, texts, finite numbers or None, for JSON."""
    r = study.reduced
    data = {
        "motion": {k: list(x) if isinstance(x, tuple) else x for k, x in _motion(study)},
        "seconds": {"paper": list(PAPER_SECONDS), "rounds_s": list(study.timing.rounds)},
        "force_s": {name: list(timing.rounds) for name, timing in study.force.items()},
        "reduced": {
            "segments": r.segments,
            "duration_s": r.duration,
            "error_of_no_motion": r.guess,
            "models": {
                name: e._asdict()
                | {
                    "coordinates": r.coordinates[name],
                    "rounds_s": list(r.timings[name].rounds) if name in r.timings else None,
                }
                for name, e in r.errors.items()
            },
        },
        "claims": [claim._asdict() for claim in claims],
    }
    return finite(data)


def _motion(study: Study):
    return study.motion._asdict().items()
