"""Result of a sweep."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from .._base.atomic_files import replacing
from .._base.checks import require, require_known
from .._base.lazy_imports import of_extra
from ..parameters.parameter import varied
from ..simulation.experiment import Experiment
from ..simulation.trajectory import as_columns
from . import shard_files
from .measures import Envelope, joined


class Sweep:
    """Result of a sweep of n variants.

    - `table`: values of the varied parameters by name, (n,) each.
    - `measures`: measures by name, (n, ...) each; NaN where a variant failed or is not finished.
    - `result`: texts (n,): "successful" or the reason of failure, empty where not finished.
    - `failure_time` (n,) [s].
    - `envelope`: `Envelope`s of quantities over time, by name.
    - `base`: the experiment that was varied, None if it is not known.
    - `units`: units of parameters and measures by name, where they are known."""

    def __init__(
        self,
        table: dict[str, np.ndarray],
        measures: dict[str, np.ndarray],
        result: np.ndarray,
        failure_time: np.ndarray,
        envelope: dict[str, Envelope | None],
        base: Experiment | None = None,
        units: dict[str, str] | None = None,
    ):
        self.table, self.measures, self.result = table, measures, result
        self.failure_time, self.envelope, self.base = failure_time, envelope, base
        self.units = units or {}

    def with_unit(self, name: str) -> str:
        """Name of a parameter or measure with its unit, such as "tendon.stiffness [N/m]"."""
        return f"{name} [{self.units[name]}]" if name in self.units else name

    @property
    def size(self) -> int:
        return len(self.result)

    @property
    def finished(self) -> np.ndarray:
        """Whether each variant has been simulated, successfully or not, (n,)."""
        return self.result != ""

    @property
    def succeeded(self) -> np.ndarray:
        return self.result == "successful"

    def worst(self, measure: str, count: int = 5, *, smallest: bool = False) -> list[dict]:
        """Variants with the largest values of a measure (`smallest`: the smallest), worst first.

        Each is a dictionary as returned by `row`. A measure with several components is represented
        by its largest (`smallest`: smallest) one."""
        require_known("measure", measure, self.measures)
        values = self.measures[measure].reshape(self.size, -1)
        values = values.min(axis=1) if smallest else values.max(axis=1)
        rows = np.flatnonzero(np.isfinite(values))
        rows = rows[np.argsort(values[rows] if smallest else -values[rows], kind="stable")]
        return [self.row(int(i)) for i in rows[:count]]

    def row(self, i: int) -> dict[str, Any]:
        """Data of variant `i`: its row, parameter values, measures and result."""
        columns = {**self.table, **self.measures, "result": self.result}
        plain = lambda x: x.item() if np.ndim(x) == 0 else np.asarray(x)
        return {"row": i, **{name: plain(x[i]) for name, x in columns.items()}}

    def experiment(self, i: int) -> Experiment:
        """Experiment of variant `i`, which can be simulated again."""
        base = self.base
        require(base is not None, "sweep", "one that was loaded", "Sweep.load(folder, experiment)")
        return varied(base, {name: x[i] for name, x in self.table.items()})  # pyright: ignore

    def columns(self) -> dict[str, np.ndarray]:
        """All data as columns of one table, (n,) each; components are counted from one."""
        numbers = as_columns({**self.table, **self.measures})
        return numbers | {"result": self.result, "failure_time": self.failure_time}

    def to_pandas(self):
        """Convert to a `pandas.DataFrame` with one row for each variant and units in its
        `attrs["units"]` (needs the `data` extra)."""
        pd = of_extra("pandas", "data")

        table = pd.DataFrame(self.columns(), index=pd.RangeIndex(self.size, name="row"))
        table.attrs["units"] = dict(self.units)
        return table

    def to_csv(self, path: str | Path) -> Path:
        """Write a CSV file with one row for each variant; returns its path."""
        path, columns = Path(path), self.columns()
        with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", *columns])
            for i, row in enumerate(zip(*(x.tolist() for x in columns.values()), strict=True)):
                writer.writerow([i, *row])
        return path

    def summary(self) -> str:
        """Text summary: numbers of finished and failed variants, ranges of the varied parameters
        and of the measures."""
        good, done = int(self.succeeded.sum()), int(self.finished.sum())
        lines = [f"{self.size} variants: {done} finished, {done - good} of them failed"]
        for word in np.unique(self.result[self.finished & ~self.succeeded]):
            members = np.flatnonzero(self.result == word)
            lines.append(f"  {word.replace('_', ' ')}: {members.size}, such as row {members[0]}")
        width = max(len(self.with_unit(name)) for name in (*self.table, *self.measures))
        for name, x in self.table.items():
            ends = f"{np.min(x):.6g} to {np.max(x):.6g}"
            lines.append(f"  {self.with_unit(name):{width}}  {ends}, varied")
        for name, x in self.measures.items():
            x = x[self.succeeded]
            if x.size:
                low, middle, high = np.quantile(x, [0.0, 0.5, 1.0])
                ends = f"{low:.6g} to {high:.6g}"
                lines.append(f"  {self.with_unit(name):{width}}  {ends}, median {middle:.6g}")
        return "\n".join(lines)

    @staticmethod
    def load(folder: str | Path, experiment: Experiment | None = None) -> "Sweep":
        """Read the finished part of a sweep from its folder.

        If its `experiment` is given, single variants can be simulated again."""
        folder = Path(folder)
        page, table = shard_files.read_page(folder), shard_files.read_table(folder)
        count = -(-page["rows"] // page["shard"])
        size = page["shard"]
        part = lambda i: {name: x[i * size : (i + 1) * size] for name, x in table.items()}
        origin = lambda i: shard_files.origin_of(page, i, part(i))
        found = [shard_files.load_shard(folder, i, origin(i)) for i in range(count)]
        return together(table, page["shard"], found, experiment, page.get("units"))


def together(
    table,
    shard: int,
    found: list[dict | None],
    base: Experiment | None,
    units: dict[str, str] | None = None,
) -> Sweep:
    """Combine the results of all shards; None stands for a shard that is not finished."""
    rows = len(next(iter(table.values())))
    known = next((x for x in found if x is not None), None)
    names = [] if known is None else [n for n in known if n.startswith("measure/")]
    size = lambda i: min(shard, rows - i * shard)
    column = lambda name, like, empty: np.concatenate(
        [
            np.full((size(i), *like.shape[1:]), empty, like.dtype) if x is None else x[name]
            for i, x in enumerate(found)
        ]
    )
    text, never = np.full(rows, "", "<U32"), np.full(rows, np.nan)
    if known is None:
        return Sweep(table, {}, text, never, {}, base, units)
    measures = {n.removeprefix("measure/"): column(n, known[n], np.nan) for n in names}
    result = column("result", text, "")
    times = column("failure_time", never, np.nan)
    kinds = {n.split("/")[1] for n in known if n.startswith("envelope/")}
    part = lambda x, kind: {
        n.split("/")[2]: value for n, value in x.items() if n.startswith(f"envelope/{kind}/")
    }
    envelope = {k: joined([part(x, k) for x in found if x is not None]) for k in sorted(kinds)}
    return Sweep(table, measures, result, times, envelope, base, units)
