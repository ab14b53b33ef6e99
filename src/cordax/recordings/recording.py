"""Recordings: measured signals over time."""

import re
from collections.abc import Callable, Mapping, Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_number, require_shape, require_whole
from .._base.precision import as_float_array
from ..simulation.trajectory import Trajectory
from . import signals
from .headers import TIME, interpretation, read_headers
from .windows import pieces, spans


class Recording(eqx.Module):
    """Measured signals over time.

    **Arguments:**

    - `t` [s]: instants, shape (k,), increasing. They need not be equally spaced.
    - `values`: arrays of shape (k,), or (k, ...) like the outputs of the machine, by name. The
      names are those of quantities of a trajectory: coordinates, velocities (`d_` + name), inputs,
      outputs, and single components of outputs counted from one (`tension_2`). NaN marks missing
      samples, so that gaps and different sampling rates are possible (`join` merges recordings of
      several sensors). Quantities without values are not compared.
    - `about`: texts on the origin of the data, by name, such as the `integrator` and time step
      `dt` [s] of a simulation.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    recording = cordax.Recording([0.0, 0.1, 0.2], {"angle": [0.30, 0.27, 0.19]})
    print(recording.names)
    ```
    """

    t: np.ndarray
    values: dict[str, Float[Array, "k ..."]]
    notes: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def __init__(self, t, values, about: Mapping[str, str] | None = None):
        self.notes = tuple((str(name), str(text)) for name, text in (about or {}).items())
        # inside `jit`, a conversion by JAX would turn concrete numbers into traced ones
        plain = isinstance(t, np.ndarray) and t.dtype.kind in "iuf"
        self.t = np.asarray(t if plain else as_float_array(t, "recording.t"), dtype=float)
        require(isinstance(values, Mapping), "recording.values", values, "arrays by name")
        for name in values:
            text = isinstance(name, str) and name != ""
            require(text, "recording.values", repr(name), "names that are texts")
        self.values = {
            name: as_float_array(x, f"recording.values[{name!r}]") for name, x in values.items()
        }
        require(self.t.ndim == 1 and self.t.size > 1, "recording.t", self.t, "shape (k,), k > 1")
        increasing = bool(np.all(np.isfinite(self.t)) and np.all(np.diff(self.t) > 0))
        require(increasing, "recording.t", self.t, "finite, increasing times")
        require(len(self.values) > 0, "recording.values", "nothing", "at least one name")
        k = self.t.size
        for name, x in self.values.items():
            require_shape(f"recording.values[{name!r}]", x, (k, *x.shape[1:]))

    @property
    def about(self) -> dict[str, str]:
        return dict(self.notes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values)

    @classmethod
    def from_pandas(
        cls,
        frame,
        about: Mapping[str, str] | None = None,
        report: Callable[[str], object] | None = print,
    ) -> "Recording":
        """Create a recording from a `pandas.DataFrame` with one column for each quantity.

        Instants are in a column `time` (or `Time`, `t`) [s], or in the index as seconds, time
        differences or dates. Headers may contain units, as in `io.read_csv`; `report` is called
        with a line that describes how they were read."""
        columns = read_headers("frame", [str(c) for c in frame.columns], needs_time=False)
        arrays = {c.name: frame.iloc[:, i].to_numpy() for i, c in enumerate(columns)}
        factors = {c.name: c.factor for c in columns}
        t = _seconds(arrays.pop(TIME)) if TIME in arrays else _seconds(frame.index.to_numpy())
        values = {n: factors[n] * np.asarray(x, dtype=float) for n, x in arrays.items()}
        notes = interpretation(columns)
        if notes and report is not None:
            report(f"data frame: {notes['interpretation']}")
        return cls(factors.get(TIME, 1.0) * t, values, notes | dict(about or {}))

    @classmethod
    def from_xarray(cls, dataset, about: Mapping[str, str] | None = None) -> "Recording":
        """Create a recording from an `xarray.Dataset` (or a `DataArray` with a name).

        It contains the variables along `time`, in seconds. A dataset by `Trajectory.to_xarray`
        gives coordinates, velocities, inputs and outputs."""
        dataset = dataset if hasattr(dataset, "data_vars") else dataset.to_dataset()
        require("time" in dataset.coords, "dataset", list(dataset.coords), "a coordinate 'time'")
        labelled = {"q": ("coordinate", ""), "v": ("velocity", "d_"), "u": ("input", "")}
        values = {}
        for name, x in dataset.data_vars.items():
            if "time" not in x.dims or name in ("multipliers", "violation"):
                continue
            array = np.asarray(x.transpose("time", ...).values, dtype=float)
            axis, prefix = labelled.get(str(name), ("", ""))
            if axis in x.dims:
                values |= {
                    f"{prefix}{label}": array[:, i]
                    for i, label in enumerate(dataset.coords[axis].values)
                }
            else:
                values[str(name)] = array
        return cls(_seconds(dataset.coords["time"].values), values, about)

    @classmethod
    def join(cls, *recordings: "Recording") -> "Recording":
        """Merge recordings of sensors with different sampling instants.

        The result contains all instants, with NaN where a sensor has no value. Instants that differ
        only by rounding errors are merged, also if times are large (seconds since 1970). Samples of
        one sensor are never merged."""
        require(len(recordings) > 0, "recordings", "none", "at least one")
        names = [name for one in recordings for name in one.names]
        twice = sorted({n for n in names if names.count(n) > 1})
        require(not twice, "recordings", ", ".join(twice), "each name in one of them")
        every = np.sort(np.concatenate([one.t for one in recordings]))
        rounding = max(1e-9 * (every[-1] - every[0]), 4.0 * np.max(np.spacing(np.abs(every))))
        interval = min(float(np.min(np.diff(one.t))) for one in recordings)
        rounding = min(rounding, interval / (2.0 * len(recordings) + 2.0))
        is_new = np.concatenate([[True], np.diff(every) > rounding])
        t, row_of = every[is_new], np.cumsum(is_new) - 1
        values = {}
        for one in recordings:
            rows = row_of[np.searchsorted(every, one.t)]
            for name, x in one.values.items():
                whole = np.full((t.size, *x.shape[1:]), np.nan)
                whole[rows] = np.asarray(x)
                values[name] = whole
        about = {name: text for one in reversed(recordings) for name, text in one.notes}
        return cls(t, values, about)

    def select(self, names) -> "Recording":
        """Recording with only the quantities `names`."""
        self._require(names)
        return Recording(self.t, {n: self.values[n] for n in names}, self.about)

    def rename(self, names: Mapping[str, str]) -> "Recording":
        """Recording with renamed quantities, for example by `{"Winkel": "angle"}`."""
        ok = isinstance(names, Mapping) and all(isinstance(n, str) for n in names.values())
        require(ok, "names", names, "old names with new names")
        self._require(names)
        new = [names.get(n, n) for n in self.names]
        twice = sorted({n for n in new if new.count(n) > 1})
        require(not twice, "names", ", ".join(twice), "each name once")
        return Recording(self.t, dict(zip(new, self.values.values(), strict=True)), self.about)

    def shift(self, seconds: float) -> "Recording":
        """Recording with `seconds` [s] added to all instants."""
        require_number("seconds", seconds, positive=False)
        return Recording(self.t + seconds, self.values, self.about)

    def between(self, t0: float, t1: float) -> "Recording":
        """Part of the recording from `t0` to `t1` [s], both included. Instants are unchanged."""
        require_number("t0", t0, positive=False)
        require_number("t1", t1, positive=False)
        rows = (self.t >= t0) & (self.t <= t1)
        given = f"{t0:g} to {t1:g} s with {int(np.sum(rows))} samples"
        held = f"at least two samples; the recording lasts from {self.t[0]:g} to {self.t[-1]:g} s"
        require(int(np.sum(rows)) > 1, "between", given, held)
        return self._at(rows)

    def resample(self, interval: float, *, gap: float | None = None) -> "Recording":
        """Resample at equal intervals [s] from the first instant on, by linear interpolation of
        each channel.

        Nothing is interpolated across gaps longer than `gap` [s] (5 median intervals of the channel
        by default). If `interval` is longer than that of the samples, use `filter` first; otherwise
        fast motions appear as slow ones (aliasing)."""
        require_number("interval", interval)
        _check_gap(gap)
        samples = (self.t[-1] - self.t[0]) / interval
        require(
            samples < 1e8, "interval", interval, "an interval that gives fewer than 1e8 samples"
        )
        count = int(np.floor(samples * (1.0 + 1e-12)))
        require(count > 0, "interval", interval, f"at most {self.t[-1] - self.t[0]:g} s")
        t = self.t[0] + interval * np.arange(count + 1)
        arrays = self._arrays()
        values = {n: signals.interpolate(self.t, x, t, gap) for n, x in arrays.items()}
        return Recording(t, values, self.about)

    def thin(self, every: int) -> "Recording":
        """Keep every `every`-th sample of each channel, from its first one on, without
        averaging."""
        require_whole("every", every, 1)
        values = {n: signals.thinned(x, every) for n, x in self._arrays().items()}
        seen = [np.any(~np.isnan(x.reshape(len(x), -1)), axis=1) for x in values.values()]
        return Recording(self.t, values, self.about)._at(np.any(seen, axis=0))

    def filter(
        self, cutoff: float, *, order: int = 2, names: Sequence[str] | None = None
    ) -> "Recording":
        """Filter channels (`names`; all by default) with a Butterworth low-pass.

        It is applied forwards and backwards, so that there is no phase shift: at `cutoff` [Hz] half
        of the power is left. Spans between gaps are filtered separately. Samples must be evenly
        spaced (see `resample`)."""
        require_number("cutoff", cutoff)
        require_whole("order", order, 1)
        chosen = self.names if names is None else names
        self._require(chosen)
        arrays = self._arrays()
        for name in chosen:
            arrays[name] = signals.low_pass(name, self.t, arrays[name], cutoff, order)
        return Recording(self.t, arrays, self.about)

    def windows(
        self,
        longest: float,
        *,
        shortest: float | None = None,
        gap: float | None = None,
        constant: Sequence[str] | Mapping[str, float] = (),
        energy: str | Callable[["Recording"], object] | None = None,
        least: float = 0.01,
        rise: float = 0.05,
    ) -> list["Recording"]:
        """Find windows of the recording in which the machine moves freely, in order of time.

        - `longest`, `shortest` [s]: longer spans are cut into equal windows, shorter ones are left
          out (by default those shorter than half of `longest`).
        - `gap` [s]: windows never contain a longer interval without samples; by default 5 median
          intervals.
        - `constant`: inputs that must be constant within a window, by name, or with the largest
          change allowed; by default six times the scatter of their samples.
        - `energy`: a name, or a function of the recording that returns an array of shape (k,), with
          any unit. Windows then contain decaying motions only: the energy stays above the share
          `least` of its largest value, and never rises by more than the share `rise` of that value
          above its lowest value so far.

        **Example:**

        ```python
        import cordax
        import numpy as np

        t = 0.01 * np.arange(1001)
        log = cordax.Recording(t, {"x": np.exp(-0.2 * t) * np.cos(5 * t), "force": 1.0 * (t < 4)})
        free = log.windows(3.0, constant=["force"])
        print([(window.t[0], window.t[-1]) for window in free])
        ```
        """
        require_number("longest", longest)
        shortest = 0.5 * longest if shortest is None else shortest
        require_number("shortest", shortest)
        require(shortest <= longest, "shortest", shortest, f"at most {longest:g} s")
        _check_gap(gap)
        limits = constant if isinstance(constant, Mapping) else dict.fromkeys(constant)
        self._require(limits)
        arrays = self._arrays()
        held = []
        for name, limit in limits.items():
            require_shape(f"constant: {name}", arrays[name], (len(self.t),))
            held.append((name, arrays[name], limit))
        power = None
        if energy is not None:
            if isinstance(energy, str):
                self._require([energy])
                power = arrays[energy]
            else:
                power = np.asarray(energy(self), dtype=float)
            require_shape("energy", power, (len(self.t),))
        found = spans(
            self.t,
            gap=signals.gap_length(self.t) if gap is None else gap,
            constant=held,
            energy=power,
            least=least,
            rise=rise,
        )
        rows = [r for span in found for r in pieces(self.t, span, shortest, longest)]
        return [self._at(r) for r in rows]

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: np.array(x, dtype=float) for name, x in self.values.items()}

    def _at(self, rows: np.ndarray) -> "Recording":
        values = {name: np.asarray(x)[rows] for name, x in self.values.items()}
        return Recording(self.t[rows], values, self.about)

    def _require(self, names) -> None:
        listed = isinstance(names, (tuple, list, Mapping)) and all(
            isinstance(n, str) for n in names
        )
        require(listed, "names", names, "a list of names")
        missing = [n for n in names if n not in self.values]
        require(not missing, "recording", ", ".join(missing), f"some of {', '.join(self.names)}")


def _check_gap(gap) -> None:
    if gap is not None:
        require_number("gap", gap)


def _seconds(t: np.ndarray) -> np.ndarray:
    """Convert dates and time differences to seconds from the first; numbers are seconds already."""
    if t.dtype.kind in "mM":
        return (t - t[0]) / np.timedelta64(1, "s")
    return np.asarray(t, dtype=float)


def observe(trajectory: Trajectory, name: str, who: str = "recording"):
    """Quantity of a trajectory by its name in a recording, shape (k, ...). Error messages begin
    with `who`."""
    if name not in trajectory.names:
        component = re.fullmatch(r"(.+)_(\d+)", name)
        if component and component[1] in trajectory.outputs:
            whole = trajectory.outputs[component[1]]
            whole = whole.reshape(whole.shape[0], -1)
            index = int(component[2]) - 1
            if 0 <= index < whole.shape[1]:
                return whole[:, index]
        known = ", ".join(trajectory.names)
        raise ValueError(f"{who}: got {name!r}, expected names of the machine: {known}")
    return trajectory[name]
