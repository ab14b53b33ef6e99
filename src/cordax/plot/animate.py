"""Films of a trajectory."""

import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._base.atomic_files import replacing
from .._base.checks import require, require_known
from ..simulation.trajectory import Trajectory
from .film import Film, film_of, frames
from .scene import View


def animate(
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float = 25.0,
    speed: float = 1.0,
    dpi: float = 90.0,
    title: str | None = None,
    view: View = "corner",
) -> Path:
    """Write a film of the machine to `path`: `.gif`, or `.mp4` (needs the `film` extra).

    `fps` frames per second of film; `speed` times real time (0.1: slow motion). Lines are coloured
    by tension where the machine reports one, on one scale for the whole run; `view`: as for
    `plot_scene`. Returns the path.
    """
    path = Path(path)
    require_known("path suffix", path.suffix.lower(), _WRITERS)
    require(fps > 0 and np.isfinite(fps), "fps", fps, "a finite number > 0")
    require(speed > 0 and np.isfinite(speed), "speed", speed, "a finite number > 0")
    return write_film(film_of(trajectory, fps, speed, title, view), path, fps, dpi)


def write_film(film: Film, path: Path, fps: float, dpi: float) -> Path:
    """As `animate`, for a prepared `Film`."""
    with replacing(path) as part:
        _WRITERS[path.suffix.lower()](part, frames(film, dpi), fps)
    return path


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    from PIL import Image

    pictures = [Image.fromarray(frame).convert("RGB") for frame in frames]
    # One palette for the film, from frames spread over it: colours do not flicker.
    chosen = [pictures[i] for i in np.linspace(0, len(pictures) - 1, 4).astype(int)]
    sheet = Image.new("RGB", (chosen[0].width, 4 * chosen[0].height))
    for i, picture in enumerate(chosen):
        sheet.paste(picture, (0, i * picture.height))
    palette = sheet.quantize(128)
    first, *rest = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    # GIF counts hundredths of a second
    delay = 10 * max(2, round(100.0 / fps))
    first.save(path, save_all=True, append_images=rest, duration=delay, loop=0, optimize=False)


def _write_mp4(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ImportError(
            "MP4 films need imageio-ffmpeg, the `film` extra of cordax; GIF films do not"
        ) from error
    first = next(frames)
    raw = f"-f rawvideo -pix_fmt rgb0 -s {first.shape[1]}x{first.shape[0]} -r {fps:g} -i -"
    # pixel format and order of the file's parts that browsers and players of any age can stream
    coded = "-an -c:v libx264 -pix_fmt yuv420p -crf 20 -movflags +faststart"
    program = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error"]
    with warnings.catch_warnings():
        # JAX warns of any fork; this child runs another program at once, so no lock can be held
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        process = subprocess.Popen(
            [*program, *raw.split(), *coded.split(), str(path)], stdin=subprocess.PIPE
        )
    with process:
        assert process.stdin is not None
        for frame in (first, *frames):
            process.stdin.write(np.ascontiguousarray(frame).tobytes())
    if process.returncode:
        raise OSError(f"ffmpeg could not write {path}: exit code {process.returncode}")


_WRITERS = {".gif": _write_gif, ".mp4": _write_mp4}
