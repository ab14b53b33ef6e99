"""`cordax reproduce`: a paper's experiments, its tables beside ours, a verdict for each claim."""

import json as json_format
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from .. import __version__
from ..papers.page import PAPERS, Done, write_report
from . import suggestion
from .arguments import OutputFolder, option, split_commas
from .doctor import facts
from .outputs import claim, require_folder

#: separate from the folder of `cordax run`, whose files have similar names
OUTPUT = Path("outputs/reproduce")
_STUDIES = (*(name.replace("_", "-") for name in PAPERS), "all")


def reproduce(
    study: Annotated[str, Positional, tyro.conf.arg(metavar="{" + ",".join(_STUDIES) + "}")],
    /,
    output: OutputFolder = OUTPUT,
    figures: bool = True,
    json: bool = False,
    overwrite: bool = False,
    full: bool = False,
    only: Annotated[str, option("STUDY,...", "all studies")] = "",
) -> int:
    """Repeat the experiments of a paper and judge its claims from the results.

    Prints the paper's tables beside ours with a verdict for each claim, and writes figures and
    films. A study takes one to six minutes, mostly for compilation; less the second time.
    `all` runs the five studies in about a quarter of an hour and writes one web page, report.html,
    with verdicts, tables, figures and versions. The page is updated after every study; a study that
    fails is reported there and does not stop the others.

    For example:
        cordax reproduce neck
        cordax reproduce all --only neck,rod --output outputs/papers

    Args:
        study: paper to reproduce, or all.
        output: folder for the figures, films and report.html.
        figures: write figures and films.
        json: print one JSON object instead of tables.
        overwrite: replace existing files.
        full: tensegrity only: all horizons of the thesis and its time steps in every variant; takes
            several minutes more.
        only: with all: studies to run, separated by commas.
    """
    if study not in _STUDIES and study not in PAPERS:
        raise ValueError(f"unknown study {study!r}{suggestion(study, _STUDIES)}")
    if full and study != "tensegrity":
        raise ValueError(f"--full is not supported for {study}, only for tensegrity")
    if study == "all":
        return _reproduce_all(output, figures, json, overwrite, only)
    if only:
        raise ValueError("--only is only supported for `cordax reproduce all`")
    options = {"full": True} if full else {}
    return _reproduce(study.replace("-", "_"), output, figures, json, overwrite, **options)


def _reproduce(
    name: str, output: Path, figures: bool, json: bool, overwrite: bool, **options
) -> int:
    if figures:
        require_folder(output)
        claim(_existing_figures(name, output), overwrite)
    done, data = _study(name, output, figures, **options)
    if json:
        files = [str(p) for p in done.files]
        header = {"cordax": __version__, "seconds": done.seconds, "files": files}
        print(json_format.dumps(header | data, indent=1, allow_nan=False))
        return 0
    print(done.tables)
    print(f"\ntotal time {done.seconds:.0f} s")
    for path in done.files:
        print(f"wrote {path}")
    return 0


def _reproduce_all(output: Path, figures: bool, json: bool, overwrite: bool, only: str) -> int:
    names = [name.replace("-", "_") for name in split_commas(only)] or list(PAPERS)
    for name in names:
        if name not in PAPERS:
            raise ValueError(f"--only: unknown study {name!r}{suggestion(name, PAPERS)}")
    report = output / "report.html"
    existing = [path for name in names for path in _existing_figures(name, output)]
    claim([report, *existing], overwrite)
    studies: list[Done] = []
    results: dict[str, dict] = {}
    for name in names:
        _print_progress(name)
        try:
            done, results[name] = _study(name, output, figures)
        except (ValueError, ArithmeticError, RuntimeError) as error:
            done = Done(name, failed=f"{type(error).__name__}: {str(error).splitlines()[0]}")
            results[name] = {"failed": done.failed}
        studies.append(done)
        write_report(report, studies, facts())
    failed = any(done.failed for done in studies)
    if json:
        summary = {"cordax": __version__, "report": str(report), "studies": results}
        print(json_format.dumps(summary, indent=1, allow_nan=False))
        return int(failed)
    for done in studies:
        counts = Counter(c.verdict for c in done.claims)
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        print(f"{done.name:12} {verdicts or 'failed: ' + done.failed}")
    print(f"wrote {report}")
    return int(failed)


def _existing_figures(name: str, output: Path) -> list[Path]:
    return sorted(output.glob(f"{name}_*.png")) + sorted(output.glob(f"{name}_*.gif"))


def _print_progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def _study(name: str, output: Path, figures: bool, **options) -> tuple[Done, dict]:
    """Run a study; returns its report and the same results as data for JSON."""
    part = lambda module: import_module(f"cordax.papers.{name}.{module}")
    begin = time.perf_counter()
    study = part("experiments").measure(_print_progress, **options)
    claims = part("claims").judge(study)
    files: list[Path] = []
    if figures:
        _print_progress("figures")
        files = part("figures").write(study, output)
    seconds, tables = time.perf_counter() - begin, part("tables")
    done = Done(name, tables.as_text(study, claims), claims, files, seconds)
    return done, tables.as_data(study, claims)
