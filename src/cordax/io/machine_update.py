"""Updates of values in a machine file that preserve its comments and the order of its keys."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from .._base.atomic_files import replacing
from ..parameters.parameter import collect
from .line_numbers import lines_of
from .machine_file import find_machine, read_machine


def number_keys(path: str | Path) -> list[str]:
    """Keys of a machine file whose value is one number, except those of its tables run, start and
    control."""
    text = Path(path).read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    lines = text.split("\n")
    found = []
    for key, number in lines_of(text).items():
        if key.split(".")[0] in ("run", "start", "control"):
            continue
        if _VALUE.match(lines[number - 1]) and key.rpartition(".")[2] in lines[number - 1]:
            found.append(key)
    return found


def key_is_parameter(
    path: str | Path, key: str, experiment, changes: Iterable[str] = (), code: bool = False
) -> bool:
    """Whether a new value of a key of a machine file changes the parameter of the same name and
    nothing else. The mass of a `box`, for example, also changes its inertia. `experiment` is that
    of the file with `changes`. Names that are not keys of the file count as parameters."""
    if key not in lines_of(Path(path).read_text(encoding="utf-8-sig").replace("\r\n", "\n")):
        return True
    place = collect([key], experiment).places[0]
    value = 1.01 * float(np.asarray(place.read(experiment)))
    try:
        other = find_machine(path, changes=[*changes, f"{key}={value!r}"], code=code).experiment
    except ValueError:  # the file does not allow the value
        return False
    mine = jax.tree.leaves(eqx.filter(experiment.system, eqx.is_array))
    yours = jax.tree.leaves(eqx.filter(other.system, eqx.is_array))
    if [x.shape for x in mine] != [x.shape for x in yours]:
        return False
    same = lambda a, b: np.allclose(a, b, rtol=1e-9, atol=0.0, equal_nan=True)
    return sum(not same(a, b) for a, b in zip(mine, yours, strict=True)) == 1


def write_updated(
    source: str | Path,
    target: str | Path,
    values: Mapping[str, float],
    *,
    note: str = "",
    code: bool = False,
) -> tuple[Path, list[str]]:
    """Write a copy of the machine file `source` to `target` with new `values` (SI units) of the
    parameters that are keys of the file. Returns the path and the names of parameters that could
    not be written, because the file has no such key or the machine derives them from other keys.
    Each value is checked by reading it back. `note`: a comment for the first line."""
    text = Path(source).read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    lines, places = text.split("\n"), lines_of(text)
    for name, value in values.items():
        number = places.get(name)
        if number is None:
            continue
        new = repr(float(f"{value:.9g}"))
        lines[number - 1] = _VALUE.sub(
            lambda m, new=new: f"{m[1]}{new}", lines[number - 1], count=1
        )
    target = Path(target)
    head = "# " + " ".join(note.split()) + "\n" if note else ""
    with replacing(target) as part:
        part.write_text(head + "\n".join(lines), encoding="utf-8")
    experiment = read_machine(target, code=code).experiment
    left = []
    for name, value in values.items():
        found = float(np.asarray(collect([name], experiment).places[0].read(experiment)))
        if not np.isclose(found, value, rtol=1e-8, atol=0.0):
            left.append(name)
    return target, left


#: a line with a key and its value, a number or a text with number and unit
_VALUE = re.compile(
    r"""^(\s*[\w."-]+\s*=\s*)("[^"]*\d[^"]*"|[+-]?[\d._]+(?:[eE][+-]?\d+)?)(?=\s*(?:#|$))"""
)
