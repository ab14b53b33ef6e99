"""`cordax reproduce neck`: the paper's experiments, its tables beside ours, a verdict per claim."""

import json as json_format
import sys
import time
from pathlib import Path

from .. import __version__
from ..reproduce.neck.claims import judge
from ..reproduce.neck.experiments import measure
from ..reproduce.neck.tables import as_data, as_text


def reproduce_neck(output: Path = Path("outputs"), figures: bool = True, json: bool = False) -> int:
    """Repeat the neck paper's experiments and judge its claims from what is measured.

    Takes a minute or two, most of it for compiling sixteen schemes; less the second time.

    Args:
        output: folder for the figures.
        figures: write the figures.
        json: print one JSON object instead of tables.
    """
    begin = time.perf_counter()
    say = lambda text: print(f"... {text}", file=sys.stderr, flush=True)
    study = measure(say)
    claims = judge(study)
    files: list[Path] = []
    if figures:
        from ..reproduce.neck.figures import write

        say("figures")
        files = write(study, output)
    seconds = time.perf_counter() - begin
    if json:
        about = {"cordax": __version__, "seconds": seconds, "files": [str(p) for p in files]}
        print(json_format.dumps(about | as_data(study, claims), indent=1, allow_nan=False))
        return 0
    print(as_text(study, claims))
    print(f"\n{seconds:.0f} s in all")
    for path in files:
        print(f"wrote {path}")
    return 0
