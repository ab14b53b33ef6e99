"""A machine at one instant, in the plane or in space."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from .._base.checks import require, require_known, require_shape
from .._jax.program_cache import kept_filter_jit
from ..mechanics import Scene, System
from ..simulation.trajectory import Trajectory
from .style import (
    BODIES,
    BODY_EDGE,
    BODY_ORDER,
    COLOURED_BY,
    FONT,
    LINES,
    OTHER_BODY,
    OTHER_LINE,
    OTHER_POINT,
    POINT_EDGE,
    POINTS,
    SCALE,
    label,
)

#: share of their size by which the values of a colour scale differ at least
EQUAL = 1e-3

#: where from a machine in space is looked at: elevation and azimuth [degrees]
VIEWS = {
    "corner": (18.0, -62.0),
    "front": (0.0, -90.0),
    "side": (0.0, 0.0),
    "top": (90.0, -90.0),
}
View = str | tuple[float, float]


def plot_scene(
    system: System,
    q,
    *,
    t: float = 0.0,
    values: Mapping[str, Any] | None = None,
    norm: Normalize | None = None,
    axes: Axes | None = None,
    title: str | None = None,
    view: View = "corner",
    focus: str | None = None,
) -> Figure:
    """Draw a machine in configuration `q`, shape (n_q,), at time `t` [s]; returns the figure.

    `values` colours lines along a scale: kind ("tendon") to one number per line, such as tensions
    [N]; `norm` fixes the ends of the scale. `axes`: where to draw; a new figure if not given.
    `view` of a machine in space: "corner", "front" (along +y), "side" (along -x), "top", or
    (elevation, azimuth) in degrees. `focus`: a kind of bodies or points ("body") that fills the
    picture; the whole machine by default.
    """
    require_shape("q", np.asarray(q), (system.n_q,))
    in_space = axes is not None and hasattr(axes, "zaxis")
    (scene,) = scenes_of(system, np.array([t]), np.asarray(q)[None], flatten=not in_space)
    with plt.rc_context(FONT):
        axes = new_axes(scene) if axes is None else axes
        fit_view(axes, [scene], view, focus)
        draw(axes, scene, values or {}, norm, None if focus is None else bounds([scene], focus))
        axes.set_title(title if title is not None else type(system).__name__)
        if values:
            shown = norm or norm_of(*values.values())
            colour_bar(axes, next(iter(values)), shown, values=values.values())
    return _figure(axes)


def plot_snapshots(
    trajectory: Trajectory,
    times: Sequence[float] | None = None,
    *,
    view: View = "corner",
    focus: str | None = None,
) -> Figure:
    """The machine side by side at several instants [s] (default: five, evenly spaced), to one
    scale, lines coloured by tension where the machine reports one, on one scale for the whole run.
    `view` and `focus`: as for `plot_scene`."""
    system = trajectory._known_system("plot_snapshots")
    t = np.asarray(trajectory.t)
    chosen = np.linspace(t[0], t[-1], 5) if times is None else np.asarray(times, dtype=float)
    inside = bool(np.all((chosen >= t[0] - 1e-9) & (chosen <= t[-1] + 1e-9)))
    require(inside, "times", chosen, f"instants from {t[0]:g} to {t[-1]:g} s")
    rows = [int(np.argmin(np.abs(t - time))) for time in chosen]
    scenes = scenes_of(system, t[rows], np.asarray(trajectory.q)[rows])
    coloured = line_values(trajectory, scenes[0])
    norm = norm_of(*coloured.values()) if coloured else None
    flat = dimension(scenes[0]) == 2
    room = None if focus is None else bounds(scenes, focus)
    with plt.rc_context(FONT):
        low, high = bounds(scenes, focus)
        shape = (high - low)[1] / (high - low)[0] if flat else 0.9
        stacked = flat and shape < 0.4  # long machines below one another
        panel = 6.0 if stacked else min(2.6, 5.0 / shape) if flat else 3.4
        count = (len(rows), 1) if stacked else (1, len(rows))
        size = (panel * count[1] + 1.2, (panel * shape + 0.6 * stacked) * count[0] + 0.6)
        options: dict[str, Any] = {} if flat else {"subplot_kw": {"projection": "3d"}}
        figure, grid = plt.subplots(
            *count,
            figsize=size,
            sharex=flat,
            sharey=flat,
            layout="constrained",
            squeeze=False,
            **options,
        )
        if not flat:  # room for the names of axes, which the layout does not see in space
            figure.get_layout_engine().set(rect=(0.0, 0.07, 1.0, 0.93))  # pyright: ignore
        axes = list(grid.flat)
        for i, scene, one in zip(rows, scenes, axes, strict=True):
            fit_view(one, scenes, view, focus)
            draw(one, scene, {kind: x[i] for kind, x in coloured.items()}, norm, room)
            one.set_title(f"t = {t[i]:.2f} s")
            if stacked:
                one.set_xlabel("x [m]" if one is axes[-1] else "")
            elif one is not axes[0]:
                one.set_ylabel("")
                if not flat:  # one set of numbers is enough
                    one.set(xlabel="", zlabel="", xticklabels=[], yticklabels=[], zticklabels=[])
        if norm is not None:
            colour_bar(axes[-1], next(iter(coloured)), norm, axes, coloured.values())
    return figure


def _angles(view: View) -> tuple[float, float]:
    """Elevation and azimuth of the eye [degrees]."""
    if isinstance(view, str):
        require_known("view", view, VIEWS)
        return VIEWS[view]
    pair = len(view) == 2 and all(np.isfinite(x) for x in view)
    require(pair, "view", view, "a name, or (elevation, azimuth) in degrees")
    return float(view[0]), float(view[1])


# --- pieces shared with films --------------------------------------------------------------------
def scenes_of(system: System, t: np.ndarray, q: np.ndarray, *, flatten: bool = True) -> list[Scene]:
    """Scenes at times `t` [s], shape (k,), in configurations `q`, shape (k, n_q). With `flatten`,
    a machine in a vertical plane y = const is drawn in the plane (x, z)."""
    batch = stacked_scenes(system, t, q, flatten=flatten)
    return [jax.tree.map(lambda x, i=i: x[i], batch) for i in range(len(t))]


def stacked_scenes(system: System, t: np.ndarray, q: np.ndarray, *, flatten: bool = True) -> Scene:
    """The same as one scene whose arrays have a leading axis of length k."""
    batch = _geometries(system, np.asarray(t), np.asarray(q))
    if flatten and dimension(batch) == 3 and not batch.bodies and _stays_upright(batch):
        upright = jax.tree.map(lambda x: x[..., [0, 2]], batch)
        batch = Scene(upright.lines, upright.points, plane="xz")
    return batch


def _stays_upright(batch: Scene) -> bool:
    points = np.concatenate([x.reshape(-1, 3) for x in jax.tree.leaves(batch)])
    x, y, z = np.ptp(points, axis=0)
    return bool(y <= 1e-6 * max(x, z))


#: instants whose geometry is found at once: one compiled program for pictures, films and pages
_BLOCK = 128


def _geometries(system: System, t: np.ndarray, q: np.ndarray) -> Scene:
    padded = np.minimum(np.arange(-(-len(t) // _BLOCK) * _BLOCK), len(t) - 1)
    blocks = [
        jax.tree.map(np.asarray, _block(system, t[rows], q[rows]))
        for rows in padded.reshape(-1, _BLOCK)
    ]
    return jax.tree.map(lambda *x: np.concatenate(x)[: len(t)], *blocks)


@kept_filter_jit
def _block(system: System, t, q) -> Scene:
    return jax.vmap(system.presentation().geometry)(t, q)


def dimension(scene: Scene) -> int:
    """2 or 3."""
    arrays = _positions(scene)
    require(len(arrays) > 0, "Presentation.geometry", "an empty Scene", "something to draw")
    return arrays[0].shape[-1]


def _positions(scene: Scene) -> list:
    corners = [np.asarray(bodies.corners()) for bodies in scene.bodies.values()]
    return [*scene.lines.values(), *scene.points.values(), *corners]


def new_axes(scene: Scene) -> Axes:
    flat = dimension(scene) == 2
    options = {} if flat else {"projection": "3d"}
    return plt.figure(figsize=(5.0, 5.5), layout="constrained").add_subplot(**options)


def bounds(scenes: Sequence[Scene], focus: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of all scenes, or of one kind of bodies or points of them, with a
    margin [m], shape (2 or 3,) each."""
    d = dimension(scenes[0])
    if focus is None:
        arrays = [x for s in scenes for x in _positions(s)]
    else:
        require_known("focus", focus, [*scenes[0].bodies, *scenes[0].points])
        arrays = [
            s.bodies[focus].corners() if focus in s.bodies else s.points[focus] for s in scenes
        ]
    points = np.concatenate([np.asarray(x).reshape(-1, d) for x in arrays])
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(float(np.max(high - low)), 1e-6)
    if focus is None:
        return low - 0.06 * size, high + 0.06 * size
    # what is around it is part of the picture, as deep and high as wide
    middle = 0.5 * (low + high)
    return middle - 0.8 * size, middle + 0.8 * size


