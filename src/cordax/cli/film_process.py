"""The film of a run, drawn by a second process while the first draws the figures."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from .._jax.xla_flags import backend_is_up
from ..simulation.trajectory import Trajectory
from .pictures import write_film

#: frames per second that GIF, which counts hundredths of a second, shows at the right speed
RATES = (25.0, 20.0, 12.5, 10.0)
#: frames of a film, if the least rate allows it: drawing them takes as long as the simulation
FRAMES = 160
DPI = 90.0


class _Drawer(NamedTuple):
    """The second process, and the way to it."""

    process: BaseProcess
    films: Connection


class Filming:
    """`begin` returns at once where there is a second process; `finish` has the film's path. A
    process that is started early is ready when the run is."""

    def __init__(self, drawer: _Drawer | None):
        self._drawer = drawer
        self._finish = lambda: Path()

    def begin(self, run: Trajectory, path: Path, title: str, speed: float) -> None:
        """Have `run` drawn to `path`, at `speed` times real time."""
        drawer = self._drawer
        if drawer is None:
            self._finish = lambda: write_film(run, path, title, speed)
            return
        from ..plot.film import film_of

        seconds = float(run.t[-1] - run.t[0]) / speed
        fps = next((rate for rate in RATES if seconds * rate < FRAMES), RATES[-1])
        drawer.films.send((film_of(run, fps, speed, title, "corner"), path, fps, DPI))
        self._finish = lambda: _wait(drawer, path)

    def finish(self) -> Path:
        """Where the film is, once it is; raises OSError with the last words of a process that
        failed."""
        return self._finish()


def _wait(drawer: _Drawer, path: Path) -> Path:
    try:
        failure = drawer.films.recv()
    except (EOFError, ConnectionError):
        failure = "its process ended"
    if failure:
        raise OSError(f"the film could not be drawn: {failure}")
    return path


@contextmanager
def filming(film: str) -> Iterator[Filming]:
    """For a film of the kind that `cordax run --film` names. The second process ends with the
    block."""
    second = film in ("gif", "mp4") and (os.cpu_count() or 1) > 1
    drawer = _start() if second else None
    try:
        yield Filming(drawer)
    finally:
        if drawer is not None:
            drawer.films.close()
            drawer.process.terminate()
            drawer.process.join()


def _start() -> _Drawer:
    # a copy of this process has imported all that a new one would have to; JAX has no threads yet,
    # which a copy would lack
    copied = sys.platform == "linux" and not backend_is_up()
    kind: Any = get_context("fork" if copied else "spawn")
    here, there = kind.Pipe()
    process = kind.Process(target=_draw_film, args=(there, here if copied else None), daemon=True)
    with warnings.catch_warnings():
        # JAX warns of any fork
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        process.start()
    there.close()
    return _Drawer(process, here)


def _draw_film(films: Connection, others: Connection | None) -> None:
    """The work of the second process, ready as soon as matplotlib is imported. The film, its path,
    frames per second and dots per inch are received, and what went wrong, or nothing, is sent back.
    `others`: the other end, if this process has it too: left open, it would hide that nobody is
    there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if others is not None:
        others.close()
    import matplotlib

    matplotlib.use("Agg")
    from ..plot.animate import write_film as write

    try:
        film, path, fps, dpi = films.recv()
    except EOFError:  # no film was wanted after all
        return
    try:
        write(film, path, fps, dpi)
        films.send(None)
    except Exception as error:  # said by the process that has a terminal
        films.send(f"{type(error).__name__}: {error}")
