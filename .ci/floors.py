"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
lists = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in chain.from_iterable(lists):
    floor = re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement)
    if floor:
        print(f"{floor[1]}=={floor[2]}")
