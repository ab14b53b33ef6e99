"""Results of the study as text tables and as data."""

import math
from typing import Any

import numpy as np

from ..report import Claim, claim_text, finite, section
from .claims import fine
from .experiments import JOINTS, SCHEMES, Study, order
from .march import Run
from .setup import DURATION

#: computing times in MATLAB that the paper prints [s]
_TABLE_1 = {
    ("explicit", 3): "4",
    ("explicit", 4): "5",
    ("implicit", 3): "18",
    ("implicit", 4): "30",
}
_TABLE_2 = {
    ("explicit", "rigid"): "17",
    ("explicit", "elastic"): "20",
    ("implicit", "rigid"): "18",
    ("implicit", "elastic"): "22",
}
_TABLE_3 = {
    (3, "explicit"): ("0.4 ms", "20"),
    (3, "implicit"): ("none", "22"),
    (4, "explicit"): ("< 0.025 ms", "> 700"),
    (4, "implicit"): ("none", "35"),
}


def as_text(study: Study, claims: list[Claim]) -> str:
    """Return all results as readable text."""
    parts = [
        "Times: the paper's are of MATLAB on an unknown machine, ours of compiled runs on this;\n"
        "only their ratios compare.",
        section("Table 1. Seconds for 6.3 s of motion at 2 ms, rigid tendons", table_1(study)),
        section(
            "Table 2. Seconds for 6.3 s of motion, 3 joints (explicit 0.4 ms, implicit 2 ms)",
            table_2(study),
        ),
        section("Table 3. Limit of the step and seconds, elastic tendons", table_3(study)),
        section(
            "Largest differences of joint angles [rad], 2 ms (elastic explicit: 0.2 ms)",
            differences(study),
        ),
        section(
            "Largest stable step of explicit Euler with elastic tendons [ms]: predicted from the "
            "spectrum along the motion without dry friction, and observed",
            limits(study),
        ),
        section(
            "Runs over the motion: largest tracking error [rad], or when they fail", scan(study)
        ),
        section(
            "Schemes with elastic tendons, 3 joints: error at 1 s [rad], order, cost of a step",
            schemes(study),
        ),
        "Claims of the paper\n",
    ]
    for claim in claims:
        parts.append(claim_text(claim))
    return "\n".join(parts)


def table_1(study: Study) -> list[list[str]]:
    rows = [["", *(f"{n} joints: paper, ours" for n in JOINTS)]]
    for scheme in SCHEMES:
        ours = [_seconds(study.runs[n, "rigid", scheme].seconds) for n in JOINTS]
        rows.append(
            [scheme, *(f"{_TABLE_1[scheme, n]}, {x}" for n, x in zip(JOINTS, ours, strict=True))]
        )
    return rows


def _table_2_runs(study: Study) -> dict[tuple[str, str], Run]:
    kinds = ("rigid", "elastic")
    explicit = {("explicit", kind): study.runs_at_04[kind] for kind in kinds}
    return explicit | {("implicit", kind): study.runs[3, kind, "implicit"] for kind in kinds}


def table_2(study: Study) -> list[list[str]]:
    runs = _table_2_runs(study)
    rows = [["", "rigid: paper, ours", "elastic: paper, ours"]]
    for scheme in SCHEMES:
        cells = [
            f"{_TABLE_2[scheme, kind]}, {_seconds(runs[scheme, kind].seconds)}"
            for kind in ("rigid", "elastic")
        ]
        rows.append([scheme, *cells])
    return rows


def table_3(study: Study) -> list[list[str]]:
    rows = [["", "limit: paper", "ours", "seconds: paper", "ours"]]
    for n in JOINTS:
        for scheme in SCHEMES:
            limit, seconds = _TABLE_3[n, scheme]
            ours, spent = _limit_and_seconds(study, n, scheme)
            rows.append([f"{n} joints, {scheme}", limit, ours, seconds, spent])
    return rows


def _limit_and_seconds(study: Study, n: int, scheme: str) -> tuple[str, str]:
    if scheme == "explicit":
        run = study.runs_at_04["elastic"] if n == 3 else study.at_smallest
        limit = study.limits[n].closed_loop
        steps = DURATION / run.dt
        whole = _seconds(run.seconds_per_step * steps)
        note = f"{whole} ({run.dt * 1e3:g} ms)"
        return (f"{limit * 1e3:.2f} ms" if limit else "< 0.025 ms"), note
    bad = [x.dt for x in study.tried if x[:3] == (n, "elastic", "implicit") and not fine(x)]
    text = "none" if not bad else f"fails at {max(bad) * 1e3:g} ms and below"
    return text, f"{_seconds(study.runs[n, 'elastic', 'implicit'].seconds)} (2 ms)"


