"""Functions for all studies: claims with verdicts, tables as text, numbers as JSON."""

import math
import textwrap
from typing import Any, Literal, NamedTuple

Verdict = Literal[
    "reproduces",
    "in part",
    "only with these choices",
    "does not reproduce",
    "cannot be judged",
]


class Claim(NamedTuple):
    """A claim of the paper, the measured result, the verdict and the reason for it."""

    claim: str
    measured: str
    verdict: Verdict
    why: str


def section(title: str, rows: list[list[str]]) -> str:
    """Format a table as text. The first row contains the column heads, the first column the row
    heads."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["", *textwrap.wrap(title, 98)]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join([*lines, ""])


def claim_text(claim: Claim) -> str:
    wrap = lambda label, text: textwrap.fill(
        text, 98, initial_indent=f"      {label} ", subsequent_indent=" " * (7 + len(label))
    )
    lines = [f"  {claim.verdict.upper()}: {claim.claim}", wrap("measured:", claim.measured)]
    return "\n".join([*lines, *([wrap("because:", claim.why)] if claim.why else [])])


def finite(x: Any) -> Any:
    """Replace infinity and NaN, which JSON does not support, by None, also in nested data."""
    if isinstance(x, dict):
        return {key: finite(value) for key, value in x.items()}
    if isinstance(x, list):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
