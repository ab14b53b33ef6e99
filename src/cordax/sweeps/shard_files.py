"""Files of a sweep: a page that describes it, its table, and one file for each finished shard.

Files are written atomically. All files that exist when a sweep is killed are therefore complete,
and their shards are not computed again."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._base.atomic_files import replacing

#: version of this file layout
FORMAT = 1
_PAGE, _TABLE = "sweep.json", "table.npz"


def shard_path(folder: Path, index: int) -> Path:
    return folder / f"shard-{index:06d}.npz"


def open_folder(folder: Path, page: dict[str, Any], table: dict[str, np.ndarray], overwrite: bool):
    """Begin a sweep in `folder`, or resume it if the folder holds the same sweep.

    Raises `ValueError`, which names the differences, if it holds another sweep and `overwrite` is
    False."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _PAGE
    if path.exists():
        old = read_page(folder)
        differs = differences(old, page)
        if not differs:
            return
        if not overwrite:
            raise ValueError(
                f"{folder} holds a sweep that differs in {', '.join(differs)}: choose another "
                "folder, or replace it (overwrite)"
            )
    elif any(folder.glob("shard-*.npz")):
        raise ValueError(f"{folder} holds shards without {_PAGE}: choose another folder")
    _save(folder / _TABLE, table)
    with replacing(path) as part:
        part.write_text(json.dumps(page, indent=2) + "\n", encoding="utf-8")
    # after the page: a process that still runs the older sweep now writes no more shards
    for shard in folder.glob("shard-*.npz"):
        shard.unlink(missing_ok=True)


def read_page(folder: Path) -> dict[str, Any]:
    path = folder / _PAGE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, expected the folder of a sweep")
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
        known = isinstance(page, dict) and page.get("format") == FORMAT
    except ValueError:
        page, known = {}, False
    if not known:
        raise ValueError(f"{path}: got something else, expected the page of a sweep of cordax")
    return page


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Names of the entries in which two pages differ."""
    return [name for name in new if old.get(name) != new[name]]


def read_table(folder: Path) -> dict[str, np.ndarray]:
    return _load(folder / _TABLE)


def origin_of(page: dict[str, Any], index: int, rows: dict[str, np.ndarray]) -> str:
    """Digest of the page of a sweep and the rows of one shard."""
    digest = hashlib.sha256(json.dumps([page, index], sort_keys=True).encode())
    for name in sorted(rows):
        column = np.asarray(rows[name])
        digest.update(f"{name} {column.dtype}{column.shape};".encode())
        digest.update(column.tobytes())
    return digest.hexdigest()


#: name of the array in a shard file that holds the digest of its origin
_ORIGIN = "origin"


def write_shard(
    folder: Path, index: int, found: dict[str, Any], page: dict[str, Any], rows: dict[str, Any]
) -> None:
    """Write the results of `rows` together with the digest of their origin.

    Raises `RuntimeError` if another sweep has overwritten the folder. If that happens during the
    writing, the shard is recognised later by its origin."""
    path = folder / _PAGE
    if not path.is_file() or differences(read_page(folder), page):
        raise RuntimeError(
            f"{folder} has been overwritten by another sweep, so this sweep ends and leaves its "
            "shards alone"
        )
    origin = origin_of(page, index, rows)
    _save(shard_path(folder, index), found | {_ORIGIN: np.asarray(origin)})


def read_shard(folder: Path, index: int, origin: str) -> dict[str, np.ndarray] | None:
    """Read a shard of a sweep that is resumed; None if it must be computed.

    That is the case if it is not finished, cannot be read, or was written by another sweep or for
    other rows. All cases except the first give a warning."""
    try:
        return load_shard(folder, index, origin, require_origin=True)
    except ValueError as error:
        warnings.warn(f"{error}; its rows are computed again", stacklevel=3)
        return None


def load_shard(
    folder: Path, index: int, origin: str, require_origin: bool = False
) -> dict[str, np.ndarray] | None:
    """Read a shard; None if it is not finished.

    Raises `ValueError` if it cannot be read or has another origin. Shards of earlier versions have
    no origin; they are accepted unless `require_origin`."""
    path = shard_path(folder, index)
    if not path.exists():
        return None
    arrays = _load(path)
    stated = arrays.pop(_ORIGIN, None if require_origin else origin)
    if str(stated) != origin:
        raise ValueError(f"{path} holds rows of another shard or sweep")
    return arrays


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with replacing(path) as part:
        np.savez_compressed(part, allow_pickle=False, **arrays)


def _load(path: Path) -> dict[str, np.ndarray]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged files raise errors of many types
        raise ValueError(f"{path}: got {error}, expected a file of a sweep") from error
