"""The film of a run, drawn by a second process while the first draws the figures."""

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..trajectory import Trajectory
from .pictures import write_film

#: frames per second that GIF, which counts hundredths of a second, shows at the right speed
RATES = (25.0, 20.0, 12.5, 10.0)
#: frames of a film, if the least rate allows it: drawing them takes as long as the simulation
FRAMES = 160
DPI = 90.0


class Filming:
    """`begin` returns at once where there is a second process; `finish` has the film's path. A
    process that is started early is ready when the run is."""

    def __init__(self, process: subprocess.Popen | None):
        self._process = process
        self._finish = lambda: Path()

    def begin(self, run: Trajectory, path: Path, title: str, speed: float) -> None:
        """Have `run` drawn to `path`, at `speed` times real time."""
        if self._process is None:
            self._finish = lambda: write_film(run, path, title, speed)
            return
        from ..plot.film import film_of

        seconds = float(run.t[-1] - run.t[0]) / speed
        fps = next((rate for rate in RATES if seconds * rate < FRAMES), RATES[-1])
        film = film_of(run, fps, speed, title, "corner")
        assert self._process.stdin is not None
        pickle.dump((film, path, fps, DPI), self._process.stdin)
        self._process.stdin.close()
        self._process.stdin = None
        self._finish = lambda: self._wait(path)

    def finish(self) -> Path:
        """Where the film is, once it is; raises OSError with the last words of a process that
        failed."""
        return self._finish()

    def _wait(self, path: Path) -> Path:
        assert self._process is not None
        _, words = self._process.communicate()
        if self._process.returncode:
            last = words.decode(errors="replace").strip().splitlines()[-1:]
            raise OSError(f"the film could not be drawn: {''.join(last) or 'its process ended'}")
        return path


@contextmanager
def filming(film: str) -> Iterator[Filming]:
    """For a film of the kind that `cordax run --film` names. The second process ends with the
    block."""
    second = film in ("gif", "mp4") and (os.cpu_count() or 1) > 1
    process = _start() if second else None
    try:
        yield Filming(process)
    finally:
        if process is not None and process.poll() is None:
            process.terminate()
            process.communicate()


def _start() -> subprocess.Popen:
    with warnings.catch_warnings():
        # JAX warns of any fork; this child runs another program at once, so no lock can be held
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        return subprocess.Popen(
            [sys.executable, "-m", "cordax.plot.worker"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
