"""The XLA options cordax depends on for speed, and the compilation cache.

XLA on CPU compiles a *small* while loop into one function and dispatches the kernels of a larger
one separately, about 11 ns each. The default limit is about one kilobyte touched per iteration; a
time loop over a machine is above it. Raising the limit ("hoisting" the loop) makes a step of the
neck four to ten times faster (`benchmarks/neck.py hoist`). XLA reads its options once per process,
before the first computation, so cordax sets this one on import. `CORDAX_HOIST=0` in the environment
opts out.

A batch of steps in one loop (`_jax/batch_kernel.py`) reads and writes some dozen arrays. LLVM
vectorises it if it may check that many pairs of them for overlap, which its default does not
allow."""

import os
import warnings
from pathlib import Path

from . import features

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
_SETTING = f"{_OPTION}=1000000000"
_OVERLAPS = "-vectorize-memory-check-threshold=100000"
#: of jaxlib, the first whose compiler was not tried: it stops at options that it does not know
_UNTRIED = (0, 13)
_FLAG = "--xla_backend_extra_options"
_LEVEL = "xla_backend_optimization_level"


def request_hoisting() -> None:
    """Ask XLA to compile time loops into one function. Called when cordax is imported."""
    if not features.is_on("loop hoisting"):
        return
    flags = os.environ.get("XLA_FLAGS", "")
    if _OPTION in flags:
        return
    if backend_is_up():
        warnings.warn(
            "cordax was imported after JAX had run its first computation, too late to switch on "
            "loop hoisting: simulations will be several times slower. Import cordax first, or set "
            f"XLA_FLAGS='{_FLAG}={_SETTING}' yourself (CORDAX_HOIST=0 silences this).",
            stacklevel=3,
        )
        return
    setting = f"{_SETTING},{_OVERLAPS}" if compiler_is_known() else _SETTING
    words = flags.split()
    merged = False
    for i, word in enumerate(words):
        if word.startswith(_FLAG + "="):
            words[i] = f"{word},{setting}"
            merged = True
    if not merged:
        words.append(f"{_FLAG}={setting}")
    os.environ["XLA_FLAGS"] = " ".join(words)


def compiler_is_known() -> bool:
    """Whether this version of jaxlib is one whose compiler was tried."""
    return compiler_version() < _UNTRIED


def compiler_version() -> tuple[int, int]:
    """Major and minor version of jaxlib."""
    from jaxlib.version import __version_info__ as version

    return int(version[0]), int(version[1])


def compile_quickly() -> bool:
    """Ask XLA to compile fast rather than well: a third of the time, for programs that run three to
    six times slower. For single runs, which compile for longer than they run. Returns whether it
    was still time to ask; programs that exist are not changed."""
    flags = os.environ.get("XLA_FLAGS", "")
    if backend_is_up() or _LEVEL in flags:
        return False
    os.environ["XLA_FLAGS"] = f"{flags} --{_LEVEL}=0".strip()
    return True


def compiles_quickly() -> bool:
    """Whether XLA was asked to, here or by the user."""
    return f"--{_LEVEL}=0" in os.environ.get("XLA_FLAGS", "").split()


def hoisting_active() -> bool:
    """Whether time loops really are compiled into one function in this process.

    Compiles a loop too large for XLA's default limit and looks for the mark of a hoisted loop in
    the result."""
    import jax
    import jax.numpy as jnp

    def loop(x):
        return jax.lax.fori_loop(0, 10, lambda i, y: jnp.sin(y) + jnp.flip(y), x)

    return unhoisted_loops(jax.jit(loop).lower(jnp.zeros(2048)).compile().as_text()) == 0


def unhoisted_loops(text: str | None) -> int:
    """How many loops of a compiled program, given as text, are not compiled into one function:
    `unhoisted_loops(jax.jit(f).lower(x).compile().as_text())`. A LAPACK call or a batched product
    of small matrices (` dot(` in the text) is what keeps XLA from it."""
    text = text or ""
    return text.count(" while(") - text.count("xla_cpu_small_call")


_programs: Path | None = None


def programs_folder() -> Path | None:
    """Where programs are kept, see `cordax._jax.program_cache`; None if they are not."""
    return _programs


def enable_cache(folder: str | Path | None = None) -> Path:
    """Keep compiled functions on disk, so that a second process starts without compiling.

    **Arguments:** `folder`: where; the default is `cordax` in the user's cache folder
    (`XDG_CACHE_HOME` or `~/.cache`); one that nobody else writes to, since what is in it is run.
    Returns the folder. Machines, methods and controllers of cordax are not traced again either,
    unless the environment has `CORDAX_PROGRAMS=0` or `CORDAX_FAST=0`.
    """
    import jax

    global _programs
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(folder) if folder is not None else Path(base) / "cordax"
    path.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.005)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    features.warn_if_off("stored programs")
    _programs = path / "programs" if features.is_on("stored programs") else None
    return path


def backend_is_up() -> bool:
    """Whether JAX has started the threads of its computations."""
    try:
        from jax._src import xla_bridge  # no public call tells this

        return bool(xla_bridge.backends_are_initialized())
    except (ImportError, AttributeError):
        return False
