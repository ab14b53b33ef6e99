"""Recordings and trajectories as text tables.

cordax writes a row of column names and rows of numbers. The columns are `time` [s] and quantities
in SI units with the names that they have in a trajectory: `alpha_1`, `d_alpha_1`, `torque_2`,
`tension_1`. A quantity without a column was not measured; an empty cell or `nan` is a missing
sample. Lines above the table that begin with `#` contain notes, `# name = text`. `read_csv` also
reads tables of other programs.
"""

import csv
import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from .._base.atomic_files import replacing
from .._base.checks import require, require_known
from ..mechanics.units import unit_of
from ..recordings.headers import TIME, interpretation, is_unit, read_headers
from ..recordings.recording import Recording
from ..simulation.trajectory import Trajectory, as_columns

#: non-ASCII characters that Windows programs (code page 1252) write in headers
_SIGNS = "°µ²³·"
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def read_csv(path: str | Path, *, report: Callable[[str], object] | None = print) -> Recording:
    """Read a recording from a text table of cordax or of another program.

    - Columns are separated by commas, semicolons or tabs. With semicolons or tabs, numbers may have
      decimal commas.
    - The time column is named `time`, `Time`, `t` or `timestamp`. It contains numbers, or dates
      such as `2024-05-01 12:00:00.25`, which are counted in seconds from the first one.
    - Headers may contain units: `angle [deg]`, `Time (ms)`, `x / mm`. Units may also be in a
      separate row below the headers. Values are converted to SI units [s, m, kg, rad]. Values with
      an unknown unit are not changed.
    - Columns without any number, such as texts, are omitted.

    `report` is called with one line that describes unusual separators, interpreted names and units,
    and omitted columns. The same text is stored in `recording.about["interpretation"]`.

    Raises `ValueError` with file, row and column of a cell that cannot be read."""
    path = Path(path)
    rows, notes, delimiter = _rows(path)
    require(len(rows) > 0, str(path), "an empty file", "a row of column names and rows of numbers")
    headers = [header.strip() for header in rows[0][1]]
    where = f"{path}, row {rows[0][0]}"
    while (
        len(headers) > 1 and not headers[-1] and all(_ends_empty(r, headers) for _, r in rows[1:])
    ):
        headers = headers[:-1]
        rows = [(n, row[: len(headers)]) for n, row in rows]
    require(all(headers), where, f"columns {headers}", "a name for every column")
    units, first = None, 1
    if len(rows) > 1 and _is_unit_row(rows[1][1], len(headers)):
        units, first = rows[1][1], 2
    columns = read_headers(where, headers, units)
    names = [column.name for column in columns]
    require(len(names) > 1, where, f"only '{headers[0]}'", "at least one more column")
    body = rows[first:]
    for n, row in body:
        width = len(names)
        require(
            len(row) == width, f"{path}, row {n}", f"{len(row)} cells", f"{width}, one per column"
        )
    require(len(body) > 1, str(path), f"{len(body)} rows of numbers", "at least two")
    comma = delimiter != "," and any("," in cell for _, row in body for cell in row)
    t, values, empty = np.empty(0), {}, []
    for i, column in enumerate(columns):
        cells = [row[i].strip() for _, row in body]
        if column.name == TIME:
            t = column.factor * _times(path, column.header, body, cells, comma)
        elif any(cells) and not any(map(_has_number, cells)):
            empty.append(column.header)
        else:
            numbers = [
                _number(path, column.header, n, x, comma)
                for (n, _), x in zip(body, cells, strict=True)
            ]
            values[column.name] = column.factor * np.array(numbers)
    bad = np.flatnonzero(~np.isfinite(t) | (np.diff(t, prepend=-np.inf) <= 0))
    if bad.size:
        row = int(bad[0])
        place = f"{path}, row {body[row][0]}, column {TIME}"
        before = f" after {t[row - 1]:.9g} s" if row else ""
        require(False, place, f"{t[row]:.9g} s{before}", "finite times that increase")
    require(
        len(values) > 0, where, ", ".join(headers), "at least one column of numbers beside time"
    )
    columns = [c for c in columns if c.header not in empty]
    read = interpretation(columns)
    lines = [f"{_DELIMITERS[delimiter]} between columns"] if delimiter != "," else []
    lines += ["decimal commas"] if comma else []
    lines += [read["interpretation"]] if read else []
    lines += [f"{header!r} has no numbers and is left out" for header in empty]
    if lines:
        read["interpretation"] = "; ".join(lines)
        if report is not None:
            report(f"{path}: {read['interpretation']}")
    return Recording(t, values, notes | read)


