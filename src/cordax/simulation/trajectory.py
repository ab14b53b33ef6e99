"""The result of a simulation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from .._base.checks import require
from .._base.lazy_imports import of_extra
from .._base.results import GOOD, LABELS, Result
from .._jax.program_cache import kept_filter_jit
from ..integrators.events import Events
from ..mechanics import State, System
from ..mechanics.units import unit_of
from . import trajectory_file as files


class Trajectory(eqx.Module):
    """Stored instants of a run. Arrays have a leading time axis of length k; in a batch, one more
    axis before it.

    `t` [s] (k,); `q` (k, n_q) and `v` (k, n_v); `u` inputs (k, n_u); `multipliers` (k, m);
    `violation` largest |Phi| (k,); `outputs` named quantities of the machine (k, ...); `warnings`
    the time [s] of the first step at which each named condition of the machine held, inf if never;
    `result` the number of the `cordax.Result` of the run, and `failure_time` [s] the
    end of the step that failed (inf if none did; later states repeat the last good one); `events`
    events between steps, if the integrator detects them; `statistics` numbers of accepted and
    rejected steps, with `accuracy`, and of Newton iterations, if there are any, including those of
    rejected steps; `phases` the trajectories of the phases of a run, each with its machine, if
    there are several (`system` is that of the last phase). If a phase has fewer coordinates, inputs
    or outputs than another, the missing values are NaN."""

    t: Float[Array, "*batch k"]
    q: Float[Array, "*batch k n_q"]
    v: Float[Array, "*batch k n_v"]
    u: Float[Array, "*batch k n_u"]
    multipliers: Float[Array, "*batch k m"]
    violation: Float[Array, "*batch k"]
    outputs: dict[str, Float[Array, "..."]]
    warnings: dict[str, Float[Array, "*batch"]]
    result: Int[Array, "*batch"]
    failure_time: Float[Array, "*batch"]
    system: System | None
    events: Events | None = None
    statistics: dict[str, Int[Array, "*batch"]] = eqx.field(default_factory=dict)
    phases: tuple["Trajectory", ...] = ()

    def __getitem__(self, name: str):
        """Coordinate, input or output by name, shape (k,) or (k, ...); velocities: `d_` + name."""
        if name in self.outputs:
            return self.outputs[name]
        if self.phases and name in {n for phase in self.phases for n in phase.names}:
            parts = [
                phase[name] if name in phase.names else np.full(phase.t.shape, np.nan)
                for phase in self.phases
            ]
            return jax.numpy.concatenate([p[..., :-1] for p in parts[:-1]] + [parts[-1]], axis=-1)
        if self.system is not None:
            for names, values, prefix in (
                (self.system.coordinate_names, self.q, ""),
                (self.system.velocity_names, self.v, "d_"),
                (self.system.input_names, self.u, ""),
            ):
                if name.startswith(prefix) and name.removeprefix(prefix) in names:
                    return values[..., names.index(name.removeprefix(prefix))]
        raise KeyError(f"trajectory has no {name!r}; it has {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """All names that `run[name]` accepts."""
        if self.system is None:
            return tuple(self.outputs)
        s = self.system
        rates = tuple("d_" + n for n in s.velocity_names)
        return (*s.coordinate_names, *rates, *s.input_names, *self.outputs)

    @property
    def succeeded(self):
        return self.result == GOOD

    @property
    def _message(self) -> str:
        return Result(int(self.result)).message

    def energy(self) -> dict[str, Float[Array, " k"]]:
        """Kinetic, potential and total energy [J], shape (k,) each."""
        if self.phases:
            parts = [phase.energy() for phase in self.phases]
            rows = lambda name: [p[name][..., :-1] for p in parts[:-1]] + [parts[-1][name]]
            return {name: jax.numpy.concatenate(rows(name), axis=-1) for name in parts[-1]}
        system = self._known_system("energy")
        kinetic, potential = _energies(system, self.t, self.q, self.v)
        return {"kinetic": kinetic, "potential": potential, "total": kinetic + potential}

    def drift(self) -> Float[Array, " k"]:
        """Largest constraint violation |Phi| at each instant, shape (k,); zero for machines without
        constraints. One-sided constraints that are inactive count only where they are violated."""
        return self.violation

    def summary(self) -> str:
        """Text summary of the run in a few lines."""
        if self.t.ndim > 1:
            return self._batch_summary()
        machine = type(self.system).__name__ if self.system is not None else "machine"
        t = np.asarray(self.t)
        lines = [f"{machine}: {t[0]:g} to {t[-1]:g} s, {len(t)} stored instants"]
        if bool(self.succeeded):
            lines.append("finished")
        else:
            lines.append(f"failed at t = {float(self.failure_time):g} s: {self._message}")
        if self.system is not None:
            facts = self.system.presentation().summary(self)
            lines += [f"{name}: {text}" for name, text in facts.items()]
        if np.any(self.violation):
            lines.append(f"constraints: |Phi| up to {np.max(self.violation):.1e}")
        if self.events is not None:
            lines += self.events.sentences()
        lines += [
            f"warning: {name.replace('_', ' ')} from t = {float(time):g} s"
            for name, time in self.warnings.items()
            if np.isfinite(time)
        ]
        return "\n".join(lines)

    def _batch_summary(self) -> str:
        t, good = np.asarray(self.t), np.asarray(self.succeeded).ravel()
        lines = [
            f"batch of {good.size}: {t.min():g} to {t.max():g} s, {t.shape[-1]} stored instants",
            f"finished: {np.sum(good)} of {good.size}",
        ]
        codes = np.asarray(self.result).ravel()
        times = np.asarray(self.failure_time).ravel()
        for code in np.unique(codes[~good]):
            members = np.flatnonzero(codes == code)
            reason = Result(int(code)).message.split(". ")[0]
            lines.append(
                f"failed: {members.size}, first at t = {times[members].min():g} s, "
                f"such as member {members[0]}: {reason}"
            )
        for name, first in self.warnings.items():
            first = np.asarray(first).ravel()
            if np.any(np.isfinite(first)):
                lines.append(
                    f"warning: {name.replace('_', ' ')} in {np.sum(np.isfinite(first))}, first at "
                    f"t = {first.min():g} s"
                )
        return "\n".join(lines)

    def to_xarray(self):
        """Convert to an `xarray.Dataset` with named coordinates, inputs and outputs along `time`
        [s], and along `member` for a batch. Units are attributes or are stored beside the names
        (needs the `data` extra)."""
        xr = of_extra("xarray", "data")

        system = self._known_system("to_xarray")
        t = np.asarray(self.t)
        members = tuple(f"member_{i}" for i in range(t.ndim - 1))
        members = ("member",) if len(members) == 1 else members
        same = bool(np.all(t == t.reshape(-1, t.shape[-1])[0]))
        require(same, "to_xarray", "batch members with different time grids", "equal time grids")
        along = (*members, "time")
        data: dict = {
            "q": ((*along, "coordinate"), np.asarray(self.q)),
            "v": ((*along, "velocity"), np.asarray(self.v)),
            "u": ((*along, "input"), np.asarray(self.u)),
            "multipliers": ((*along, "constraint"), np.asarray(self.multipliers)),
            "violation": (along, np.asarray(self.violation)),
        }
        for name, values in self.outputs.items():
            axes = tuple(f"{name}_{i}" for i in range(values.ndim - t.ndim))
            data[name] = ((*along, *axes), np.asarray(values))
        named = {
            "coordinate": list(system.coordinate_names),
            "velocity": list(system.velocity_names),
            "input": list(system.input_names),
        }
        units = {
            f"{axis}_unit": (axis, [unit_of(system, rate + name) or "" for name in names])
            for (axis, names), rate in zip(named.items(), ("", "d_", ""), strict=True)
        }
        attributes = {"machine": type(system).__name__}
        if not members:
            attributes["result"] = self._message or "successful"
        time = t.reshape(-1, t.shape[-1])[0]
        table = xr.Dataset(data, coords={"time": time} | named | units, attrs=attributes)
        if members:
            table["succeeded"] = (members, np.asarray(self.succeeded))
        table["time"].attrs["units"] = "s"
        for name in self.outputs:
            if (unit := unit_of(system, name)) is not None:
                table[name].attrs["units"] = unit
        return table

    def to_pandas(self, names: Sequence[str] | None = None):
        """Convert to a `pandas.DataFrame` over `time` [s] with `names` (default: all of them) as
        columns, in SI units, which `attrs["units"]` lists. Components are counted from one:
        `tension_1` (needs the `data` extra)."""
        pd = of_extra("pandas", "data")

        system = self._known_one("to_pandas")
        columns = as_columns(
            {name: self[name] for name in (self.names if names is None else names)}
        )
        table = pd.DataFrame(columns, index=pd.Index(np.asarray(self.t), name="time"))
        known = {name: unit_of(system, name) for name in columns}
        table.attrs["units"] = {name: unit for name, unit in known.items() if unit is not None}
        return table

    # the following methods import packages that depend on this one, only when they are called
    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write `names` (default: all of them) as a table for `cordax.io.read_csv` and
        spreadsheets; returns the path."""
        from ..io import write_csv

        self._known_one("to_csv")
        return write_csv(path, self, names)

    def to_html(self, path: str | Path, **options) -> Path:
        """Write a web page that plays the run without server or network: `plot.write_page`."""
        from ..plot import write_page

        return write_page(self, path, **options)

    def plot(self, names: Sequence[str] | None = None, **options):
        """Plot `names` (default: the machine's default plots) over time: `plot.plot_states`."""
        from ..plot import plot_states

        self._known_one("plot")
        return plot_states(self, names, **options)

    def animate(self, path: str | Path, **options) -> Path:
        """Write a video, `.gif` or `.mp4`, or a web page that plays the run, `.html`:
        `plot.animate`."""
        from ..plot import animate, write_page

        self._known_one("animate")
        as_page = Path(path).suffix.lower() in (".html", ".htm")
        return (write_page if as_page else animate)(self, path, **options)

    @property
    def end(self) -> State:
        """The last state; `simulate(run.system, run.end, t0=float(run.t[-1]), ...)` continues the
        run."""
        if self.phases:  # the last phase may have fewer coordinates than the widest
            return self.phases[-1].end
        return State(self.q[..., -1, :], self.v[..., -1, :])

    def save(self, path: str | Path) -> Path:
        """Write all data exactly to `path` (NumPy `.npz`, suffix added if missing); returns the
        path.

        The file appears complete or not at all. It includes machines of cordax, and the machine of
        each phase."""
        return files.write(path, self._stored())

    def _stored(self) -> files.Stored:
        arrays: dict = {f: np.asarray(getattr(self, f)) for f in files.ARRAYS}
        arrays |= {f"outputs/{name}": np.asarray(x) for name, x in self.outputs.items()}
        arrays |= {f"warnings/{name}": np.asarray(x) for name, x in self.warnings.items()}
        arrays |= {f"statistics/{name}": np.asarray(x) for name, x in self.statistics.items()}
        if self.events is not None:
            arrays |= {f"events/{f}": np.asarray(getattr(self.events, f)) for f in files.EVENTS}
        codes = np.asarray(self.result)
        arrays["result"] = np.asarray(LABELS)[codes]
        phases = tuple(phase._stored() for phase in self.phases)
        return files.Stored(arrays, self.system, phases=phases)

    @staticmethod
    def load(path: str | Path, system: System | Sequence[System] | None = None) -> "Trajectory":
        """Read a file that `save` wrote, including its machines if they are machines of cordax.

        Otherwise pass your machine as `system`, or a list with one machine per phase, to restore
        names, energies and drawings. Nothing in the file is executed."""
        found = files.read(path, with_machines=system is None)
        given = list(system) if isinstance(system, Sequence) else [system]
        if system is None or not found.phases:
            given = given * max(1, len(found.phases))
        wanted = f"one for each of the {len(found.phases)} phases of {path}"
        one_each = len(given) == max(1, len(found.phases))
        require(one_each, "system", f"{len(given)} machines", wanted)
        phases = zip(found.phases, given, strict=False)
        parts = tuple(_of_file(path, phase, machine) for phase, machine in phases)
        return _of_file(path, found, given[-1], parts)

    def _known_one(self, what: str) -> System:
        """Machine of a single run."""
        if self.t.ndim > 1:
            raise ValueError(
                f"{what}: got a batch of {self.t.shape[0]} runs, expected one: "
                f"jax.tree.map(lambda x: x[i], runs)"
            )
        return self._known_system(what)

    def _known_system(self, what: str) -> System:
        if self.system is None:
            raise ValueError(f"{what} needs the machine: load with Trajectory.load(path, system)")
        return self.system


