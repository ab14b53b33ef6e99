"""Files a command is about to write: checked before it computes anything."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from .._base.checks import require


def claim(files: Iterable[Path], overwrite: bool) -> None:
    """Refuse to replace files unless `overwrite`, and films nothing here can write."""
    files = list(files)
    for folder in {path.parent for path in files}:
        require_folder(folder)
    films = [path for path in files if path.suffix == ".mp4"]
    if films:
        require(
            find_spec("imageio_ffmpeg") is not None,
            "film",
            "mp4",
            "gif: MP4 films need imageio-ffmpeg, the `film` extra of cordax",
        )
    there = [path for path in files if path.exists()]
    if there and not overwrite:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise ValueError(
            f"{there[0]}{more} exist already: choose another folder with --output, or replace "
            "files with --overwrite"
        )


def require_folder(path: Path) -> None:
    """Refuse a file where a folder is to be, and a place where nothing can be written."""
    files = [x for x in (path, *path.parents) if x.exists() and not x.is_dir()]
    require(
        not files, "output", f"{path}, where {''.join(map(str, files[:1]))} is a file", "a folder"
    )
    there = next(x for x in (path, *path.absolute().parents) if x.exists())
    try:
        with TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        given = f"{path}, where nothing can be written ({error.strerror})"
        raise ValueError(f"output: got {given}, expected a folder") from error


def run_files(stem: Path, figure: bool, film: str, npz: bool, csv: bool = False) -> list[Path]:
    """What `cordax run` writes beside `stem`."""
    ends = [".npz"] * npz + [".csv"] * csv + [".png", "_motion.png"] * figure
    ends += [f".{film}"] * (film != "none")
    return [stem.with_name(stem.name + end) for end in ends]
