"""Draw the film of a run in a second process while the first one draws the figures."""

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

#: frames per second that GIF can show exactly: its delays are hundredths of a second
RATES = (25.0, 20.0, 12.5, 10.0)
#: desired number of frames; drawing them takes about as long as a simulation
FRAMES = 160
DPI = 90.0


class _Drawer(NamedTuple):
    """The second process and the connection to it."""

    process: BaseProcess
    films: Connection


class FilmProcess:
    """Draws a film, in a second process if there is one: `begin` returns immediately and `finish`
    waits for the file. Start it before the simulation, so that its imports are done in time."""

    def __init__(self, drawer: _Drawer | None):
        self._drawer = drawer
        self._finish = lambda: Path()

    def begin(self, run: Trajectory, path: Path, title: str, speed: float) -> None:
        """Begin to draw `run` to the file `path`, at `speed` times real time."""
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
        """Wait for the film and return its path; raises OSError with the message of a process
        that failed."""
        return self._finish()


def _wait(drawer: _Drawer, path: Path) -> Path:
    try:
        failure = drawer.films.recv()
    except (EOFError, ConnectionError):
        failure = "its process stopped"
    if failure:
        raise OSError(f"the film could not be drawn: {failure}")
    return path


@contextmanager
def film_process(film: str) -> Iterator[FilmProcess]:
    """A `FilmProcess` for the format `film` of `cordax run --film`. The process ends with the
    block."""
    drawer = _start() if film in ("gif", "mp4") and (os.cpu_count() or 1) > 1 else None
    try:
        yield FilmProcess(drawer)
    finally:
        if drawer is not None:
            drawer.films.close()
            drawer.process.terminate()
            drawer.process.join()


def _start() -> _Drawer:
    # A fork has all imports already. It is safe only before JAX starts threads, which a fork lacks.
    fork = sys.platform == "linux" and not backend_is_up()
    kind: Any = get_context("fork" if fork else "spawn")
    here, there = kind.Pipe()
    process = kind.Process(target=_draw_film, args=(there, here if fork else None), daemon=True)
    with warnings.catch_warnings():
        # JAX warns about every fork
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        process.start()
    there.close()
    return _Drawer(process, here)


def _draw_film(films: Connection, others: Connection | None) -> None:
    """Main function of the second process: receives film, path, frames per second and dots per
    inch, sends back an error message or None. `others`: the other end of the connection, which a
    fork inherits. It must be closed here, or this process would not notice the end of the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if others is not None:
        others.close()
    import matplotlib

    matplotlib.use("Agg")
    from ..plot.animate import write_film as write

    try:
        film, path, fps, dpi = films.recv()
    except EOFError:  # the first process ended without a film
        return
    try:
        write(film, path, fps, dpi)
        films.send(None)
    except Exception as error:  # the first process prints the message
        films.send(f"{type(error).__name__}: {error}")
