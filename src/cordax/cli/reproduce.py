"""`cordax reproduce`: a paper's experiments, its tables beside ours, a verdict per claim."""

import json as json_format
import sys
import time
from importlib import import_module
from pathlib import Path

from .. import __version__
from .outputs import claim

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

    Takes about three minutes, much of it for compiling; less the second time. Reduced models are
    compared with fewer segments than the paper's.

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


def _reproduce(
    name: str, output: Path, figures: bool, json: bool, overwrite: bool, **options
) -> int:
    part = lambda module: import_module(f"cordax.reproduce.{name}.{module}")
    if figures:
        claim(
            sorted(output.glob(f"{name}_*.png")) + sorted(output.glob(f"{name}_*.gif")), overwrite
        )
    begin = time.perf_counter()
    say = lambda text: print(f"... {text}", file=sys.stderr, flush=True)
    study = part("experiments").measure(say, **options)
    claims = part("claims").judge(study)
    files: list[Path] = []
    if figures:
        say("figures")
        files = part("figures").write(study, output)
    seconds = time.perf_counter() - begin
    tables = part("tables")
    if json:
        about = {"cordax": __version__, "seconds": seconds, "files": [str(p) for p in files]}
        print(json_format.dumps(about | tables.as_data(study, claims), indent=1, allow_nan=False))
        return 0
    print(tables.as_text(study, claims))
    print(f"\n{seconds:.0f} s in all")
    for path in files:
        print(f"wrote {path}")
    return 0
