"""A trajectory as one HTML file that plays without server or network."""

import base64
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from .._base.atomic_files import replacing
from .._base.checks import require_known
from ..simulation.trajectory import Trajectory
from .playback import SLACK, Panel, Played, played
from .scene import dimension
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


def write_page(
    trajectory: Trajectory,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
) -> Path:
    """Write the run to `path`, one `.html` file for mail, papers and slides. It rotates, zooms and
    plays; cables are coloured by tension (slack ones grey and dashed), and paths of bodies or
    ends and curves over time are shown. Returns the path.

    `names` of the curves, from `trajectory.names`. Default: the machine's default plots."""
    path = Path(path)
    require_known("path suffix", path.suffix.lower(), (".html", ".htm"))
    system = trajectory._known_one("to_html")
    run = played(trajectory, names, MOST_FRAMES)
    data = _machine(run) | {
        "title": title if title is not None else type(system).__name__,
        "t": _packed(run.t),
        "panels": [_panel(panel) for panel in run.panels],
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


def _machine(run: Played) -> dict:
    scene = run.scene
    lines = [
        LINES.get(kind, OTHER_LINE)._asdict()
        | {"kind": kind, "places": _packed(places)}
        | ({"values": _packed(run.tension[kind])} if kind in run.tension else {})
        for kind, places in scene.lines.items()
    ]
    points = [
        POINTS.get(kind, OTHER_POINT)._asdict() | {"kind": kind, "places": _packed(places)}
        for kind, places in scene.points.items()
    ]
    bodies = [
        BODIES.get(kind, OTHER_BODY)._asdict()
        | {
            "kind": kind,
            "position": _packed(shown.position),
            "rotation": _packed(shown.rotation),
            "faces": _packed(np.asarray(shown.faces)[0]),
        }
        for kind, shown in scene.bodies.items()
    ]
    return {
        "dimension": dimension(scene),
        "plane": scene.plane,
        "low": run.low.tolist(),
        "high": run.high.tolist(),
        "lines": lines,
        "points": points,
        "bodies": bodies,
        "trace": None if run.trace is None else _packed(run.trace),
        "scale": None if run.norm is None else _scale(run),
    }


def _scale(run: Played) -> dict:
    assert run.norm is not None
    colours = (255 * SCALE(np.linspace(0.0, 1.0, 32))[:, :3]).round().astype(int)
    high = float(run.norm.vmax or 0.0)
    return {
        "label": label(COLOURED_BY.get(next(iter(run.tension)), "")),
        "low": float(run.norm.vmin or 0.0),
        "high": high,
        "slack": SLACK * high,
        "colours": [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in colours],
        "under": PUSHES,
    }


def _panel(panel: Panel) -> dict:
    return {
        "label": panel.label,
        "curves": [
            {
                "name": name.replace("_", " "),
                "colour": COLOURS[i % len(COLOURS)],
                "values": _packed(values),
            }
            for i, (name, values) in enumerate(panel.curves.items())
        ],
    }
