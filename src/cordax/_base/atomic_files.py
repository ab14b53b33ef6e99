"""Files that appear complete or not at all."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to, moved there on success and removed on failure.

    A reader never sees half a file, and an interrupted run leaves the old one as it was. Missing
    folders are made, and parts that killed processes have left in the folder are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    # same folder: the move stays within one file system; same suffix: it chooses the format
    part = path.with_name(f".{path.stem}.{_host()}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        with open(part, "r+b") as file:  # Windows syncs only files open for writing
            os.fsync(file.fileno())  # on disk before the old file goes
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _host() -> str:
    return re.sub(r"\W", "-", platform.node()) or "host"


def _sweep(folder: Path) -> None:
    """Remove parts of processes of this machine that are no more."""
    for part in folder.glob(f".*.{_host()}.*.part*"):
        found = re.fullmatch(rf"\..*\.{re.escape(_host())}\.(\d+)\.part(\.\w+)?", part.name)
        if found and not _alive(int(found[1])):
            part.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # where signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
