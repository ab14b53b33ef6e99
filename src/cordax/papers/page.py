"""Report of all studies as one web page: papers, verdicts, tables, figures and the environment."""

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .._base.atomic_files import replacing
from .report import Claim


class Paper(NamedTuple):
    """Bibliographic data of a paper; `doi` if it is known."""

    title: str
    authors: str
    published: str
    doi: str | None = None


#: papers by the name of the study
PAPERS = {
    "neck": Paper(
        "Comparison of explicit and implicit numerical integrations for a tendon-driven robot",
        "N. J. S. Testard, C. Chevallereau, P. Wenger",
        "CableCon 2023",
        "10.1007/978-3-031-32322-5_19",
    ),
    "cable_robot": Paper(
        "Using differential-algebraic equations and natural coordinates for modelling and "
        "simulating cable-driven parallel robots",
        "G. Piva, D. Richiedei, A. Trevisani",
        "2024",
    ),
    "rod": Paper(
        "Symplectic integration for multivariate dynamic spline-based model of deformable linear "
        "objects",
        "A. Khalifa, G. Palli",
        "Journal of Computational and Nonlinear Dynamics 17(1), 2022",
        "10.1115/1.4052571",
    ),
    "rope_robot": Paper(
        "Application of the rigid finite element method to the simulation of cable-driven parallel "
        "robots",
        "P. Tempel, A. Schmidt, B. Haasdonk, A. Pott",
        "CableCon 2017",
        "10.1007/978-3-319-60867-9_23",
    ),
    "tensegrity": Paper(
        "Positioning of tensegrity structures", "J. Lieskovsky", "master's thesis, 2022"
    ),
}


class Done(NamedTuple):
    """Result of one study: its tables as text, with the values of the paper beside those of cordax,
    claims, figures, films and computing time [s]; or the reason for which it `failed`."""

    name: str
    tables: str = ""
    claims: Sequence[Claim] = ()
    files: Sequence[Path] = ()
    seconds: float = 0.0
    failed: str = ""


_COLOURS = {
    "reproduces": "#009E73",
    "in part": "#E69F00",
    "only with these choices": "#E69F00",
    "does not reproduce": "#D55E00",
    "cannot be judged": "#777777",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; }
th, td { border-bottom: 1px solid #ddd; }
pre { overflow-x: auto; background: #f6f6f6; padding: 0.8rem; font-size: 12px; line-height: 1.35; }
img { max-width: 100%; margin: 0.5rem 0; }
figcaption { color: #666; font-size: 13px; }
.verdict { font-weight: 600; white-space: nowrap; }
"""


def write_report(path: Path, studies: Sequence[Done], environment: Mapping[str, object]) -> Path:
    """Write the report as one self-contained `.html` file; return its path."""
    parts = [_head(studies), *(_study(done) for done in studies), _environment(environment)]
    page = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>cordax reproduce all</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _head(studies: Sequence[Done]) -> str:
    rows = []
    for done in studies:
        counts = Counter(claim.verdict for claim in done.claims)
        summary = ", ".join(f"{n} {_verdict(v)}" for v, n in counts.items())
        summary = summary or f"<b>failed:</b> {html.escape(done.failed)}"
        title = html.escape(PAPERS[done.name].title)
        rows.append(f'<tr><td><a href="#{done.name}">{title}</a></td><td>{summary}</td></tr>')
    return (
        "<h1>Five papers, repeated</h1>\n<p>Each claim of a paper is judged from what was measured "
        "here. In tables the paper's numbers stand beside ours. Computing times are judged only "
        "where every one of several rounds says the same; otherwise they cannot be.</p>\n"
        f"<table><tr><th>paper</th><th>claims</th></tr>{''.join(rows)}</table>"
    )


def _study(done: Done) -> str:
    paper = PAPERS[done.name]
    where = f"{paper.authors}. {paper.published}."
    link = ""
    if paper.doi is not None:
        link = f' DOI <a href="https://doi.org/{paper.doi}">{paper.doi}</a>.'
    head = (
        f'<h2 id="{done.name}">{html.escape(paper.title)}</h2>\n<p>{html.escape(where)}{link} '
        f"<code>cordax reproduce {done.name.replace('_', '-')}</code>, {done.seconds:.0f} s.</p>"
    )
    if done.failed:
        return f"{head}\n<p><b>The study failed:</b> {html.escape(done.failed)}</p>"
    rows = "".join(
        f'<tr><td class="verdict">{_verdict(c.verdict)}</td><td>{html.escape(c.claim)}</td>'
        f"<td>{html.escape(c.measured)}</td><td>{html.escape(c.why)}</td></tr>"
        for c in done.claims
    )
    claims = (
        "<table><tr><th>verdict</th><th>the paper says</th><th>measured here</th><th>because</th>"
        f"</tr>{rows}</table>"
    )
    text = done.tables.partition("\nClaims of the ")[0]  # the page lists claims above
    tables = f"<h3>Tables</h3>\n<pre>{html.escape(text.strip())}</pre>"
    figures = "\n".join(_figure(path) for path in done.files)
    return "\n".join([head, claims, tables, f"<h3>Figures</h3>\n{figures}" if figures else ""])


def _verdict(verdict: str) -> str:
    return f'<span style="color:{_COLOURS[verdict]}">{html.escape(verdict)}</span>'


def _figure(path: Path) -> str:
    kind = {".png": "image/png", ".gif": "image/gif", ".svg": "image/svg+xml"}[path.suffix]
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    name = path.stem.replace("_", " ")
    image = f'<img src="data:{kind};base64,{data}" alt="{name}">'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"


def _environment(facts: Mapping[str, object]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>"
        for k, v in facts.items()
    )
    return f"<h2>What it ran on</h2>\n<table>{rows}</table>"
