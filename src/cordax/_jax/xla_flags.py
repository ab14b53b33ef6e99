"""XLA options on which the speed of cordax depends, and the compilation cache.

XLA on CPU compiles a *small* while loop into one function and dispatches the kernels of a larger
one separately, about 11 ns each. The default limit is about one kilobyte touched per iteration; a
time loop over a machine is above it. Raising the limit ("hoisting" the loop) makes a step of the
neck four to ten times faster (`benchmarks/neck.py hoist`). XLA reads its options once per process,
before the first computation, so cordax sets this one on import. `CORDAX_HOIST=0` in the environment
opts out.

A batch of steps in one loop (`_jax/batch_kernel.py`) reads and writes some dozen arrays. LLVM
vectorises the loop only if it may check all pairs of these arrays for overlap. Its default limit
allows fewer checks, so cordax raises it."""

import os
import warnings
from pathlib import Path

from . import features

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
_SETTING = f"{_OPTION}=1000000000"
_OVERLAPS = "-vectorize-memory-check-threshold=100000"
#: first version of jaxlib whose compiler has not been tested; unknown options abort the process
_UNTRIED = (0, 13)
_FLAG = "--xla_backend_extra_options"
_LEVEL = "xla_backend_optimization_level"


def request_hoisting() -> None:
    """Set the XLA option that compiles time loops into one function. Called on import of cordax."""
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
    """Return whether cordax has been tested with the compiler of this version of jaxlib."""
    return compiler_version() < _UNTRIED


def compiler_version() -> tuple[int, int]:
    """Major and minor version of jaxlib."""
    from jaxlib.version import __version_info__ as version

    return int(version[0]), int(version[1])


def compile_quickly() -> bool:
    """Set XLA to its lowest optimisation level, for single runs that compile for longer than they
    run.

    Compilation takes a third of the time; programs run three to six times slower. Programs that
    are already compiled do not change. Returns whether the option was set: False if JAX has already
    started or if `XLA_FLAGS` contains the option."""
    flags = os.environ.get("XLA_FLAGS", "")
    if backend_is_up() or _LEVEL in flags:
        return False
    os.environ["XLA_FLAGS"] = f"{flags} --{_LEVEL}=0".strip()
    return True


def compiles_quickly() -> bool:
    """Return whether XLA compiles at its lowest optimisation level, set here or by the user."""
    return f"--{_LEVEL}=0" in os.environ.get("XLA_FLAGS", "").split()


def hoisting_active() -> bool:
    """Test whether time loops are compiled into one function in this process.

    The test compiles a loop that exceeds XLA's default limit and searches the compiled program for
    the mark of a hoisted loop."""
    import jax
    import jax.numpy as jnp

    def loop(x):
        return jax.lax.fori_loop(0, 10, lambda i, y: jnp.sin(y) + jnp.flip(y), x)

    return unhoisted_loops(jax.jit(loop).lower(jnp.zeros(2048)).compile().as_text()) == 0


def unhoisted_loops(text: str | None) -> int:
    """Count the loops of a compiled program, given as text, that are not compiled into one
    function: `unhoisted_loops(jax.jit(f).lower(x).compile().as_text())`.

    The cause is a LAPACK call or a batched product of small matrices (` dot(` in the text)."""
    text = text or ""
    return text.count(" while(") - text.count("xla_cpu_small_call")


_programs: Path | None = None


def programs_folder() -> Path | None:
    """Return the folder of stored programs (`cordax._jax.program_cache`), or None."""
    return _programs


def enable_cache(folder: str | Path | None = None) -> Path:
    """Store compiled functions on disk, so that a second process starts without compiling.

    **Arguments:** `folder`: the cache folder; the default is `cordax` in the user's cache folder
    (`XDG_CACHE_HOME` or `~/.cache`). The programs in it are executed, so nobody else should have
    write access to it.

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
    """Return whether JAX has initialised its backend; XLA options set later have no effect."""
    try:
        from jax._src import xla_bridge  # there is no public function for this

        return bool(xla_bridge.backends_are_initialized())
    except (ImportError, AttributeError):
        return False
