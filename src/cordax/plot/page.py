"""A trajectory as one web page that plays by itself: no server, no network."""

import base64
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from .._checks import require_known
from .._files import replacing
from ..mechanics import Scene
from ..trajectory import Trajectory
from .lines import by_kind, overview
from .scene import bounds, dimension, line_values, norm_of, scenes_of
from .style import (
    BODIES,
    COLOURED_BY,
    COLOURS,
    LINES,
    OTHER_BODY,
    OTHER_LINE,
    OTHER_POINT,
    POINTS,
    PUSHES,
    SCALE,
    label,
)

#: pictures in a page; a run with more is thinned out
MOST_FRAMES = 1500
#: of the largest tension: a cable that carries less is drawn slack
SLACK = 1e-3


def write_page(
    trajectory: Trajectory,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
) -> Path:
    """Write the run to `path`, one `.html` file for mail, papers and slides: the machine to turn,
    zoom and play, cables coloured by tension (slack ones grey and dashed), the way that bodies or
    ends have gone, and curves in step with the time. Returns the path.

    `names`: what the curves show, of `trajectory.names`; the machine's `overview` by default."""
    path = Path(path)
    require_known("path suffix", path.suffix.lower(), (".html", ".htm"))
    system = trajectory._known_one("to_html")
    t = np.asarray(trajectory.t, dtype=float)
    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST_FRAMES)).round().astype(int))
    data = _machine(trajectory, t, rows)
    data |= {
        "title": title if title is not None else type(system).__name__,
        "t": _packed(t[rows]),
        "panels": _panels(trajectory, rows, names),
    }
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    # "</script>" in a title would end the data early
    packed = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    text = text.replace("@TITLE@", html.escape(data["title"])).replace("@DATA@", packed)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def _packed(x) -> dict:
    x = np.ascontiguousarray(x, dtype="<f4")
    return {"shape": x.shape, "base64": base64.b64encode(x.tobytes()).decode("ascii")}


def _machine(trajectory: Trajectory, t: np.ndarray, rows: np.ndarray) -> dict:
    scenes = scenes_of(trajectory.system, t[rows], np.asarray(trajectory.q)[rows])
    coloured = {kind: x[rows] for kind, x in line_values(trajectory, scenes[0]).items()}
    low, high = bounds(scenes)
    all_of = lambda get: _packed(np.stack([np.asarray(get(scene)) for scene in scenes]))
    first = scenes[0]
    lines = [
        LINES.get(kind, OTHER_LINE)._asdict()
        | {"kind": kind, "places": all_of(lambda scene, kind=kind: scene.lines[kind])}
        | ({"values": _packed(coloured[kind])} if kind in coloured else {})
        for kind in first.lines
    ]
    points = [
        POINTS.get(kind, OTHER_POINT)._asdict()
        | {"kind": kind, "places": all_of(lambda scene, kind=kind: scene.points[kind])}
        for kind in first.points
    ]
    bodies = [
        BODIES.get(kind, OTHER_BODY)._asdict()
        | {
            "kind": kind,
            "position": all_of(lambda scene, kind=kind: scene.bodies[kind].position),
            "rotation": all_of(lambda scene, kind=kind: scene.bodies[kind].rotation),
            "faces": _packed(shown.faces),
        }
        for kind, shown in first.bodies.items()
    ]
    trace = _traced(first)
    return {
        "dimension": dimension(first),
        "plane": first.plane,
        "low": low.tolist(),
        "high": high.tolist(),
        "lines": lines,
        "points": points,
        "bodies": bodies,
        "trace": None if trace is None else all_of(trace),
        "scale": _scale(coloured) if coloured else None,
    }


def _traced(scene: Scene):
    """Whose way is shown: of bodies, or else of ends."""
    for kind in scene.bodies:
        return lambda scene: scene.bodies[kind].position
    if "end" in scene.points:
        return lambda scene: scene.points["end"]
    return None


def _scale(coloured: dict[str, np.ndarray]) -> dict:
    norm = norm_of(*coloured.values())
    colours = (255 * SCALE(np.linspace(0.0, 1.0, 32))[:, :3]).round().astype(int)
    high = float(norm.vmax or 0.0)
    return {
        "label": label(COLOURED_BY.get(next(iter(coloured)), "")),
        "low": float(norm.vmin or 0.0),
        "high": high,
        "slack": SLACK * high,
        "colours": [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in colours],
        "under": PUSHES,
    }


def _panels(trajectory: Trajectory, rows: np.ndarray, names: Sequence[str] | None) -> list[dict]:
    system = trajectory._known_system("to_html")
    names = overview(trajectory) if names is None else names
    for name in names:
        require_known("names", name, trajectory.names)
    kinds = by_kind({name: trajectory[name] for name in names}, system.components)
    return [
        {
            "label": label(kind, system),
            "curves": [
                {
                    "name": name.replace("_", " "),
                    "colour": COLOURS[i % len(COLOURS)],
                    "values": _packed(np.asarray(values)[rows]),
                }
                for i, (name, values) in enumerate(curves.items())
            ],
        }
        for kind, curves in kinds.items()
    ]
