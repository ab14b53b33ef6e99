"""How long `cordax run` takes from the prompt to its last file, figures and film included, with
every shipped machine: the first call, whose programs are not compiled yet, and the next one.
`python benchmarks/first_calls.py [NAME ...]` prints one JSON object, seconds that pass; on a
machine with other work they mean little. Modules are compiled to bytecode before, as an
installation does."""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cordax
from cordax.io import EXAMPLES

WORDS = "from cordax.cli import main; raise SystemExit(main())"


def run(name: str, folder: str) -> dict:
    """One call, with programs kept in the folder."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WORDS, "run", name, "--json", "--overwrite", "--output", folder],
        env=_environment() | {"XDG_CACHE_HOME": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = round(time.perf_counter() - begin, 2)
    if done.returncode:
        return {"seconds": seconds, "failed": done.stderr.strip().splitlines()[-1:]}
    files = [Path(file).suffix for file in json.loads(done.stdout)["files"]]
    return {"seconds": seconds, "files": len(files)}


def _environment() -> dict[str, str]:
    return {name: x for name, x in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=sorted(EXAMPLES))
    compileall.compile_dir(Path(cordax.__path__[0]), quiet=1)
    found = {}
    for name in parser.parse_args().names:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = {"first": run(name, folder), "next": run(name, folder)}
        print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps({"cores": os.cpu_count(), "machines": found}, indent=1))


if __name__ == "__main__":
    main()