def _ends_empty(row: list[str], headers: list[str]) -> bool:
    return len(row) < len(headers) or (len(row) == len(headers) and not row[-1].strip())


def _is_unit_row(row: list[str], width: int) -> bool:
    """Whether all cells are units in brackets, known units or empty, and at least one is a
    unit."""
    cells = [cell.strip() for cell in row]
    bracketed = lambda cell: re.fullmatch(r"\[[^\[\]]*\]|\([^()]*\)", cell) is not None
    units = [bracketed(cell) or is_unit(cell) for cell in cells if cell and cell != "-"]
    return len(row) == width and len(units) > 0 and all(units)


def _rows(path: Path) -> tuple[list[tuple[int, list[str]]], dict[str, str], str]:
    """Split a file into rows that are not blank, with their line numbers; return also the notes
    above the table and the delimiter."""
    lines, notes = _text(path).splitlines(keepends=True), {}
    first = 0
    for line in lines:
        if line.strip() and not line.lstrip().startswith(("#", '"#')):
            break
        name, sign, text = line.strip().strip('"').lstrip("# ").partition("=")
        notes |= {name.strip(): text.strip()} if sign else {}
        first += 1
    header = re.sub(r'"[^"]*"', "", lines[first]) if first < len(lines) else ""
    delimiter = ";" if ";" in header else "\t" if "\t" in header and "," not in header else ","
    rows = []
    try:
        for n, row in enumerate(csv.reader(lines[first:], delimiter=delimiter), first + 1):
            if any(map(str.strip, row)):
                rows.append((n, row))
    except csv.Error as error:
        raise ValueError(f"{path}: got {error}, expected a table of text") from error
    return rows, notes, delimiter


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = data.decode("latin-1")
        if set(re.findall(r"[^\x00-\x7f]", text)) <= set(_SIGNS):
            return text
        raise ValueError(f"{path}: got bytes that are not text, expected UTF-8") from error


def _has_number(cell: str) -> bool:
    return _parsed(cell, True) is not None


def _parsed(cell: str, comma: bool) -> float | None:
    """Parse the number in a cell: NaN if the cell is empty, None if it contains something else."""
    if not cell:
        return math.nan
    if comma and "." in cell and "," in cell:  # the number has a thousands separator
        return None
    try:
        return float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None


def _number(path: Path, header: str, row: int, cell: str, comma: bool) -> float:
    value = _parsed(cell, comma)
    ok = value is not None and not math.isinf(value)
    require(ok, f"{path}, row {row}, column {header}", repr(cell), "a finite number, or nothing")
    assert value is not None
    return value


def _times(path: Path, header: str, body, cells: list[str], comma: bool) -> np.ndarray:
    """Parse the time column: numbers in the unit of the column, or dates, which are converted to
    seconds from the first one."""
    if _parsed(cells[0], comma) is not None:
        numbers = [
            _number(path, header, n, x, comma) for (n, _), x in zip(body, cells, strict=True)
        ]
        return np.array(numbers)
    dates = []
    for (n, _), cell in zip(body, cells, strict=True):
        try:
            dates.append(datetime.datetime.fromisoformat(cell.replace(",", ".")))
        except ValueError:
            place = f"{path}, row {n}, column {header}"
            require(False, place, repr(cell), "a number, or a date such as 2024-05-01 12:00:00.25")
    return np.array([(date - dates[0]).total_seconds() for date in dates])


def write_csv(
    path: str | Path,
    data: Trajectory | Recording,
    names: Sequence[str] | None = None,
    *,
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write a recording or a trajectory as a text table from which `read_csv` reads the same
    numbers.

    - `names`: the quantities to write; by default all of a recording, or coordinates, velocities,
      inputs and outputs of a trajectory. Each component of an output has a column, counted from
      one: `tension_1`;
    - `about`: notes to write above the table, by name; by default those of the recording. The units
      of a trajectory are added to them.

    The file is written completely or not at all. Returns its path."""
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
