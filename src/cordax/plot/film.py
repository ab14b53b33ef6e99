"""Frames of a film. Axes are drawn once. The machine is drawn stroke by stroke, at pixel positions
computed for all instants at once: matplotlib artists for each frame would take most of the time.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D, IdentityTransform

from ..mechanics import Scene
from ..simulation.trajectory import Trajectory
from .scene import (
    View,
    bounds,
    colour_bar,
    dimension,
    fit_view,
    line_values,
    norm_of,
    shape_of,
    stacked_scenes,
)
from .style import (
    BODIES,
    BODY_EDGE,
    BODY_ORDER,
    FONT,
    LINES,
    OTHER_BODY,
    OTHER_LINE,
    OTHER_POINT,
    POINT_EDGE,
    POINTS,
    SCALE,
)


class Film(NamedTuple):
    """Content of a film at k instants `t` [s]: `scene`, whose arrays have a leading axis of k, and
    `values` (k, n) that colour kinds of lines on the scale `norm`. It holds only arrays and
    strings, so it can be sent to another process."""

    t: np.ndarray
    scene: Scene
    values: dict[str, np.ndarray]
    norm: Normalize | None
    title: str
    view: View


def film_of(
    trajectory: Trajectory, fps: float, speed: float, title: str | None, view: View
) -> Film:
    """Prepare a film with `fps` frames per second, at `speed` times real time."""
    system = trajectory._known_system("animate")
    t = np.asarray(trajectory.t)
    count = max(2, round((t[-1] - t[0]) * fps / speed) + 1)
    rows = np.searchsorted(t, np.linspace(t[0], t[-1], count) - 1e-9).clip(0, len(t) - 1)
    scene = stacked_scenes(system, t[rows], np.asarray(trajectory.q)[rows])
    coloured = line_values(trajectory, scene)
    return Film(
        t=t[rows],
        scene=scene,
        values={kind: x[rows] for kind, x in coloured.items()},
        norm=norm_of(*coloured.values()) if coloured else None,
        title=type(system).__name__ if title is None else title,
        view=view,
    )


def frames(film: Film, dpi: float) -> Iterator[np.ndarray]:
    """Pictures, shape (height, width, 4), bytes of red, green, blue and a fourth to be ignored;
    even sizes."""
    with plt.rc_context(FONT):
        figure = stage(film.scene, dpi, film.norm is not None)
        canvas = FigureCanvasAgg(figure)
        axes = figure.axes[0]
        fit_view(axes, [film.scene], film.view)
        axes.set_title(film.title)
        if film.norm is not None:
            kind = next(iter(film.values))
            colour_bar(axes, kind, film.norm, values=film.values.values())
        write = axes.text if dimension(film.scene) == 2 else axes.text2D  # pyright: ignore
        clock = write(0.03, 0.985, "", transform=axes.transAxes, va="top", family="monospace")
        clock.set_animated(True)
        canvas.draw()
        background = canvas.copy_from_bbox(figure.bbox)  # pyright: ignore
        pieces = _pieces(film, axes, canvas.get_renderer())
        for i, time in enumerate(film.t):
            canvas.restore_region(background)  # pyright: ignore
            for piece in sorted(pieces, key=lambda piece: piece.depth[i], reverse=True):
                piece.draw(i)
            clock.set_text(f"t = {time:5.2f} s")
            axes.draw_artist(clock)
            yield np.array(canvas.buffer_rgba())


def stage(scene: Scene, dpi: float, with_bar: bool) -> Figure:
    """An empty figure in the proportions of the machine, an even number of pixels each way."""
    low, high = bounds([scene])
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


class _Piece(NamedTuple):
    """A part of the machine that is drawn at once; the largest depth (k,) comes first."""

    depth: np.ndarray
    draw: Callable[[int], None]


def _pieces(film: Film, axes: Axes, renderer: RendererAgg) -> list[_Piece]:
    scene = film.scene
    found = []
    for kind, places in scene.lines.items():
        style = LINES.get(kind, OTHER_LINE)
        shaped = np.stack([shape_of(x, style.zigzag) for x in np.asarray(places)])
        pixels, depth = _on_screen(axes, shaped, style.order)
        found.append(_lines(renderer, pixels, depth, style, film.values.get(kind), film.norm))
    if scene.bodies:
        found.append(_bodies(axes, renderer, scene))
    for kind, places in scene.points.items():
        style = POINTS.get(kind, OTHER_POINT)
        pixels, depth = _on_screen(axes, np.asarray(places), style.order)
        found.append(_points(renderer, pixels, depth, style))
    return found


def _on_screen(axes: Axes, places: np.ndarray, order: float) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (k, ..., 2) and depths (k, ...) of positions (k, ..., 2 or 3) [m]. Depth: `order`
    in the plane and the distance from the eye in space."""
    rows = places.reshape(-1, places.shape[-1])
    depth = np.full(len(rows), -float(order))
    if rows.shape[1] == 3:
        from mpl_toolkits.mplot3d.proj3d import proj_transform

        *across, depth = proj_transform(*rows.T, axes.M)  # pyright: ignore
        rows = np.stack(across, axis=1)
    pixels = axes.transData.transform(np.asarray(rows))
    return pixels.reshape(*places.shape[:-1], 2), np.asarray(depth).reshape(places.shape[:-1])


