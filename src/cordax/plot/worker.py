"""Draws one film that is sent to it: `python -m cordax.plot.worker`, see `cordax.cli.filming`.
Films are arrays: nothing is simulated or compiled here."""

import pickle
import signal
import sys

import matplotlib


def main() -> None:
    """Ready as soon as imported; the film, its path, frames per second and dots per inch come from
    the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    matplotlib.use("Agg")
    from .animate import write_film

    try:
        film, path, fps, dpi = pickle.load(sys.stdin.buffer)
    except EOFError:  # no film was wanted after all
        return
    write_film(film, path, fps, dpi)


if __name__ == "__main__":
    main()
