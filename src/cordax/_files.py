"""Files that appear complete or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to, moved there on success and removed on failure.

    A reader never sees half a file, and an interrupted run leaves the old one as it was. Missing
    folders are made.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # same folder: the move stays within one file system; same suffix: it chooses the format
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())  # on disk before the old file goes
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
