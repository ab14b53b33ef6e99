"""Recordings from log files of other programs: text tables, MATLAB files, ROS 2 bags and MCAP."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._base.checks import require
from ..recordings.headers import TIME, interpretation, read_headers
from ..recordings.recording import Recording
from .csv import read_csv

#: arrays with more entries than this are images or point clouds and are not read as channels
MOST_ENTRIES = 64


def read_recording(
    path: str | Path,
    names: Mapping[str, str] | None = None,
    *,
    report: Callable[[str], object] | None = print,
) -> Recording:
    """Read a recording from a log file.

    The extension selects the format: `.mat` (MATLAB), `.mcap` (MCAP), `.db3` or a folder (ROS 2
    bag), `.nc` (NetCDF). All other files are read as text tables (`read_csv`).

    - `names`: the channels to read (all by default), by the names that they get in the recording:
      `{"angle": "/joint_states.position_1"}`;
    - `report`: is called with a line about the interpretation of names and units.

    Times are in seconds. Values are in SI units if the file contains units.
    """
    path = Path(path)
    if path.suffix == ".mat":
        found = _matlab(path, report)
    elif path.suffix in (".mcap", ".db3") or path.is_dir():
        found = _bag(path, report)
    elif path.suffix == ".nc":
        import xarray

        with xarray.open_dataset(path) as dataset:
            found = Recording.from_xarray(dataset)
    else:
        found = read_csv(path, report=report)
    if names is None:
        return found
    chosen = found.select(dict.fromkeys(names.values()))
    twice = len(set(names.values())) < len(names)
    require(not twice, "names", ", ".join(names.values()), "each channel once")
    chosen = chosen.rename({channel: name for name, channel in names.items()})
    seen = np.any([_has_samples(np.asarray(x)) for x in chosen.values.values()], axis=0)
    return chosen._at(seen)


def _has_samples(x: np.ndarray) -> np.ndarray:
    return np.any(~np.isnan(x.reshape(len(x), -1)), axis=1)


def _matlab(path: Path, report) -> Recording:
    """Read the arrays of a `.mat` file, also within structures, that have as many samples as its
    time vector."""
    import scipy.io

    try:
        data = scipy.io.loadmat(path, simplify_cells=True)
    except NotImplementedError:  # version 7.3 is HDF5
        data = _hdf5(path)
    except (ValueError, TypeError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path}: got {error}, expected a MATLAB file") from error
    arrays = {name: x for name, x in _leaves(data) if not name.startswith("__")}
    # fields of structures such as `log.time` get their last name if these are unique
    arrays = _short_names(arrays)
    columns = read_headers(str(path), list(arrays))
    time = next(c for c in columns if c.name == TIME)
    t = np.ravel(arrays[time.header]) * time.factor
    values, left = {}, []
    for column in columns:
        x = np.asarray(arrays[column.header])
        if column.name == TIME:
            continue
        if x.ndim == 2 and x.shape[0] != t.size and x.shape[1] == t.size:
            x = x.T
        if x.ndim and x.shape[0] == t.size:
            x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
            values[column.name] = column.factor * x
        else:
            left.append(column.header)
    require(
        len(values) > 0, str(path), ", ".join(arrays), f"arrays of {t.size} samples, as time has"
    )
    notes = interpretation([c for c in columns if c.header not in left])
    lines = [notes["interpretation"]] if notes else []
    lines += [f"{', '.join(left)} left out: not {t.size} samples"] if left else []
    if lines:
        notes["interpretation"] = "; ".join(lines)
        if report is not None:
            report(f"{path}: {notes['interpretation']}")
    return Recording(t, values, notes)


def _hdf5(path: Path) -> dict[str, Any]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("MATLAB 7.3 files need h5py: pip install cordax[data]") from error

    def read(group) -> dict[str, Any]:
        return {
            name: read(x) if isinstance(x, h5py.Group) else np.squeeze(np.asarray(x))
            for name, x in group.items()
            if not name.startswith("#")
        }

    with h5py.File(path) as file:
        return read(file)


def _leaves(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of numbers in nested structures, by dotted names."""
    for name, x in data.items():
        if isinstance(x, Mapping):
            yield from _leaves(x, f"{before}{name}.")
        elif isinstance(x, np.ndarray) and x.dtype.kind in "iufb" and x.size > 1:
            yield f"{before}{name}", x


