"""`cordax reproduce`: a paper's experiments, its tables beside ours, a verdict per claim."""

import json as json_format
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from .. import __version__
from .._base.checks import require_known
from ..papers.page import PAPERS, Done, write_report
from .doctor import facts
from .outputs import claim, require_folder

#: not the folder of `cordax run`: its files have similar names
OUTPUT = Path("outputs/reproduce")


def reproduce_neck(
    output: Path = OUTPUT, figures: bool = True, json: bool = False, overwrite: bool = False
) -> int:
    """Repeat the neck paper's experiments and judge its claims from what is measured.

    Takes a minute or two, most of it for compiling sixteen schemes; less the second time.

    Args:
        output: folder for the figures.
        figures: write the figures.
        json: print one JSON object instead of tables.
        overwrite: replace files that exist already.
    """
    return _reproduce("neck", output, figures, json, overwrite)


def reproduce_cable_robot(
    output: Path = OUTPUT, figures: bool = True, json: bool = False, overwrite: bool = False
) -> int:
    """Repeat the cable-robot paper's experiments and judge its claims from what is measured.

    Takes three to five minutes, most of it for compiling; less the second time.

    Args:
        output: folder for the figures and films.
        figures: write the figures and films.
        json: print one JSON object instead of tables.
        overwrite: replace files that exist already.
    """
    return _reproduce("cable_robot", output, figures, json, overwrite)


def reproduce_rod(
    output: Path = OUTPUT, figures: bool = True, json: bool = False, overwrite: bool = False
) -> int:
    """Repeat the rod paper's experiments and judge its claims from what is measured.

    Takes two to three minutes, half of it for compiling; less the second time.

    Args:
        output: folder for the figures and the film.
        figures: write the figures and the film.
        json: print one JSON object instead of tables.
        overwrite: replace files that exist already.
    """
    return _reproduce("rod", output, figures, json, overwrite)


def reproduce_rope_robot(
    output: Path = OUTPUT, figures: bool = True, json: bool = False, overwrite: bool = False
) -> int:
    """Repeat the rope-robot paper's experiments and judge its claims from what is measured.

    Takes about three minutes, much of it for compiling; less the second time.

    Args:
        output: folder for the figures and the film.
        figures: write the figures and the film.
        json: print one JSON object instead of tables.
        overwrite: replace files that exist already.
    """
    return _reproduce("rope_robot", output, figures, json, overwrite)


def reproduce_tensegrity(
    output: Path = OUTPUT,
    figures: bool = True,
    json: bool = False,
    overwrite: bool = False,
    full: bool = False,
) -> int:
    """Repeat the tensegrity thesis' experiments and judge its claims from what is measured.

    Takes about six minutes of one core, half of it for compiling; less the second time.

    Args:
        output: folder for the figures and films.
        figures: write the figures and films.
        json: print one JSON object instead of tables.
        overwrite: replace files that exist already.
        full: all horizons of the thesis, and its steps where variants are compared: more minutes.
    """
    return _reproduce("tensegrity", output, figures, json, overwrite, full=full)


def reproduce_all(
    output: Path = OUTPUT,
    figures: bool = True,
    json: bool = False,
    overwrite: bool = False,
    only: str | None = None,
) -> int:
    """Repeat all five studies and write one web page: claims with verdicts, tables with the papers'
    numbers beside ours, figures and films, and what it ran on.

    Takes about a quarter of an hour; less the second time. The page is written after every study,
    so that what is done is not lost; a study that fails is reported there and the others go on.

    Args:
        output: folder for report.html and the figures.
        figures: make the figures and films.
        json: print one JSON object with all studies instead of a line for each.
        overwrite: replace files that exist already.
        only: some of neck, cable_robot, rod, rope_robot, tensegrity, with commas between.
    """
    names = list(PAPERS) if only is None else [n.strip().replace("-", "_") for n in only.split(",")]
    for name in names:
        require_known("only", name, PAPERS)
    report = output / "report.html"
    claim([report, *(path for name in names for path in _figures_of(name, output))], overwrite)
    studies: list[Done] = []
    found: dict[str, dict] = {}
    for name in names:
        print(f"... {name}", file=sys.stderr, flush=True)
        try:
            done, found[name] = _study(name, output, figures)
        except (ValueError, ArithmeticError, RuntimeError) as error:
            done = Done(name, failed=f"{type(error).__name__}: {str(error).splitlines()[0]}")
            found[name] = {"failed": done.failed}
        studies.append(done)
        write_report(report, studies, facts())
    failed = any(done.failed for done in studies)
    if json:
        about = {"cordax": __version__, "report": str(report), "studies": found}
        print(json_format.dumps(about, indent=1, allow_nan=False))
        return int(failed)
    for done in studies:
        counts = Counter(c.verdict for c in done.claims)
        told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        print(f"{done.name:12} {told or 'failed: ' + done.failed}")
    print(f"wrote {report}")
    return int(failed)


def _figures_of(name: str, output: Path) -> list[Path]:
    return sorted(output.glob(f"{name}_*.png")) + sorted(output.glob(f"{name}_*.gif"))


def _say(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def _study(name: str, output: Path, figures: bool, **options) -> tuple[Done, dict]:
    """A study for people, and the same as data."""
    part = lambda module: import_module(f"cordax.papers.{name}.{module}")
    begin = time.perf_counter()
    study = part("experiments").measure(_say, **options)
    claims = part("claims").judge(study)
    files: list[Path] = []
    if figures:
        _say("figures")
        files = part("figures").write(study, output)
    seconds, tables = time.perf_counter() - begin, part("tables")
    done = Done(name, tables.as_text(study, claims), claims, files, seconds)
    return done, tables.as_data(study, claims)


def _reproduce(
    name: str, output: Path, figures: bool, json: bool, overwrite: bool, **options
) -> int:
    if figures:
        require_folder(output)
        claim(_figures_of(name, output), overwrite)
    done, data = _study(name, output, figures, **options)
    if json:
        files = [str(p) for p in done.files]
        about = {"cordax": __version__, "seconds": done.seconds, "files": files}
        print(json_format.dumps(about | data, indent=1, allow_nan=False))
        return 0
    print(done.tables)
    print(f"\n{done.seconds:.0f} s in all")
    for path in done.files:
        print(f"wrote {path}")
    return 0
