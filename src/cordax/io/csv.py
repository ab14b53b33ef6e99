"""Recordings and trajectories as text tables.

The first row names the columns: `time` [s], then quantities by the names a trajectory knows, in
SI units (`alpha_1`, `d_alpha_1`, `torque_2`, `tension_1`). A quantity without a column was not
observed; an empty cell or `nan` is a missing sample. Lines before it that begin with `#` may say
where the numbers come from, `# name = words`.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .._base.atomic_files import replacing
from .._base.checks import require, require_known
from ..mechanics.units import unit_of
from ..recordings.recording import Recording
from ..simulation.trajectory import Trajectory, as_columns

TIME = "time"


def read_csv(path: str | Path) -> Recording:
    """Read a recording. Raises `ValueError` naming file, row and column of what cannot be read."""
    path = Path(path)
    rows, about = _rows(path)
    require(len(rows) > 0, str(path), "an empty file", "a row of column names and rows of numbers")
    names = [name.strip() for name in rows[0][1]]
    where = f"{path}, row {rows[0][0]}"
    require(
        TIME in names,
        where,
        ", ".join(names),
        f"a column named '{TIME}' [s]: commas between columns, SI units, names alone",
    )
    require(all(names), where, f"columns {names}", "a name for every column")
    twice = sorted({n for n in names if names.count(n) > 1})
    require(not twice, where, f"{', '.join(twice)} more than once", "different column names")
    require(len(names) > 1, where, f"only '{TIME}'", "at least one more column")
    table = np.array([_numbers(path, n, row, names) for n, row in rows[1:]])
    require(len(table) > 1, str(path), f"{len(table)} rows of numbers", "at least two")
    columns = dict(zip(names, table.T, strict=True))
    t = columns.pop(TIME)
    bad = np.flatnonzero(~np.isfinite(t) | (np.diff(t, prepend=-np.inf) <= 0))
    if bad.size:
        first = int(bad[0])
        where = f"{path}, row {rows[first + 1][0]}, column {TIME}"
        before = f" after {t[first - 1]:.9g} s" if first else ""
        require(False, where, f"{t[first]:.9g} s{before}", "finite times that increase")
    return Recording(t, columns, about)


def _rows(path: Path) -> tuple[list[tuple[int, list[str]]], dict[str, str]]:
    """Rows that are not blank, with their numbers, and what the comments say."""
    rows, about = [], {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for n, row in enumerate(csv.reader(file), 1):
                if not rows and row and row[0].lstrip().startswith("#"):
                    name, sign, words = ",".join(row).lstrip("# ").partition("=")
                    about |= {name.strip(): words.strip()} if sign else {}
                elif any(map(str.strip, row)):
                    rows.append((n, row))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: got bytes that are no text, expected UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"{path}: got what is no table of commas ({error})") from error
    return rows, about


def _numbers(path: Path, number: int, row: list[str], names: list[str]) -> list[float]:
    where = f"{path}, row {number}"
    require(len(row) == len(names), where, f"{len(row)} cells", f"{len(names)}, one per column")
    values = []
    for name, cell in zip(names, row, strict=True):
        text = cell.strip()
        try:
            value = float(text) if text else math.nan
        except ValueError:
            value = math.inf
        ok = not math.isinf(value)
        require(ok, f"{where}, column {name}", repr(text), "a finite number, or nothing")
        values.append(value)
    return values


def write_csv(
    path: str | Path,
    data: Trajectory | Recording,
    names: Sequence[str] | None = None,
    *,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write a recording, or `names` of a trajectory (default: coordinates, velocities, inputs and
    outputs), so that `read_csv` gives the same numbers back. Outputs with components get one column
    each, counted from one: `tension_1`. `about`: words to write above the table, by name; those of
    a recording by default. The units of a trajectory stand there too. The file appears complete or
    not at all."""
    if about is None:
        about = data.about if isinstance(data, Recording) else {}
    available = data.names
    for name in names or ():
        require_known("names", name, available)
    given = data if isinstance(data, Trajectory) else data.values
    columns = as_columns({name: given[name] for name in (available if names is None else names)})
    if isinstance(data, Trajectory) and data.system is not None:
        known = {name: unit_of(data.system, name) for name in columns}
        listed = ", ".join(f"{name} {unit}" for name, unit in known.items() if unit is not None)
        about = dict(about) | ({"units": f"{TIME} s, {listed}"} if listed else {})
    path = Path(path)
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        for name, words in about.items():
            text = " ".join(f"{name} = {words}".split())
            file.write(f"# {text}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([TIME, *columns])
        for row in zip(*(x.tolist() for x in (np.asarray(data.t), *columns.values())), strict=True):
            writer.writerow(["" if math.isnan(x) else repr(x) for x in row])
    return path