def _short_names(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    last = [name.rpartition(".")[2] for name in arrays]
    unique = len(set(last)) == len(last)
    return dict(zip(last, arrays.values(), strict=True)) if unique else arrays


def _bag(path: Path, report) -> Recording:
    """Read all numbers in the messages of a bag as channels `/topic.field`. Components of arrays
    are counted from one. The topics are joined in one recording. Times are those of the message
    headers, or else those of the log, counted from the first message."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    channels: dict[str, dict[float, dict[str, float]]] = {}
    messages = _mcap_messages(path) if path.suffix == ".mcap" else _bag_messages(path)
    for topic, logged, message in messages:
        stamp = _get(_get(message, "header"), "stamp")
        nanoseconds = logged
        if stamp is not None:
            sent = int(_get(stamp, "sec") or 0) * 10**9 + int(_get(stamp, "nanosec") or 0)
            nanoseconds = sent or logged
        row = dict(_fields(message, topic))
        if row:
            channels.setdefault(topic, {})[nanoseconds] = row
    require(
        len(channels) > 0, str(path), "no messages with numbers", "at least one topic of numbers"
    )
    begin = min(min(rows) for rows in channels.values())
    parts, left = [], []
    for topic, rows in channels.items():
        if len(rows) < 2:
            left.append(topic)
            continue
        instants = sorted(rows)
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        values = {n: np.array([rows[i].get(n, np.nan) for i in instants]) for n in names}
        t = 1e-9 * (np.array(instants, dtype=np.int64) - begin)
        parts.append(Recording(t, values))
    require(len(parts) > 0, str(path), "topics with one message", "two messages of a topic")
    text = f"times count from {1e-9 * begin:.9f} s"
    text += f"; {', '.join(left)} left out: one message" if left else ""
    if report is not None:
        report(f"{path}: {text}")
    joined = Recording.join(*parts)
    return Recording(joined.t, joined.values, {"interpretation": text})


def _bag_messages(path: Path) -> Iterator[tuple[str, int, Any]]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise ImportError("ROS 2 bags need rosbags: pip install cordax[ros]") from error
    folder = path if path.is_dir() else path.parent
    with AnyReader([folder], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        for connection, logged, raw in reader.messages():
            yield connection.topic, logged, reader.deserialize(raw, connection.msgtype)


def _mcap_messages(path: Path) -> Iterator[tuple[str, int, Any]]:
    import json

    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
    except ImportError as error:
        raise ImportError("MCAP files need mcap: pip install cordax[ros]") from error
    types: dict[int, Any] = {}
    with path.open("rb") as file:
        try:
            for schema, channel, message in make_reader(file).iter_messages():
                if channel.message_encoding == "json":
                    yield channel.topic, message.log_time, json.loads(message.data)
                elif channel.message_encoding == "cdr" and schema is not None:
                    store = types.get(schema.id) or types.setdefault(
                        schema.id, _types(path, schema)
                    )
                    decoded = store.deserialize_cdr(message.data, schema.name)
                    yield channel.topic, message.log_time, decoded
        except McapError as error:
            raise ValueError(f"{path}: got {error}, expected an MCAP file") from error


def _types(path: Path, schema):
    """Read the types of a ROS 2 message from its definition in the file."""
    try:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    except ImportError as error:
        raise ImportError("ROS 2 messages need rosbags: pip install cordax[ros]") from error
    known = schema.encoding == "ros2msg"
    require(known, f"{path}: {schema.name}", f"a {schema.encoding} schema", "ros2msg or JSON")
    store = get_typestore(Stores.ROS2_HUMBLE)
    text = schema.data.decode()
    found = get_types_from_msg(text.partition("\n====")[0], schema.name)
    for block in text.split("=" * 80)[1:]:
        title, _, definition = block.strip().partition("\n")
        name = title.removeprefix("MSG:").strip()
        name = name if "/msg/" in name else name.replace("/", "/msg/")
        found |= get_types_from_msg(definition, name)
    store.register({name: kind for name, kind in found.items() if name not in store.types})
    return store


def _get(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


def _fields(message: Any, before: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers in a message, with names, also those in nested messages and in arrays of at
    most `MOST_ENTRIES` entries."""
    if isinstance(message, (bool, int, float, np.number)):
        yield before, float(message)
    elif isinstance(message, (list, tuple, np.ndarray)):
        if len(message) <= MOST_ENTRIES:
            for i, entry in enumerate(message, 1):
                yield from _fields(entry, f"{before}_{i}")
    elif isinstance(message, dict) or hasattr(message, "__dataclass_fields__"):
        names = message if isinstance(message, dict) else message.__dataclass_fields__
        for name in names:
            if name not in ("header", "stamp") and not name.startswith("__"):
                yield from _fields(_get(message, name), f"{before}.{name}")