def fit_view(
    axes: Axes, scenes: Sequence[Scene], view: View = "corner", focus: str | None = None
) -> None:
    """Limits that hold all scenes, equal scales and labels with units."""
    low, high = bounds(scenes, focus)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_xlabel("x [m]")
    axes.set_ylabel(f"{scenes[0].plane[1]} [m]")
    if len(low) == 3:
        axes.set_zlim(low[2], high[2])  # pyright: ignore[reportAttributeAccessIssue]
        axes.set_zlabel("z [m]")  # pyright: ignore[reportAttributeAccessIssue]
        size = high - low
        for axis, extent in zip((axes.xaxis, axes.yaxis, axes.zaxis), size, strict=True):  # pyright: ignore
            # numbers along a short edge would lie on each other
            axis.set_major_locator(MaxNLocator(3) if extent > 0.2 * max(size) else NullLocator())
            axis.set_pane_color((0.97, 0.97, 0.97, 1.0))  # pyright: ignore
            axis._axinfo["grid"].update(color="#DDDDDD", linewidth=0.6)  # pyright: ignore
        elevation, azimuth = _angles(view)
        axes.view_init(elev=elevation, azim=azimuth)  # pyright: ignore
        if view in ("front", "side", "top"):  # lengths can be read off: nothing is foreshortened
            axes.set_proj_type("ortho")  # pyright: ignore
            _hide_depth(axes, view)
        # equal scales, and less of the empty frame that axes in space leave around themselves; long
        # machines fill its width as they are
        flatness = max(0.0, 1.0 - size[2] / max(size[:2]))
        longness = 1.0 - min(size[:2]) / max(size[:2])
        zoom = 0.88 + 0.27 * flatness - 0.3 * longness
        axes.set_box_aspect(size, zoom=zoom)  # pyright: ignore
        return
    axes.set_aspect("equal")


