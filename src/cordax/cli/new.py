"""`cordax new`: a machine file to begin with."""

from tyro.conf import Positional

from ..io import starting_file


def new(kind: Positional[str], /) -> int:
    """Print a machine file with comments that runs as it is.

    For example:
        cordax new cable_robot > robot.toml
        cordax run robot.toml

    Args:
        kind: a kind of machine or an example, see `cordax list`.
    """
    print(starting_file(kind), end="")
    return 0
