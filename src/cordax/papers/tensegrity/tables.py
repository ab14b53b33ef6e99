"""Results of the study as text tables and as data."""

from typing import Any

import numpy as np

from ..report import Claim, claim_text, finite, section
from .experiments import Study
from .setup import MINIMAL_MODEL, TABLE_5_7, VARIANTS_MODULUS
from .strut import ENDS, VARIANTS


def as_text(study: Study, claims: list[Claim]) -> str:
    """Return all results as readable text."""
    parts = [
        section(
            f"Section 5.2. Constant torques, E = {VARIANTS_MODULUS / 1e6:g} MPa: psi at the end, "
            "largest phi, and largest differences from the eps variant",
            variants(study),
        ),
        section(
            "Table 5.7. Largest deviations of phi, psi [rad] along the path of Table 5.6, by what "
            "the thesis leaves open; -- where not run",
            table_5_7(study),
        ),
        section(
            "Section 5.4. Manipulator: largest deviations of the end effector [mm], strains over "
            "the smallest allowed one, and when the run was lost",
            moved(study),
        ),
        "Claims of the thesis\n",
    ]
    return "\n".join([*parts, *(claim_text(claim) for claim in claims)])


def variants(study: Study) -> list[list[str]]:
    rows = [["", "psi [rad]", "phi [rad]", "angles [rad]", "strains"]]
    reference = study.variants["strain"]
    for name, m in study.variants.items():
        label = ENDS.replace("strain", "eps") if name == ENDS else VARIANTS[name]
        rows.append(
            [
                label,
                f"{m.angles[-1, 1]:.9e}",
                f"{np.abs(m.angles[:, 0]).max():.0e}",
                f"{np.abs(m.angles - reference.angles).max():.1e}",
                f"{np.abs(m.strain - reference.strain).max():.1e}",
            ]
        )
    return rows


def table_5_7(study: Study) -> list[list[str]]:
    rows = [["", *(f"E = {E / 1e6:g} MPa" for E in TABLE_5_7)]]
    pair = lambda x: f"{x[0]:.3e}, {x[1]:.3e}"
    rows.append(["thesis", *(pair(x) for x in TABLE_5_7.values())])
    for choice in dict.fromkeys(choice for _, choice in study.followed):
        cells = [
            pair(study.followed[E, choice].largest) if (E, choice) in study.followed else "--"
            for E in TABLE_5_7
        ]
        rows.append([choice, *cells])
    for mu in (0.0, 1e6):
        label = f"minimal model, mu = {mu / 1e6:g}" + (" MPa s" if mu else "")
        rows.append([label, *(pair(MINIMAL_MODEL[E, mu]) for E in TABLE_5_7)])
    return rows


def moved(study: Study) -> list[list[str]]:
    rows = [["", "over [s]", "x", "y", "z", "strain", "lost [s]"]]
    for case, m in study.moved.items():
        strain = m.strain / m.strain[0].min()
        rows.append(
            [
                case,
                f"{m.t[-1]:g}",
                *(f"{1e3 * x:.3g}" for x in m.largest),
                f"{strain.min():.2f} to {strain.max():.2f}",
                f"{m.lost:.1f}" if np.isfinite(m.lost) else "--",
            ]
        )
    return rows


def as_data(study: Study, claims: list[Claim]) -> dict[str, Any]:
    """Return all results as dictionaries, lists, texts, finite numbers or None, for JSON."""
    data = {
        "full": study.full,
        "spline": {
            name: getattr(study.spline, name) for name in ("missed", "missed_printed", "kink")
        },
        "variants": {
            name: {"psi_rad": float(m.angles[-1, 1]), "duration_s": float(m.t[-1])}
            for name, m in study.variants.items()
        },
        "table_5_7_rad": {
            "thesis": {f"{E:g}": list(x) for E, x in TABLE_5_7.items()},
            "ours": [
                {
                    "modulus_Pa": E,
                    "choice": choice,
                    "largest_rad": m.largest.tolist(),
                    "least_strain": float(m.strain.min()),
                    "bound": m.least,
                }
                for (E, choice), m in study.followed.items()
            ],
        },
        "manipulator": {
            case: {
                "duration_s": float(m.t[-1]),
                "largest_m": m.largest.tolist(),
                "lost_s": m.lost,
                "strain": [float(m.strain.min()), float(m.strain.max())],
            }
            for case, m in study.moved.items()
        },
        "claims": [claim._asdict() for claim in claims],
    }
    return finite(data)
