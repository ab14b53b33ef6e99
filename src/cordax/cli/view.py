"""`cordax view`: show a machine or a saved run in the browser."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import UseAppendAction

from .._base.checks import require
from ..io import experiment_of
from ..simulation.trajectory import Trajectory
from .arguments import Machine, option, parse_range, split_commas

MAX_PORT = 65535


def view(
    machine: Machine,
    /,
    slider: Annotated[
        tuple[str, ...], UseAppendAction, tyro.conf.arg(metavar="NAME=LOW:HIGH")
    ] = (),
    names: Annotated[str, option("NAME,...", "those of the machine")] = "",
    port: int = 8080,
    browser: bool = True,
) -> int:
    """Show a machine or a saved run in the browser.

    Rotate the view, play the motion and change parameters with sliders: the machine is simulated
    again after each change. Ctrl-C stops the viewer.

    For example:
        cordax view suspended
        cordax view robot.toml --slider platform.mass=2:10
        cordax run neck && cordax view outputs/neck.npz

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), or a saved
            trajectory (.npz).
        slider: parameter with a slider and its range; may be repeated. NAME alone has a range from
            half to twice its value. Without this option a few parameters have sliders.
        names: quantities to plot, separated by commas.
        port: port of the page on localhost; 0 chooses a free one.
        browser: open the page in the browser.
    """
    require(0 <= port <= MAX_PORT, "port", port, f"a number from 0 to {MAX_PORT}")
    try:
        from ..viewer import view as show
    except ImportError as error:
        raise ValueError(f"view: {error}") from error
    sliders = dict(parse_range("slider", text) for text in slider) or None
    if machine.endswith(".npz"):
        path = Path(machine)
        require(path.is_file(), "machine", repr(machine), "an existing file")
        if sliders:
            raise ValueError("--slider is not supported for a saved run")
        subject = Trajectory.load(path)
        if subject.system is None:
            raise ValueError(
                f"{path} does not contain its machine; use "
                "cordax.viewer.view(Trajectory.load(path, machine)) in Python"
            )
    else:
        subject = experiment_of(machine)
    plotted = split_commas(names) or None
    try:
        viewer = show(subject, sliders=sliders, names=plotted, title=Path(machine).stem, port=port)
    except ImportError as error:
        raise ValueError(f"view: {error}") from error
    with suppress(KeyboardInterrupt):  # Ctrl-C may come before the viewer waits
        print(f"{machine}: {viewer.url} (Ctrl-C to stop)", flush=True)
        if browser:
            webbrowser.open(viewer.url)
        viewer.wait()
    viewer.stop()
    return 0