def _hide_depth(axes: Any, view: str) -> None:
    """Hide tick labels along the line of sight, where they overlap, and leave space for the other
    axis labels."""
    along = {"front": axes.yaxis, "side": axes.xaxis, "top": axes.zaxis}[view]
    along.set_major_locator(NullLocator())
    along.set_label_text("")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.labelpad = 16.0


def line_values(trajectory: Trajectory, scene: Scene) -> dict[str, np.ndarray]:
    """Values that colour lines, by kind of line, shape (k, n_lines)."""
    found = {}
    for kind, lines in scene.lines.items():
        values = trajectory.outputs.get(COLOURED_BY.get(kind, ""))
        if values is not None and values.ndim == 2 and values.shape[1] == lines.shape[-3]:
            found[kind] = np.asarray(values)
    return found


def norm_of(*values) -> Normalize:
    """A colour scale from zero to the largest value; negative values get the colour of pushing
    cables. For equal values it spans a small range, so that round-off does not appear as colour."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in values])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    if high - low < EQUAL * abs(high):
        low, high = low - EQUAL * abs(high), high + EQUAL * abs(high)
    return Normalize(max(low, 0.0), high) if high > 0 else Normalize(low, high)


def draw(
    axes: Axes, scene: Scene, values: Mapping[str, Any], norm: Normalize | None, room=None
) -> None:
    """Draw a scene; in space only the part between the corners of `room` [m]."""
    flat = dimension(scene) == 2
    if not flat:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection as Lines
    else:
        Lines = LineCollection
    for kind, lines in scene.lines.items():
        style = LINES.get(kind, OTHER_LINE)
        options: dict = {"linewidths": style.width, "zorder": style.order}
        if kind in values:
            lowest = norm or norm_of(values[kind])
            options |= {"array": np.asarray(values[kind]), "cmap": SCALE, "norm": lowest}
        else:
            options |= {"colors": style.colour}
        shape = shape_of(np.asarray(lines), style.zigzag)
        if room is not None and not flat:
            shape = _cut(shape, *room)
        axes.add_collection(Lines(list(shape), **options), autolim=False)
    if scene.bodies:
        axes.add_collection(_filled(scene, flat), autolim=False)
    for kind, points in scene.points.items():
        style = POINTS.get(kind, OTHER_POINT)
        if room is not None and not flat:
            points = np.asarray(points)
            points = points[np.all((points >= room[0]) & (points <= room[1]), axis=1)]
        edge, colour = POINT_EDGE
        look = {"s": style.size, "c": style.colour, "edgecolors": colour, "linewidths": edge}
        look |= {"marker": style.marker} | ({} if flat else {"depthshade": False})
        axes.scatter(*np.asarray(points).T, zorder=style.order, **look)


def _cut(lines: np.ndarray, low, high, pieces: int = 200) -> np.ndarray:
    """Lines (n, k, 3) refined and NaN outside a box, because 3D axes do not clip."""
    k = lines.shape[1]
    at = np.linspace(0, k - 1, pieces * (k - 1) + 1)
    i = np.minimum(at.astype(int), k - 2)
    share = (at - i)[None, :, None]
    fine = (1.0 - share) * lines[:, i] + share * lines[:, i + 1]
    inside = np.all((fine >= low) & (fine <= high), axis=-1, keepdims=True)
    return np.where(inside, fine, np.nan)


def _filled(scene: Scene, flat: bool):
    """All faces of all bodies as one artist, which in space draws the far ones first."""
    if flat:
        Faces = PolyCollection
    else:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection as Faces
    counts = {kind: int(np.prod(x.faces.shape[:2])) for kind, x in scene.bodies.items()}
    styles = [BODIES.get(kind, OTHER_BODY) for kind, n in counts.items() for _ in range(n)]
    return Faces(
        _faces(scene),
        facecolors=[to_rgba(style.face, style.opacity) for style in styles],
        edgecolors=[to_rgba(style.edge, style.opacity) for style in styles],
        linewidths=BODY_EDGE,
        zorder=BODY_ORDER,
    )


def _faces(scene: Scene) -> list[np.ndarray]:
    every = (np.asarray(bodies.corners()) for bodies in scene.bodies.values())
    return [face for x in every for face in x.reshape(-1, *x.shape[-2:])]


def shape_of(lines: np.ndarray, zigzag: bool, coils: int = 7) -> np.ndarray:
    """Lines as drawn: straight springs in the plane become coils of fixed width."""
    if not zigzag or lines.shape[1:] != (2, 2):
        return lines
    start, along = lines[:, :1], lines[:, 1:] - lines[:, :1]
    # straight ends, and in between corners to either side in turn
    where = np.concatenate([[0.0], np.linspace(0.18, 0.82, 2 * coils + 1), [1.0]])
    side = np.concatenate([[0.0], [0.0], np.tile([1.0, -1.0], coils)[:-1], [0.0], [0.0]])
    across = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    length = np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-12)
    width = 0.045 * np.median(length)
    return start + where[:, None] * along + width * side[:, None] * across / length


def colour_bar(
    axes: Axes, kind: str, norm: Normalize, around: list[Axes] | None = None, values=()
) -> None:
    """The scale that colours lines of `kind`, beside `axes` or beside all of `around`; with an
    arrow where some of the `values` are below it."""
    text = label(COLOURED_BY.get(kind, kind))
    below = any(np.any(np.asarray(v) < norm.vmin) for v in values)
    extend = "min" if below else "neither"
    place = axes if around is None else around
    scale = ScalarMappable(norm, SCALE)
    _figure(axes).colorbar(scale, ax=place, label=text, shrink=0.8, extend=extend)


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure
