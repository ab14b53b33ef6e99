"""The machine in the browser: objects are created once and moved from instant to instant."""

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from ..plot.playback import SLACK, Played
from ..plot.style import (
    BODIES,
    COLOURED_BY,
    LINES,
    OTHER_BODY,
    OTHER_LINE,
    OTHER_POINT,
    POINTS,
    SCALE,
    WHEELS,
    label,
)

SLACK_GREY = (0.6, 0.6, 0.6)
TRACE = "#CC79A7"
#: pieces of a cable of two points, so that a slack one can be dashed
_PIECES = 24
#: points of the way that is drawn
_TRACE = 400


#: vertical angle of view of the first camera [rad]
FIELD_OF_VIEW = np.radians(40.0)


def camera_distance(size: np.ndarray, direction: np.ndarray) -> float:
    """Distance [m] from the centre of a box at which all of it is visible, with a margin of 10 %,
    in a square window (wider windows have side panels). `size`: edges of the box, shape (3,) [m];
    `direction`: unit vector from the box to the camera, shape (3,)."""
    corners = 0.5 * size * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    right = np.cross([0.0, 0.0, 1.0], direction)
    right /= np.linalg.norm(right)
    above = np.cross(direction, right)
    offset = np.maximum(np.abs(corners @ right), np.abs(corners @ above))
    distance = 1.1 * offset / np.tan(0.5 * FIELD_OF_VIEW) + corners @ direction
    return max(float(np.max(distance)), 1e-3)