def differences(study: Study) -> list[list[str]]:
    rows = [["", *(f"{n} joints" for n in JOINTS)]]
    for name in study.differences[JOINTS[0]]:
        rows.append([name, *(_number(study.differences[n][name]) for n in JOINTS)])
    for end, pick in (("smallest", np.min), ("largest", np.max)):
        cells = []
        for n in JOINTS:
            stretch = study.runs[n, "elastic", "implicit"].series(lambda p: p.outputs["elongation"])
            cells.append(" ".join(f"{x:.3f}" for x in 1e3 * pick(stretch, axis=0)))
        rows.append([f"{end} elongations, implicit [mm]", *cells])
    return rows


def limits(study: Study) -> list[list[str]]:
    rows = [["", "predicted", "observed", "fastest growth [1/s]"]]
    for n in JOINTS:
        found = study.limits[n]
        low, high = found.predicted.open_loop.min() * 1e3, found.predicted.open_loop.max() * 1e3
        observed = f"{found.open_loop * 1e3:.3f}"
        rows.append([f"{n} joints, no control", f"{low:.3f} to {high:.3f}", observed, ""])
        closed = found.predicted.closed_loop * 1e3
        growth = found.predicted.growth.max()
        predicted = (
            f"{closed.min():.3f} to {closed.max():.3f}" if closed.min() > 0 else "none: unstable"
        )
        observed = f"{found.closed_loop * 1e3:.3f}" if found.closed_loop else "none (< 0.025)"
        rows.append([f"{n} joints, controlled", predicted, observed, f"{growth:+.2f}"])
    return rows


def scan(study: Study) -> list[list[str]]:
    steps = sorted({x.dt for x in study.tried})
    rows = [["joints, tendons, scheme", *(f"{dt * 1e3:g} ms" for dt in steps)]]
    for key in study.runs:
        cells = {x.dt: x for x in study.tried if x[:3] == key}
        text = [
            ""
            if dt not in cells
            else f"{cells[dt].error:.1e}"
            if math.isfinite(cells[dt].error)
            else f"t={cells[dt].failure_time:.2f} s"
            for dt in steps
        ]
        rows.append([f"{key[0]} {key[1]} {key[2]}", *text])
    return rows


def schemes(study: Study) -> list[list[str]]:
    first = next(iter(study.convergence.values()))
    rows = [["", *(f"{dt * 1e3:g} ms" for dt in first.dt), "order", "us/step"]]
    for name, found in study.convergence.items():
        errors = [f"{e:.1e}" if math.isfinite(e) else "unstable" for e in found.error]
        rows.append([name, *errors, f"{order(found):.2f}", f"{found.seconds_per_step * 1e6:.1f}"])
    return rows


def as_data(study: Study, claims: list[Claim]) -> dict[str, Any]:
    """Return all results as dictionaries, lists, texts, finite numbers or None, for JSON."""
    seconds = lambda run: run.seconds
    data = {
        "settings": {"duration_s": DURATION},
        "table_1_s": {
            f"{scheme}, {n} joints": {
                "paper": float(paper),
                "ours": seconds(study.runs[n, "rigid", scheme]),
            }
            for (scheme, n), paper in _TABLE_1.items()
        },
        "table_2_s": {
            f"{scheme}, {kind}": {"paper": float(_TABLE_2[scheme, kind]), "ours": seconds(run)}
            for (scheme, kind), run in _table_2_runs(study).items()
        },
        "table_3": {
            f"{n} joints, {scheme}": {
                "paper": dict(zip(("limit", "seconds"), printed, strict=True)),
                "ours": dict(
                    zip(("limit", "seconds"), _limit_and_seconds(study, n, scheme), strict=True)
                ),
            }
            for (n, scheme), printed in _TABLE_3.items()
        },
        "rounds_s": {
            " ".join(map(str, key)): list(run.timing.rounds) for key, run in study.runs.items()
        }
        | {
            f"3 {kind} explicit, 0.4 ms": list(run.timing.rounds)
            for kind, run in study.runs_at_04.items()
        },
        "differences_rad": {str(n): study.differences[n] for n in JOINTS},
        "limits_s": {
            str(n): {
                "predicted_open_loop": found.predicted.open_loop.tolist(),
                "predicted_closed_loop": found.predicted.closed_loop.tolist(),
                "predicted_at_s": found.predicted.t.tolist(),
                "fastest_growth_per_s": found.predicted.growth.tolist(),
                "observed_open_loop": found.open_loop,
                "observed_closed_loop": found.closed_loop,
                "observed_closed_loop_other_choices": found.other_choices,
            }
            for n, found in study.limits.items()
        },
        "runs": [x._asdict() for x in study.tried],
        "schemes": {
            name: {
                "dt_s": found.dt.tolist(),
                "error_rad": found.error.tolist(),
                "order": order(found),
                "seconds_per_step": found.seconds_per_step,
            }
            for name, found in study.convergence.items()
        },
        "schemes_left_out": study.left_out,
        "chatter_rad_per_s": {f"{i:g}": x for i, x in study.chatter.items()},
        "claims": [claim._asdict() for claim in claims],
    }
    return finite(data)


def _seconds(x: float) -> str:
    return f"{x:.3f}"


def _number(x: float) -> str:
    return f"{x:.2e}" if math.isfinite(x) else "diverges"