def _of_file(path, found: files.Stored, system: System | None, phases=()) -> Trajectory:
    """Trajectory from a file, with the user's machine if one is given."""
    arrays, given = found.arrays, type(system).__name__
    if system is not None and found.machine not in (None, given):
        raise ValueError(f"system: got {given}, but {path} holds a trajectory of {found.machine}")
    known = system is not None and found.parameters is not None and not phases
    if known and files.parameters_digest(system) != found.parameters:
        raise ValueError(
            f"system: got a {given} whose parameters differ from those of the machine in {path}; "
            "give the machine of the run"
        )
    system = found.system if system is None else system
    n_q = arrays["q"].shape[-1]  # if there are several phases, that of the widest
    if system is not None and system.n_q != n_q and not phases:
        raise ValueError(
            f"system: got {system.n_q} coordinates, but {path} holds a trajectory of {n_q}"
        )
    read = lambda prefix: {
        name.removeprefix(prefix): jax.numpy.asarray(x)
        for name, x in arrays.items()
        if name.startswith(prefix)
    }
    code = np.vectorize(LABELS.index, otypes=[np.int32])(arrays["result"])
    events = read("events/")
    return Trajectory(
        **{name: jax.numpy.asarray(arrays[name]) for name in files.ARRAYS},
        outputs=read("outputs/"),
        warnings=read("warnings/"),
        result=jax.numpy.asarray(code),
        system=system,
        events=Events(**events) if events else None,
        statistics=read("statistics/"),
        phases=phases,
    )


def as_columns(quantities: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Convert quantities, shape (k,) or (k, ...), to named columns of a table, shape (k,) each."""
    columns: dict[str, np.ndarray] = {}
    for name, quantity in quantities.items():
        values = np.asarray(quantity)
        if values.ndim == 1:
            columns[name] = values
        else:
            parts = values.reshape(len(values), -1).T
            columns |= {f"{name}_{i + 1}": x for i, x in enumerate(parts)}
    return columns


@kept_filter_jit
def _energies(system: System, t, q, v):
    return jax.vmap(system.energies)(t, q, v)
