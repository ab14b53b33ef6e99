"""Files to begin with."""

from .machine_file import example_path


def starting_file(kind: str) -> str:
    """The text of a machine file of a kind, or of an example, that runs as it is."""
    return example_path(kind).read_text(encoding="utf-8")
