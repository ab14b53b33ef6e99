"""Random bad input over the public interface: `python benchmarks/fuzz.py --count 10000`.

Writes how often each outcome came up as JSON, and the calls behind bad ones."""

import argparse
import collections
import json
import sys
import tempfile
import warnings
from pathlib import Path

import cordax

cordax.enable_x64()
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.fuzzing import GOOD_OUTCOMES, Cases, outcome  # noqa: E402


def main(count: int, seed: int, show: int) -> dict:
    warnings.simplefilter("ignore")
    found, bad = collections.Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(seed, Path(folder))
        for _ in range(count):
            case = cases.draw()
            what, said = outcome(case)
            found[what] += 1
            if what not in GOOD_OUTCOMES and len(bad) < show:
                bad.setdefault(f"{what}: {case.label}", said[:300])
    return {"count": count, "seed": seed, "outcomes": dict(found), "bad": bad}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=200, help="bad outcomes to write out")
    arguments = parser.parse_args()
    result = main(arguments.count, arguments.seed, arguments.show)
    json.dump(result, sys.stdout, indent=2)
    print()