def _nearest(depth: np.ndarray) -> np.ndarray:
    """Smallest depth of all parts (k,), as for 3D axes."""
    return np.min(depth.reshape(len(depth), -1), axis=1, initial=np.inf)


def _pen(renderer: RendererAgg, width: float, colour=None):
    pen = renderer.new_gc()
    pen.set_linewidth(renderer.points_to_pixels(width))
    if colour is not None:
        pen.set_foreground(colour)
    return pen


def _lines(renderer, pixels, depth, style, values, norm) -> _Piece:
    _, n, corners, _ = pixels.shape
    pen, here = _pen(renderer, style.width, style.colour), IdentityTransform()
    if values is None:
        codes = np.tile([Outline.MOVETO] + [Outline.LINETO] * (corners - 1), n)
        draw = lambda i: renderer.draw_path(pen, Outline(pixels[i].reshape(-1, 2), codes), here)
        return _Piece(_nearest(depth), draw)
    colours = SCALE(norm(values))

    def coloured(i: int) -> None:
        for line, colour in zip(pixels[i], colours[i], strict=True):
            pen.set_foreground(colour, isRGBA=True)
            renderer.draw_path(pen, Outline(line), here)

    return _Piece(_nearest(depth), coloured)


def _bodies(axes: Axes, renderer: RendererAgg, scene: Scene) -> _Piece:
    """All faces of all bodies, the far ones first."""
    here = IdentityTransform()
    faces, depths, looks = [], [], []
    for kind, bodies in scene.bodies.items():
        style = BODIES.get(kind, OTHER_BODY)
        x = np.asarray(bodies.corners())
        pixels, depth = _on_screen(axes, x.reshape(len(x), -1, *x.shape[-2:]), BODY_ORDER)
        closed = np.concatenate([pixels, pixels[:, :, :1]], axis=2)
        pen = _pen(renderer, BODY_EDGE, to_rgba(style.edge, style.opacity))
        faces += list(np.swapaxes(closed, 0, 1))
        depths.append(depth)
        looks += [(pen, to_rgba(style.face, style.opacity))] * pixels.shape[1]
    far_first = np.argsort(-np.concatenate([d.mean(axis=2) for d in depths], axis=1), kind="stable")

    def draw(i: int) -> None:
        for j in far_first[i]:
            pen, face = looks[j]
            renderer.draw_path(pen, Outline(faces[j][i], closed=True), here, face)

    return _Piece(np.min([_nearest(d) for d in depths], axis=0), draw)


def _points(renderer, pixels, depth, style) -> _Piece:
    width, colour = POINT_EDGE
    marker = MarkerStyle(style.marker)
    outline = marker.get_path().transformed(marker.get_transform())
    size = Affine2D().scale(renderer.points_to_pixels(np.sqrt(style.size)))
    pen, face, here = _pen(renderer, width, colour), to_rgba(style.colour), IdentityTransform()
    draw = lambda i: renderer.draw_markers(pen, outline, size, Outline(pixels[i]), here, face)
    return _Piece(_nearest(depth), draw)