class Stage:
    """Shows instants of a `Played` run on a viser server. Machines in a plane stand upright in
    it: their second axis is drawn as z."""

    def __init__(self, server: Any, run: Played):
        self.server, self.run = server, run
        self.flat = len(run.low) == 2
        self.size = float(np.linalg.norm(run.high - run.low))
        self.show_trace = True
        low, high = self._in_space(np.stack([run.low, run.high]))
        self._ground(low, high)
        self._camera(low, high)
        self._lines = {kind: self._add_lines(kind) for kind in run.scene.lines}
        self._points = {kind: self._add_points(kind) for kind in run.scene.points}
        self._bodies = {kind: self._add_bodies(kind) for kind in run.scene.bodies}
        self._way = None if run.trace is None else self._add_trace()

    def replace(self, run: Played) -> None:
        """Show another run of a machine of the same shape."""
        self.run = run
        for kind, made in self._bodies.items():
            faces = np.asarray(run.scene.bodies[kind].faces)[0]
            for handle, corners in zip(made, faces, strict=True):
                handle.vertices = self._vertices(corners, kind)

    def show(self, i: int) -> None:
        """Show instant `i`."""
        scene = self.run.scene
        with self.server.atomic():
            for kind, handle in self._lines.items():
                points, colours = self._segments(kind, i)
                handle.points, handle.colors = points, colours
            for kind, handle in self._points.items():
                handle.points = self._in_space(scene.points[kind][i]).astype(np.float32)
            for kind, made in self._bodies.items():
                bodies = scene.bodies[kind]
                places = self._in_space(np.asarray(bodies.position)[i])
                turns = self._turned(np.asarray(bodies.rotation)[i])
                there = np.isfinite(np.asarray(bodies.position)[i]).all(axis=-1)
                for handle, place, turn, seen in zip(made, places, turns, there, strict=True):
                    handle.position, handle.wxyz, handle.visible = place, turn, bool(seen)
            if self._way is not None:
                self._way.visible = self.show_trace and i > 0
                self._way.points = self._path_until(i)

    # --- what there is
    def _ground(self, low, high) -> None:
        middle, span = 0.5 * (low + high), float(np.max((high - low)[:2]))
        cell = 10.0 ** np.floor(np.log10(max(span, 1e-9) / 2.0))
        self.server.scene.add_grid(
            "/ground",
            width=4 * span,
            height=4 * span,
            position=(middle[0], middle[1], low[2]),
            cell_size=cell,
            section_size=10 * cell,
            cell_color=(225, 225, 225),
            section_color=(190, 190, 190),
            plane="xy",
        )

    def _camera(self, low, high) -> None:
        middle = 0.5 * (low + high)
        towards = np.array([0.0, -1.0, 0.12]) if self.flat else np.array([0.47, -0.88, 0.45])
        camera = self.server.initial_camera
        camera.up = (0.0, 0.0, 1.0)
        camera.look_at = tuple(middle)
        camera.fov = FIELD_OF_VIEW
        towards /= np.linalg.norm(towards)
        camera.position = tuple(middle + camera_distance(high - low, towards) * towards)

    def _add_lines(self, kind: str):
        style = LINES.get(kind, OTHER_LINE)
        points, colours = self._segments(kind, 0)
        return self.server.scene.add_line_segments(
            f"/lines/{kind}", points, colours, thickness=1.6 * style.width, thickness_units="screen"
        )

    def _add_points(self, kind: str):
        style = POINTS.get(kind, OTHER_POINT)
        # white points have a dark rim elsewhere; here they would be lost on white
        colour = "#555555" if style.colour == "#FFFFFF" else style.colour
        return self.server.scene.add_point_cloud(
            f"/points/{kind}",
            self._in_space(self.run.scene.points[kind][0]).astype(np.float32),
            np.asarray(to_rgb(colour)),
            point_size=1.2e-3 * np.sqrt(style.size) * self.size,
            point_shape="square" if style.marker == "s" else "circle",
            point_shading="flat",
            precision="float32",
        )

    def _add_bodies(self, kind: str) -> list:
        style, faces = BODIES.get(kind, OTHER_BODY), np.asarray(self.run.scene.bodies[kind].faces)
        made = []
        for i, corners in enumerate(faces[0]):
            made.append(
                self.server.scene.add_mesh_simple(
                    f"/bodies/{kind}_{i}",
                    self._vertices(corners, kind),
                    _triangles(*corners.shape[:2]),
                    color=to_rgb(style.face),
                    opacity=style.opacity if style.opacity < 0.9 else None,
                    flat_shading=True,
                    side="double",
                )
            )
        return made

    def _add_trace(self):
        return self.server.scene.add_line_segments(
            "/trace",
            self._path_until(0),
            np.asarray(to_rgb(TRACE)),
            thickness=2.0,
            thickness_units="screen",
        )

    # --- arrays of one instant
    def _segments(self, kind: str, i: int):
        """Ends (n, 2, 3) and colours (n, 2, 3) of the pieces of lines; a slack line is grey, and
        every other piece of it has no length."""
        lines = self._in_space(np.asarray(self.run.scene.lines[kind])[i])
        if lines.shape[1] == 2 and kind in self.run.tension:
            share = np.linspace(0.0, 1.0, _PIECES + 1)[None, :, None]
            lines = lines[:, :1] + share * (lines[:, 1:] - lines[:, :1])
        pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2)
        n, k = pieces.shape[:2]
        colours = np.broadcast_to(to_rgb(LINES.get(kind, OTHER_LINE).colour), (n, 3)).copy()
        if kind in self.run.tension and self.run.norm is not None:
            values, norm = self.run.tension[kind][i], self.run.norm
            colours[:] = SCALE(norm(values))[:, :3]
            slack = (values <= SLACK * float(norm.vmax or 0.0)) & (values >= 0.0) | np.isnan(values)
            colours[slack] = SLACK_GREY
            gaps = np.ix_(np.flatnonzero(slack), np.arange(1, k, 2))
            ends = pieces[..., 1, :]
            ends[gaps] = pieces[..., 0, :][gaps]
        bytes_ = (255 * _linear(colours)[:, None, None]).round().astype(np.uint8)
        shown = np.broadcast_to(bytes_, pieces.shape)
        return pieces.reshape(-1, 2, 3).astype(np.float32), shown.reshape(-1, 2, 3)

    def _path_until(self, i: int) -> np.ndarray:
        """Path up to instant `i`: segments (n, 2, 3), of zero length afterwards."""
        assert self.run.trace is not None
        rows = np.linspace(0, i, min(i + 1, _TRACE)).astype(int)
        way = self._in_space(self.run.trace[rows])
        if len(way) == 1:
            way = np.repeat(way, 2, axis=0)
        return np.stack([way[:-1], way[1:]], axis=2).reshape(-1, 2, 3).astype(np.float32)

    def _in_space(self, x) -> np.ndarray:
        x = np.nan_to_num(np.asarray(x, dtype=float))
        if not self.flat:
            return x
        return np.stack([x[..., 0], np.zeros_like(x[..., 0]), x[..., 1]], axis=-1)

    def _vertices(self, corners: np.ndarray, kind: str) -> np.ndarray:
        """Corners of all triangles of a body (v, 3); wheels stand out a little in front."""
        flat = corners.reshape(-1, corners.shape[-1])
        points = self._in_space(flat)
        if self.flat and kind in WHEELS:
            points[:, 1] -= 2e-3 * self.size
        return points.astype(np.float32)

    def _turned(self, rotation: np.ndarray) -> np.ndarray:
        """Unit quaternions (n, 4), scalar first, of rotations (n, d, d)."""
        if self.flat:
            c, s = rotation[:, 0, 0], rotation[:, 1, 0]
            zero, one = np.zeros_like(c), np.ones_like(c)
            rows = [[c, zero, -s], [zero, one, zero], [s, zero, c]]
            rotation = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
        known = np.isfinite(rotation).all(axis=(1, 2), keepdims=True)
        rotation = np.where(known, rotation, np.eye(3))
        return Rotation.from_matrix(rotation).as_quat(scalar_first=True)


def _linear(colours: np.ndarray) -> np.ndarray:
    """Linear intensities of sRGB colours, which the browser expects for single segments."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def _triangles(faces: int, corners: int) -> np.ndarray:
    """Triangle indices of star-shaped polygons, shape (n, 3)."""
    fan = np.stack([np.zeros(corners - 2, int), *(np.arange(corners - 2) + j for j in (1, 2))], 1)
    return (np.arange(faces)[:, None, None] * corners + fan).reshape(-1, 3).astype(np.uint32)


def legend(run: Played) -> str:
    """The colour scale as a line of HTML, "" where nothing is coloured."""
    if run.norm is None:
        return ""
    stops = [tuple((255 * SCALE(x)[j]).round() for j in range(3)) for x in np.linspace(0, 1, 9)]
    colours = ", ".join(f"rgb({r:.0f},{g:.0f},{b:.0f})" for r, g, b in stops)
    text = label(COLOURED_BY.get(next(iter(run.tension)), ""))
    low, high = float(run.norm.vmin or 0.0), float(run.norm.vmax or 0.0)
    return (
        f'<div style="font-size:0.8em;padding:0 0.7em">{text}: {low:.3g} '
        f'<span style="display:inline-block;width:9em;height:0.8em;vertical-align:middle;'
        f'background:linear-gradient(to right,{colours})"></span> {high:.3g}; slack: grey</div>'
    )
