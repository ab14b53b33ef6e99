"""Atomic writing of files: a file is either complete or not there."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Context with a temporary path in the folder of `path`, to which the file is written.

    On success the temporary file replaces `path`; on failure it is removed. So a reader never sees
    an incomplete file, and an interrupted run leaves the old file unchanged. Missing folders are
    created. Temporary files that killed processes have left in the folder are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    # same folder: the move stays within one file system; same suffix: it determines the format
    part = path.with_name(f".{path.stem}.{_host()}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        with open(part, "r+b") as file:  # Windows syncs only files open for writing
            os.fsync(file.fileno())  # on disk before the old file is replaced
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _host() -> str:
    return re.sub(r"\W", "-", platform.node()) or "host"


def _sweep(folder: Path) -> None:
    """Remove temporary files of processes of this computer that no longer exist."""
    for part in folder.glob(f".*.{_host()}.*.part*"):
        found = re.fullmatch(rf"\..*\.{re.escape(_host())}\.(\d+)\.part(\.\w+)?", part.name)
        if found and not _alive(int(found[1])):
            part.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True
