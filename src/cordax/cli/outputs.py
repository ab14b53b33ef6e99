"""Checks of output files and folders before a command computes anything."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from .._base.checks import require


def claim(files: Iterable[Path], overwrite: bool) -> None:
    """Raise `ValueError` if a file exists and `overwrite` is False, if a folder cannot be written,
    or if an MP4 film is wanted without imageio-ffmpeg."""
    files = list(files)
    for folder in {path.parent for path in files}:
        require_folder(folder)
    films = [path for path in files if path.suffix == ".mp4"]
    if films:
        require(
            find_spec("imageio_ffmpeg") is not None,
            "film",
            "mp4",
            "gif: MP4 films need imageio-ffmpeg (pip install cordax[film])",
        )
    existing = [path for path in files if path.exists()]
    if existing and not overwrite:
        more = f" and {len(existing) - 1} more files" if len(existing) > 1 else ""
        verb = "exist" if more else "exists"
        raise ValueError(
            f"{existing[0]}{more} already {verb}: choose another folder with --output, or replace "
            "files with --overwrite"
        )


def require_folder(path: Path) -> None:
    """Raise `ValueError` if `path` is or lies in a file, or if files cannot be written there."""
    files = [x for x in (path, *path.parents) if x.exists() and not x.is_dir()]
    require(not files, "output", f"{path}: {''.join(map(str, files[:1]))} is a file", "a folder")
    parent = next(x for x in (path, *path.absolute().parents) if x.exists())
    try:
        with TemporaryDirectory(dir=parent):
            pass
    except OSError as error:
        reason = f"{path}, which cannot be written ({error.strerror})"
        raise ValueError(f"output: got {reason}, expected a folder") from error


def run_files(stem: Path, figure: bool, film: str, npz: bool, csv: bool = False) -> list[Path]:
    """Files that `cordax run` writes: `stem` with different endings."""
    endings = [".npz"] * npz + [".csv"] * csv + [".png", "_motion.png"] * figure
    endings += [f".{film}"] * (film != "none")
    return [stem.with_name(stem.name + ending) for ending in endings]
