"""Results of the study as text tables and as data."""

import math
from typing import Any

import numpy as np

from ..report import Claim, claim_text, finite, section
from .claims import ADAMS_SECONDS, FLIP, SECONDS, TABLE_3, TABLE_4
from .experiments import MODELS, Drift, Study, rms


def as_text(study: Study, claims: list[Claim]) -> str:
    """Return all results as readable text."""
    parts = [
        section(
            "Table 3. Position of the plate, RMS over 10 s [m]: the paper against ADAMS, ours "
            "against Model 2",
            table_3(study),
        ),
        section(
            "Table 4. Swivel angles, RMS over 10 s [rad]: the paper against ADAMS, ours Model 3 "
            "against Model 2",
            table_4(study),
        ),
        section("Natural frequencies about the start [Hz]", frequencies(study)),
        section(
            "Drift. Section 4.3, Model 2: largest |Phi| [m^2] and |dPhi/dt|, errors against half "
            "the step in the first 5 s, span of the energy after the push",
            drift(study),
        ),
        section("The pick at 11 s", pick(study)),
        section("The overturning [s]", overturning(study)),
        section(
            "Seconds of computing at a step of 0.1 ms: the paper's on one core of a Core i7-10700, "
            "ours after compilation on this machine",
            seconds(study),
        ),
        "Claims of the paper\n",
    ]
    return "\n".join([*parts, *(claim_text(claim) for claim in claims)])


def table_3(study: Study) -> list[list[str]]:
    rows = [["", *(f"Model {m}: paper" for m in MODELS), "Model 1: ours", "Model 3: ours"]]
    ours = [rms(study.impulse[m], study.impulse[2]) for m in (1, 3)]
    for i, axis in enumerate("xyz"):
        paper = [f"{TABLE_3[m][i]:.1e}" for m in MODELS]
        rows.append([axis, *paper, *(f"{x[i]:.3e}" for x in ours)])
    return rows


def table_4(study: Study) -> list[list[str]]:
    rows = [["", "Model 2: paper", "Model 3: paper", "ours"]]
    ours = rms(study.impulse[3], study.impulse[2], "swivel")
    for i in range(4):
        paper = [f"{TABLE_4[m][i]:.1e}" for m in (2, 3)]
        rows.append([f"pulley {i + 1}", *paper, f"{ours[i]:.2e}"])
    return rows


def frequencies(study: Study) -> list[list[str]]:
    most = max(len(f) for f in study.frequencies.values())
    rows = [["", *(str(i + 1) for i in range(most))]]
    for model, found in study.frequencies.items():
        cells = [f"{f:.4f}" for f in found]
        rows.append([f"Model {model}", *cells, *[""] * (most - len(cells))])
    return rows


def drift(study: Study) -> list[list[str]]:
    rows = [["", "step [ms]", "over [s]", "|Phi|", "|dPhi/dt|", "x [m]", "f [N]", "E [J]"]]
    entries = study.drift | {"overturning, penalty": study.overturned_penalty}
    for name, d in entries.items():
        damped = name.startswith("overturning")
        numbers = (d.phi, d.rate, d.position, d.tension, math.nan if damped else d.energy)
        cells = ["" if math.isnan(x) else f"{x:.1e}" for x in numbers]
        rows.append([name, f"{1e3 * d.dt:g}", f"{d.duration:g}", *cells])
    return rows


def pick(study: Study) -> list[list[str]]:
    rows = [["payload", "tensions before [N]", "at 13 s [N]", "sag [m]", "sideways [m]"]]
    for name, p in (("in the middle", study.picked), ("2 and 3 cm off", study.picked_off)):
        spread = lambda f: f"{f.min():.3f}" if np.ptp(f) < 1e-3 else f"{f.min():.2f}..{f.max():.2f}"
        cells = [spread(p.before), spread(p.after), f"{p.sag:.2e}", f"{p.sideways:.1e}"]
        rows.append([name, *cells])
    return rows


def overturning(study: Study) -> list[list[str]]:
    found = study.overturned
    rows = [["", "paper", "ours"]]
    rows.append(["upright (singular Euler angles)", f"{FLIP}", f"{found.flip:.4f}"])
    rows += [[f"  {name}", "", f"{t:.4f}"] for name, t in study.flips.items()]
    rows.append(["a cable would push from", "", f"{found.pushes:.4f}"])
    return rows


def seconds(study: Study) -> list[list[str]]:
    rows = [["", "simulated [s]", "paper", "ours"]]
    for name, paper in SECONDS.items():
        simulated = {"pick": 20, "overturning": 14}.get(name, 10)
        note = " (from 1 s)" if name == "pick" else ""
        rows.append(
            [name, f"{simulated}", f"{paper:g}", f"{study.timings[name].seconds:.2f}{note}"]
        )
    rows.append(["ADAMS", "10", f"{ADAMS_SECONDS:g}", ""])
    return rows


def as_data(study: Study, claims: list[Claim]) -> dict[str, Any]:
    """Return all results as dictionaries, lists, texts, finite numbers or None, for JSON."""
    events = study.unilateral.events
    assert events is not None
    happened = np.isfinite(np.asarray(events.time))
    data = {
        "table_3_m": {
            "paper": {str(m): list(x) for m, x in TABLE_3.items()},
            "ours": {str(m): rms(study.impulse[m], study.impulse[2]).tolist() for m in (1, 3)},
        },
        "table_4_rad": {
            "paper": {str(m): list(x) for m, x in TABLE_4.items()},
            "ours": rms(study.impulse[3], study.impulse[2], "swivel").tolist(),
        },
        "printed_start": {
            "unbalanced_moment_Nm": study.printed_moment,
            "rms_m": rms(study.printed[1], study.printed[2]).tolist(),
        },
        "frequencies_hz": {str(m): f.tolist() for m, f in study.frequencies.items()},
        "drift": {name: _drift(d) for name, d in study.drift.items()},
        "drift_overturning_penalty": _drift(study.overturned_penalty),
        "pick": {
            name: {
                "before_N": p.before.tolist(),
                "after_N": p.after.tolist(),
                "sag_m": p.sag,
                "sideways_m": p.sideways,
                "speed_m_per_s": p.speed,
            }
            for name, p in (("centred", study.picked), ("beside", study.picked_off))
        },
        "joint": study.joint._asdict(),
        "overturning": study.overturned._asdict() | {"flips_s": study.flips},
        "unilateral_events": [
            {
                "time_s": float(events.time[i]),
                "cable": int(events.row[i]) + 1,
                "kind": int(events.kind[i]),
                "impulse_Ns": float(events.impulse[i]),
            }
            for i in np.flatnonzero(happened)
        ],
        "norm_over_tension": study.norm_factor,
        "seconds": {
            name: {
                "paper": paper,
                "ours": study.timings[name].seconds,
                "rounds": list(study.timings[name].rounds),
            }
            for name, paper in SECONDS.items()
        },
        "claims": [claim._asdict() for claim in claims],
    }
    return finite(data)


def _drift(d: Drift) -> dict[str, float]:
    return {key: value for key, value in d._asdict().items() if key != "violation"}
