"""Measured data."""

import re
from collections.abc import Mapping

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_shape
from .._base.precision import as_float_array
from ..simulation.trajectory import Trajectory


class Recording(eqx.Module):
    """What was measured.

    `t` [s], shape (k,), increasing; `values`: arrays of shape (k,), or (k, ...) as the machine's
    outputs, by the names a trajectory knows: coordinates, velocities (`d_` + name), inputs,
    outputs, and single components of outputs counted from one (`tension_2`). NaN marks what is
    missing, so that gaps and different sampling rates are possible (`join` makes such a table of
    several). Sampling need not be even. Observe as little as is known:
    names that are left out are not compared. `about`: words on where it comes from, by name, such
    as the `integrator` and step `dt` [s] of a simulation.

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
        # inside of `jit` a conversion by JAX would hide the numbers
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
    def from_pandas(cls, frame, about: Mapping[str, str] | None = None) -> "Recording":
        """Of a `pandas.DataFrame`: a column `time` [s], or an index of seconds or of time
        differences, and a column for each quantity."""
        if "time" in frame.columns:
            t, frame = frame["time"].to_numpy(), frame.drop(columns="time")
        else:
            t = frame.index.to_numpy()
        values = {str(name): frame[name].to_numpy(dtype=float) for name in frame.columns}
        return cls(_seconds(t), values, about)

    @classmethod
    def from_xarray(cls, dataset, about: Mapping[str, str] | None = None) -> "Recording":
        """Of an `xarray.Dataset` (or a `DataArray` with a name): its variables along `time` [s]; a
        dataset by `Trajectory.to_xarray` gives coordinates, velocities, inputs and outputs."""
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
        """Merge recordings of sensors with different sampling instants: all instants, with NaN
        where a sensor has no value. Instants that differ by rounding errors are merged, whatever
        the origin of the time (seconds since 1970); samples of one sensor never are."""
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
        """Only these names."""
        missing = [n for n in names if n not in self.values]
        require(not missing, "recording", ", ".join(missing), f"some of {', '.join(self.names)}")
        return Recording(self.t, {n: self.values[n] for n in names}, self.about)


def _seconds(t: np.ndarray) -> np.ndarray:
    """Time differences and dates as seconds from the first."""
    if t.dtype.kind in "mM":
        return (t - t[0]) / np.timedelta64(1, "s")
    return np.asarray(t, dtype=float)


def observe(trajectory: Trajectory, name: str, who: str = "recording"):
    """A recorded quantity of a trajectory by its name, shape (k, ...); `who` asks for it."""
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
