"""Films of a trajectory."""

import subprocess
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .._checks import require, require_known
from .._files import replacing
from ..mechanics import Scene
from ..trajectory import Trajectory
from .scene import (
    View,
    bounds,
    colour_bar,
    dimension,
    draw,
    fit_view,
    line_values,
    move,
    norm_of,
    scenes_of,
)
from .style import FONT


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
    with replacing(path) as part:
        _WRITERS[path.suffix.lower()](part, _frames(trajectory, fps, speed, dpi, title, view), fps)
    return path


def _frames(trajectory: Trajectory, fps, speed, dpi, title, view) -> Iterator[np.ndarray]:
    """Pictures, shape (height, width, 3), even sizes, bytes."""
    system = trajectory._known_system("animate")
    t = np.asarray(trajectory.t)
    count = max(2, round((t[-1] - t[0]) * fps / speed) + 1)
    rows = np.searchsorted(t, np.linspace(t[0], t[-1], count) - 1e-9).clip(0, len(t) - 1)
    scenes = scenes_of(system, t[rows], np.asarray(trajectory.q)[rows])
    coloured = line_values(trajectory, scenes[0])
    at = lambda i: {kind: x[rows[i]] for kind, x in coloured.items()}
    norm = norm_of(*coloured.values()) if coloured else None
    with plt.rc_context(FONT):
        figure = _stage(scenes, dpi, norm is not None)
        canvas = FigureCanvasAgg(figure)
        axes = figure.axes[0]
        fit_view(axes, scenes, view)
        axes.set_title(title if title is not None else type(system).__name__)
        if norm is not None:
            colour_bar(axes, next(iter(coloured)), norm, values=coloured.values())
        write = axes.text if dimension(scenes[0]) == 2 else axes.text2D  # pyright: ignore
        clock = write(0.03, 0.985, "", transform=axes.transAxes, va="top", family="monospace")
        artists = draw(axes, scenes[0], at(0), norm)
        # Everything but the machine is drawn once and kept as the background.
        for artist in (*artists.values(), clock):
            artist.set_animated(True)
        canvas.draw()
        background = canvas.copy_from_bbox(figure.bbox)  # pyright: ignore
        for i, scene in enumerate(scenes):
            move(artists, scene, at(i))
            clock.set_text(f"t = {t[rows[i]]:5.2f} s")
            canvas.restore_region(background)  # pyright: ignore
            for artist in (*_far_first(artists.values(), dimension(scene)), clock):
                axes.draw_artist(artist)
            yield np.array(canvas.buffer_rgba())[..., :3]


def _far_first(artists: Iterable, dimension: int) -> list:
    """In the order of drawing: in space it depends on the distance to the eye."""
    if dimension == 2:
        return sorted(artists, key=lambda a: a.get_zorder())
    return sorted(artists, key=lambda a: a.do_3d_projection(), reverse=True)


def _stage(scenes: list[Scene], dpi: float, with_bar: bool) -> Figure:
    """An empty figure in the proportions of the machine, an even number of pixels each way."""
    low, high = bounds(scenes)
    flat = len(low) == 2
    height = 5.5
    width = (height - 1.0) * (high - low)[0] / (high - low)[1] + 1.0 if flat else 6.0
    width = min(max(width, 3.2), 8.0) + 1.0 * with_bar
    if flat:  # long machines need no height
        height = min(height, (width - 1.0) * (high - low)[1] / (high - low)[0] + 1.6)
    even = lambda inches: 2 * round(inches * dpi / 2) / dpi
    figure = Figure(figsize=(even(width), even(height)), dpi=dpi, layout="constrained")
    figure.add_subplot(**({} if flat else {"projection": "3d"}))
    return figure


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
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
    raw = f"-f rawvideo -pix_fmt rgb24 -s {first.shape[1]}x{first.shape[0]} -r {fps:g} -i -"
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
