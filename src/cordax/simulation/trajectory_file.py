"""Trajectory files: named arrays and a description of the machine, checked when they are read."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from .._base.atomic_files import replacing
from .._base.results import LABELS
from .._base.serialise import NotDescribable, describe, rebuild

#: 1: arrays only; 2: with the machine; 3: with the phases
FORMATS = (1, 2, 3)
ARRAYS = ("t", "q", "v", "u", "multipliers", "violation", "failure_time")
EVENTS = ("time", "row", "kind", "impulse", "lost")


class Stored(NamedTuple):
    """A trajectory as named arrays, with its phases.

    If the machine is known, also the machine, the name of its class and a digest of its parameters.
    """

    arrays: dict[str, np.ndarray]
    system: Any
    machine: str | None = None
    parameters: str | None = None
    phases: tuple["Stored", ...] = ()


def write(path: str | Path, run: Stored) -> Path:
    """Write the arrays and, if they can be described as data of cordax, the machines."""
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
    parts = [(f"phase_{i}/", phase) for i, phase in enumerate(run.phases)]
    abouts, arrays = [], {}
    for prefix, part in [("", run), *parts]:
        arrays |= {prefix + name: x for name, x in part.arrays.items()}
        about, numbers = _machine(part.system, prefix)
        abouts.append(about)
        arrays |= numbers
    text = json.dumps({"format": FORMATS[-1], **abouts[0], "phases": abouts[1:]})
    with replacing(path) as part:
        np.savez_compressed(part, allow_pickle=False, about=np.asarray(text), **arrays)
    return path


def _machine(system, prefix: str) -> tuple[dict, dict]:
    """Describe a machine as text and arrays.

    A machine that cannot be described as data of cordax is stored by name only; the user passes it
    again when loading."""
    about: dict = {"machine": None if system is None else type(system).__name__}
    if system is not None:
        about["parameters"] = parameters_digest(system)
    numbers: dict[str, np.ndarray] = {}
    try:
        about["system"] = describe(system, numbers, f"{prefix}system/")
    except NotDescribable:
        numbers.clear()
    return about, numbers


def parameters_digest(system) -> str:
    """Digest of all parameters of a machine."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(system):
        if isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
            x = np.asarray(leaf)
            digest.update(f"{x.dtype}{x.shape};".encode())
            digest.update(x.tobytes())
    return digest.hexdigest()


def read(path: str | Path, with_machines: bool) -> Stored:
    """Read a trajectory file; with `with_machines`, rebuild the machines.

    Raises `ValueError` with the name of the file and its fault."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        arrays = _arrays(path)
        about = json.loads(str(arrays.pop("about", np.asarray("null"))))
        _check_about(about)
        numbers = arrays if with_machines else None
        phases = [
            _read(path, _under(f"phase_{i}/", arrays), numbers, one)
            for i, one in enumerate(about.get("phases", ()))
        ]
        own = {name: x for name, x in arrays.items() if not name.startswith("phase_")}
        return _read(path, own, numbers, about)._replace(phases=tuple(phases))
    except _Precision:
        raise
    # any error for an invalid file, from zlib's to JSON's
    except Exception as error:
        raise ValueError(
            f"{path}: got {error or type(error).__name__}, expected a trajectory written by "
            "Trajectory.save"
        ) from error


def _read(path, own: dict, numbers: dict | None, about: dict) -> Stored:
    """Read one phase. `numbers`: arrays of the machines; None if they are not rebuilt."""
    _check(own)
    _check_precision(path, own)
    system = None if numbers is None else rebuild(about.get("system"), numbers)
    return Stored(own, system, about.get("machine"), about.get("parameters"))


def _under(prefix: str, arrays: dict) -> dict:
    return {k.removeprefix(prefix): x for k, x in arrays.items() if k.startswith(prefix)}


class _Precision(ValueError):
    pass


def _arrays(path) -> dict[str, np.ndarray]:
    try:
        with open(path, "rb") as file:  # NumPy would not close a file that it cannot read
            data = np.load(file, allow_pickle=False)
            if not isinstance(data, np.lib.npyio.NpzFile):
                raise ValueError
            return {name: data[name] for name in data.files}
    except Exception as error:
        detail = f" ({error})" if str(error) else ""
        raise ValueError(f"a file that cannot be read{detail}") from error


def _check_about(about) -> None:
    if not isinstance(about, dict) or "format" not in about:
        raise ValueError("a file that is not a cordax trajectory")
    if about["format"] not in FORMATS:
        raise ValueError(f"format {about['format']!r} of another version of cordax")


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Check that shapes are consistent, values are real and result codes are known."""
    missing = [name for name in (*ARRAYS, "result") if name not in arrays]
    if missing:
        raise ValueError(f"a file without {', '.join(missing)}")
    for name, x in arrays.items():
        wanted = "U" if name == "result" else "fiub"
        if x.dtype.kind not in wanted:
            raise ValueError(f"{name} of type {x.dtype}")
        if name in ARRAYS and x.dtype.kind != "f":
            raise ValueError(f"{name} of type {x.dtype}")
    instants = arrays["t"].shape
    lead = instants[:-1]
    if len(instants) < 1 or instants[-1] < 1:
        raise ValueError(f"t of shape {instants}")
    for name, x in arrays.items():
        each = name in ("q", "v", "u", "multipliers", "violation") or name.startswith("outputs/")
        once = name in ("failure_time", "result") or name.startswith("warnings/")
        if (each and x.shape[: len(instants)] != instants) or (once and x.shape != lead):
            raise ValueError(f"{name} of shape {x.shape} where t has {instants}")
        if name in ("q", "v", "u", "multipliers") and x.ndim != len(instants) + 1:
            raise ValueError(f"{name} of shape {x.shape} where t has {instants}")
    unknown = set(np.unique(arrays["result"])) - set(LABELS)
    if unknown:
        raise ValueError(f"the result {', '.join(sorted(unknown))}")
    events = {name: x for name, x in arrays.items() if name.startswith("events/")}
    if events:
        sizes = {x.shape for name, x in events.items() if name != "events/lost"}
        if set(events) - {"events/lost"} != {f"events/{n}" for n in EVENTS[:-1]} or len(sizes) > 1:
            raise ValueError("events of unequal length")


def _check_precision(path, arrays) -> None:
    if arrays["q"].dtype == np.float64 and not jax.config.jax_enable_x64:  # pyright: ignore
        raise _Precision(
            f"{path} holds float64 numbers, which would be rounded to float32; "
            "call cordax.enable_x64() first"
        )
