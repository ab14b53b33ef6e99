"""Templates of machine files."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import equinox as eqx
import numpy as np

from .._base.checks import require
from .machine_file import STARTING, example_path, examples, read_machine
from .registry import arguments, kinds, machine_kinds

_WIDTH = 100


def starting_file(kind: str) -> str:
    """Return the text of a machine file for a kind of machine or an example. The file runs without
    changes; comments at its end list further keys."""
    word = kind.lower().replace("-", "_")
    known = machine_kinds()
    if word in known and word not in (*examples(), *STARTING):
        return _plain(word, known[word])
    path = example_path(kind)
    return path.read_text(encoding="utf-8") + _more(path)


def _plain(kind: str, make: Callable) -> str:
    """Text of a file for a machine whose arguments all have defaults."""
    needed = [a.name for a in arguments(make).values() if a.required]
    expected = f"an example of `cordax list`: {kind} has no starting file, since it needs "
    require(not needed, "kind", kind, expected + ", ".join(needed))
    about = textwrap.wrap((make.__doc__ or kind).split("\n\n")[0], _WIDTH - 2)
    lines = [*(f"# {line}" for line in about), f'kind = "{kind}"', "", "[run]", "duration = 1.0"]
    text = "\n".join(lines) + "\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "machine.toml"
        path.write_text(text, encoding="utf-8")
        return text + _more(path)


def _more(path: Path) -> str:
    """Comments that list, table by table, the keys that a file omits, with their defaults."""
    seen: list[tuple[str, Callable, dict[str, Any]]] = []
    read_machine(path, seen=seen)
    lines, described = [], set()
    for place, make, given in seen:
        left = [a for a in arguments(make).values() if not a.required and a.name not in given]
        if not left or make in described:
            continue
        described.add(make)
        head = f"# [{place}]" if place else "# top"
        for argument in left:
            word = f"{argument.name} = {_toml(argument.default, argument.bases, argument.name)}"
            if len(head) + len(word) + 2 > _WIDTH:
                lines.append(head)
                head = "#    "
            head += f" {word};" if head != "#" else word
        lines.append(head.rstrip(";"))
    return "\n".join(["", "# More keys, with their defaults:", *lines, ""]) if lines else ""


def _toml(x: Any, bases: tuple[type, ...], place: str) -> str:
    """Format a default value as TOML text."""
    if x is None:
        return "(none)"
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, str):
        return f'"{x}"'
    if isinstance(x, eqx.Module):
        named = [name for name, make in kinds(bases, place).items() if make is type(x)]
        return f'"{named[0]}"' if named else type(x).__name__
    if isinstance(x, tuple | list):
        return "[" + ", ".join(_toml(y, bases, place) for y in x) + "]"
    return f"{x:g}" if isinstance(x, float | int | np.number) else str(x)
