"""The command line: `cordax COMMAND ...`. One module per command, imported when it is called."""

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple


class _Command(NamedTuple):
    module: str
    function: str
    help: str


_COMMANDS = {
    "run": _Command("run", "run", "simulate a machine; write figures, a film and the data"),
    "view": _Command("view", "view", "show a machine or a saved run in the browser"),
    "new": _Command("new", "new", "print a commented machine file to start from"),
    "list": _Command(
        "list_command", "list_contents", "list example machines, machine kinds and integrators"
    ),
    "fit": _Command("fit", "fit", "identify parameters of a machine from recordings"),
    "twin": _Command("twin", "twin", "fit a machine to logs and report how well it predicts"),
    "sweep": _Command("sweep", "sweep", "simulate many variants of a machine; can be resumed"),
    "optimise": _Command("optimise", "optimise", "find parameters that minimise a measure"),
    "reproduce": _Command(
        "reproduce", "reproduce", "repeat the experiments of a paper and check its claims"
    ),
    "bench": _Command("bench", "bench", "measure how fast a machine is simulated"),
    "doctor": _Command("doctor", "doctor", "print versions, devices and caches for a bug report"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for a failed simulation, 2 for bad
    input, 130 when interrupted and 141 when the reader of a pipe is gone (both as in shells)."""
    if arguments is not None:
        return _main(list(arguments))
    # This process is ours. Tracing creates millions of small objects that stay alive: scanning
    # them for garbage takes a sixth of a run that is already compiled, and a tenth at exit.
    gc.set_threshold(50_000, 20, 50)
    try:
        code = _main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("cordax: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # as in `cordax ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    gc.freeze()
    gc.disable()
    return code


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0 if words else 2
    if words[0] == "--version":
        from .. import __version__

        print(f"cordax {__version__}")
        return 0
    if words[0] in _COMMANDS:
        return _call(words[0], words[1:])
    message = f"unknown command {words[0]!r}{suggestion(words[0], _COMMANDS)}"
    print(f"cordax: {message}\n\n{_overview()}", file=sys.stderr)
    return 2


def suggestion(word: str, choices: Iterable[str]) -> str:
    """The end of an error message that names the choice closest to `word`, empty if none is."""
    close = get_close_matches(word, list(choices), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _call(name: str, arguments: list[str]) -> int:
    import tyro

    from .._base.precision import enable_x64
    from .._jax.xla_flags import enable_cache
    from ..simulation._simulate import SimulationError

    command = _COMMANDS[name]
    function = getattr(import_module(f"{__name__}.{command.module}"), command.function)
    enable_x64()
    enable_cache()
    try:
        return tyro.cli(function, prog=f"cordax {name}", args=arguments) or 0
    except SimulationError as error:
        code, message = 1, str(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        has_details = error.filename is not None and error.strerror is not None
        code, message = 2, f"{error.filename}: {error.strerror}" if has_details else str(error)
    except ValueError as error:
        code, message = 2, str(error)
    print(f"cordax {name}: {message}", file=sys.stderr)
    return code


def _overview() -> str:
    lines = ["usage: cordax COMMAND ...", ""]
    lines += [f"  cordax {name:10} {command.help}" for name, command in _COMMANDS.items()]
    lines.append(f"  cordax {'--version':10} print the version")
    return "\n".join([*lines, "", "cordax COMMAND --help lists the options of a command."])
