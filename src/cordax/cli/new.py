"""`cordax new`: a machine file to start from."""

from typing import Annotated

import tyro
from tyro.conf import Positional

from ..io import starting_file


def new(kind: Annotated[str, Positional, tyro.conf.arg(metavar="KIND")], /) -> int:
    """Print a commented machine file that runs as it is.

    For example:
        cordax new cable_robot > robot.toml
        cordax run robot.toml

    Args:
        kind: a machine kind or an example machine; `cordax list` lists both.
    """
    print(starting_file(kind), end="")
    return 0
