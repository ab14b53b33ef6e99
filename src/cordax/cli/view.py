"""`cordax view`: a machine or a saved run in the browser."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import tyro

from .._base.checks import require
from ..simulation.trajectory import Trajectory
from .machines import experiment_of

MOST_PORTS = 65535


def view(
    what: Annotated[str, tyro.conf.Positional],
    slider: Annotated[list[str], tyro.conf.UseAppendAction] = [],  # noqa: B006
    names: str | None = None,
    port: int = 8080,
    browser: bool = True,
) -> int:
    """Show a machine, or a run that was saved, in the browser: turn it, play it, scrub, and move
    its numbers, with which it is simulated again at once. Ctrl-C ends it.

    `cordax view suspended` shows a shipped machine, `cordax view robot.toml` your own,
    `cordax view outputs/neck.npz` what `cordax run neck` has written.
    `cordax view neck --slider tendon.stiffness=1e4:1e6 --slider tendon.damping` chooses the
    numbers that can be moved.

    Args:
        what: a machine by name, a .toml file that describes one, or a .npz file of a run.
        slider: a number that can be moved, NAME=LOW:HIGH, or NAME from half to twice as much; may
            be given several times. By default a few of the machine's.
        names: what the curves show, with commas between; the machine's choice by default.
        port: of the page, at localhost; 0 takes one that is free.
        browser: open the page.
    """
    require(0 <= port <= MOST_PORTS, "port", port, f"a number from 0 to {MOST_PORTS}")
    try:
        from ..viewer import view as show
    except ImportError as error:
        raise ValueError(f"view: {error}") from error
    if what.endswith(".npz"):
        path = Path(what)
        require(path.is_file(), "what", repr(what), "a file that exists")
        require(not slider, "slider", slider, "none with a saved run, which is not simulated again")
        subject = Trajectory.load(path)
        require(
            subject.system is not None,
            "what",
            repr(what),
            "a run of a machine of cordax: of your own machine the file has no picture; use "
            "cordax.viewer.view(Trajectory.load(path, machine))",
        )
        moved = None
    else:
        subject, moved = experiment_of(what), _ranges(slider) if slider else None
    shown = None if names is None else [name.strip() for name in names.split(",")]
    try:
        viewer = show(subject, sliders=moved, names=shown, title=Path(what).stem, port=port)
    except ImportError as error:
        raise ValueError(f"view: {error}") from error
    with suppress(KeyboardInterrupt):  # it may come before the viewer waits
        print(f"{what} is at {viewer.url}; Ctrl-C ends it", flush=True)
        if browser:
            webbrowser.open(viewer.url)
        viewer.wait()
    viewer.stop()
    return 0


def _ranges(sliders: list[str]) -> dict:
    found = {}
    for text in sliders:
        name, _, limits = text.partition("=")
        if not limits:
            found[name] = None
            continue
        try:
            low, high = (float(x) for x in limits.split(":"))
        except ValueError:
            raise ValueError(f"slider: got {text!r}, expected NAME=LOW:HIGH, or NAME") from None
        found[name] = (low, high)
    return found
