"""The command line: `cordax COMMAND ...`. One file per command, imported when it is called for."""

import gc
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple


class _Command(NamedTuple):
    module: str
    function: str
    help: str


#: by the words that call them
_COMMANDS = {
    "run": _Command("run", "run", "simulate a machine: a shipped one, or machine.toml"),
    "new": _Command("new", "new", "print a starting file for a machine of your own"),
    "reproduce neck": _Command(
        "reproduce", "reproduce_neck", "repeat the neck paper's experiments and judge its claims"
    ),
    "reproduce cable-robot": _Command(
        "reproduce",
        "reproduce_cable_robot",
        "repeat the cable-robot paper's experiments and judge its claims",
    ),
    "reproduce rod": _Command(
        "reproduce", "reproduce_rod", "repeat the rod paper's experiments and judge its claims"
    ),
    "reproduce rope-robot": _Command(
        "reproduce",
        "reproduce_rope_robot",
        "repeat the rope-robot paper's experiments and judge its claims",
    ),
    "reproduce tensegrity": _Command(
        "reproduce",
        "reproduce_tensegrity",
        "repeat the tensegrity thesis' experiments and judge its claims",
    ),
    "reproduce all": _Command(
        "reproduce", "reproduce_all", "all five studies as one web page, with verdicts"
    ),
    "fit": _Command("fit", "fit", "identify parameters of a machine from a recording"),
    "sweep": _Command("sweep", "sweep", "simulate a machine in many variants, resumable"),
    "optimise": _Command("optimise", "optimise", "find numbers that make a measure small"),
    "view": _Command("view", "view", "a machine or a saved run in the browser, to play and change"),
    "bench": _Command("bench", "bench", "how fast a machine is simulated here"),
    "doctor": _Command("doctor", "doctor", "versions, devices, caches: what to say in a report"),
    "list": _Command("list_command", "show", "machines, kinds of machines for files, integrators"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 if a simulation failed, 2 for bad input, and as
    shells have it 130 when interrupted, 141 when nobody reads what is printed."""
    if arguments is not None:
        return _main(list(arguments))
    # In a process that is ours. Tracing makes millions of small objects that stay: looking at them
    # again and again for garbage takes a sixth of a run that is already compiled, and once more at
    # the end a tenth.
    gc.set_threshold(50_000, 20, 50)
    words = sys.argv[1:]
    if words[:1] == ["run"] and "--optimised" not in words:
        # what is run once need not be compiled well
        from .._jax.xla_flags import compile_quickly

        compile_quickly()
    try:
        code = _main(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("cordax: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # as of `cordax ... | head`
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
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in _COMMANDS and len(words) >= count:
            return _call(name, words[count:])
    if words[0] in {name.split()[0] for name in _COMMANDS}:
        asked = words[1:2] in (["-h"], ["--help"])
        if len(words) > 1 and not asked:
            print(f"cordax: {words[0]} what? {_nearest(words)}\n", file=sys.stderr)
        print(_overview(words[0]), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    print(f"cordax: {_nearest(words)}\n\n{_overview()}", file=sys.stderr)
    return 2


def _nearest(words: list[str]) -> str:
    """What was not understood, and what it may have meant."""
    first = {name.split()[0] for name in _COMMANDS}
    given, known = words[0], first
    if words[0] in first:
        given, known = words[1], {n.split()[1] for n in _COMMANDS if n.startswith(f"{words[0]} ")}
    near = get_close_matches(given, known, 1)
    return f"there is no {given!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _call(name: str, rest: list[str]) -> int:
    import tyro

    from .._base.precision import enable_x64
    from .._jax.xla_flags import enable_cache
    from ..simulation._simulate import SimulationError

    command = _COMMANDS[name]
    function = getattr(import_module(f"{__name__}.{command.module}"), command.function)
    enable_x64()
    enable_cache()
    try:
        code = tyro.cli(function, prog=f"cordax {name}", args=rest)
    except SimulationError as error:
        print(f"cordax: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        known = error.filename is not None and error.strerror is not None
        text = f"{error.filename}: {error.strerror}" if known else str(error)
        print(f"cordax: {text}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"cordax: {error}", file=sys.stderr)
        return 2
    return code or 0


def _overview(first: str = "") -> str:
    lines = [f"usage: cordax {first or 'COMMAND'} ...", ""]
    lines += [
        f"  cordax {name:22} {command.help}"
        for name, command in _COMMANDS.items()
        if name.startswith(first)
    ]
    if not first:
        lines.append(f"  cordax {'--version':22} the version")
    return "\n".join([*lines, "", "Add --help to a command for its options."])
