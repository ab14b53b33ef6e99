"""Cache of compiled programs on disk, for use by later processes.

JAX also stores compiled programs on disk, but the key of its cache is the lowered program. So every
process traces and lowers the machine again, which takes longer than most runs. Here the key is
computed from the inputs of the compilation: the function, the structure of the machine and the
method, the shapes of all arrays, the source of cordax, versions and flags. Programs that involve a
class or a function of the user are not stored; they are traced in every process as usual."""

import functools
import hashlib
import os
import pickle
import platform
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

try:  # no public call returns the settings that JAX makes part of the keys of its caches
    from jax._src.config import trace_context
except ImportError:
    trace_context = None

from .._base.atomic_files import replacing
from . import features, identity, library_code
from .tracing import is_traced
from .xla_flags import programs_folder

_ARRAYS = (jax.Array, np.ndarray, np.generic)
_NOT_LOOKED: Any = object()
#: functions that stored programs may call: parts of XLA and, after `_find_lapack`, LAPACK
_CALLED = ("lapack_", "__xla_cpu", "__onednn", "TopK")
#: length in bytes of the checksum at the beginning of a file
_SUM = 32
#: errors of `pickle` and of XLA (a RuntimeError) for a program of another version or device
_LOAD_ERRORS = (pickle.UnpicklingError, EOFError, AttributeError, ImportError, LookupError)
_LOAD_ERRORS += (TypeError, ValueError, RuntimeError)
#: errors of `pickle` and of XLA for results or programs that have no file format
_STORE_ERRORS = (pickle.PicklingError, AttributeError, TypeError, ValueError, RuntimeError)
#: words in the names of JAX options that do not affect compiled programs
_IDLE = ("cache", "log", "traceback", "captured", "explain", "compiler_detailed")


@jax.tree_util.register_static
class Kept(identity.Compiled):
    """A compiled function whose programs are stored on disk.

    It is called like `compiled`, the result of `jax.jit` or `eqx.filter_jit` for `function`.
    Arguments that are not arrays are static."""

    def __init__(self, function, compiled, options: dict[str, Any], static=None):
        super().__init__(function, compiled, static)
        self._options = options
        self._programs: dict[Any, _Program | None] = {}

    def __call__(self, *given, **named):
        token = self.token(given, named)
        if token is not None:  # code of the user, or a class that was patched
            return self.call_with(token, *given, **named)
        folder = programs_folder()
        if folder is None or trace_context is None:
            return self.compiled(*given, **named)
        leaves, structure = jax.tree.flatten((given, named))
        arrays = [x for x in leaves if isinstance(x, _ARRAYS)]
        if is_traced(arrays) or not _plain_session():
            return self.compiled(*given, **named)
        which = tuple(_shape(x) if isinstance(x, _ARRAYS) else (type(x), x) for x in leaves)
        key = folder, trace_context(), structure, which
        try:
            found = self._programs.get(key, _NOT_LOOKED)
        except TypeError:  # an argument cannot be hashed
            return self.compiled(*given, **named)
        if found is _NOT_LOOKED:
            found = self._programs[key] = self._find(folder, leaves, structure)
        return self.compiled(*given, **named) if found is None else found(arrays)

    def _find(self, folder: Path, leaves: list, structure) -> "_Program | None":
        """Read the program from the folder, or compile it and store it there.

        None if it has no key: the arguments reach code of the user, or content that cannot be
        identified in other processes."""
        shapes = tuple(str(_shape(x)) for x in leaves if isinstance(x, _ARRAYS))
        tree = jax.tree.unflatten(structure, leaves)
        content = identity.library_digest((self.function, tree))
        if content is None:
            return None
        options = tuple(sorted(self._options.items()))
        name = identity.digest_of(content, shapes, repr(options), _surroundings())
        if name is None:
            return None
        path = folder / f"{self.function.__name__}-{name.hex()}"
        begin = time.perf_counter()
        found = _read(path)
        # reported like the compile times of JAX
        seconds = time.perf_counter() - begin
        jax.monitoring.record_event_duration_secs("/jax/core/compile/program_read", seconds)
        return found or self._make(path, leaves, structure)

    def _make(self, path: Path, leaves: list, structure) -> "_Program":
        where = [i for i, x in enumerate(leaves) if isinstance(x, _ARRAYS)]
        form: list = []

        def flat(*arrays):
            filled = list(leaves)
            for i, x in zip(where, arrays, strict=True):
                filled[i] = x
            given, named = jax.tree.unflatten(structure, filled)
            found = self.function(*given, **named)
            out, rest = eqx.partition(found, lambda x: isinstance(x, _ARRAYS))
            out, tree = jax.tree.flatten(out)
            form[:] = [jax.tree.unflatten(tree, [0] * len(out)), rest]
            return out

        flat.__name__ = self.function.__name__
        lowered = jax.jit(flat, **self._options).lower(*(leaves[i] for i in where))
        with _anew():
            made = _Program(lowered.compile(), *form)
        _write(path, made)
        return made


def kept_filter_jit(function: Callable | None = None, /, **options) -> Any:
    """Compile like `eqx.filter_jit`, with programs that are stored after `cordax.enable_cache`.

    For functions of cordax that are called with concrete arrays."""
    if function is None:
        return functools.partial(kept_filter_jit, **options)
    return Kept(function, eqx.filter_jit(function, **options), options)


def cached_jit(function: Callable, static: tuple[int, ...]) -> Any:
    """Compile like `jax.jit`, with stored programs; calls have less overhead than those of
    `kept_filter_jit`. `static`: positions of static arguments."""
    return Kept(function, jax.jit(function, static_argnums=static), {}, static)


@contextmanager
def _anew() -> Iterator[None]:
    """Context without the compilation cache of JAX.

    A program that was read from that cache cannot be serialised again: it fails with "function not
    found" when it is run."""
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    name = "jax_enable_compilation_cache"
    before = getattr(jax.config, name)
    jax.config.update(name, False)
    reset_cache()
    try:
        yield
    finally:
        jax.config.update(name, before)
        reset_cache()


class _Program:
    """A compiled program and the structure of its results.

    - `form`: tree with a placeholder for each array that the program returns.
    - `rest`: the parts of the result that are not arrays."""

    def __init__(self, program, form, rest):
        self.program, self.form, self.rest = program, form, rest
        self._tree = jax.tree.structure(form)
        self._whole = not jax.tree.leaves(rest)

    def __call__(self, arrays):
        out = jax.tree.unflatten(self._tree, self.program(*arrays))
        return out if self._whole else eqx.combine(out, self.rest)


def _shape(array) -> tuple:
    return array.shape, array.dtype, getattr(array, "weak_type", False)


def _plain_session() -> bool:
    """Return whether JAX compiles without debugging options and for a single device."""
    config: Any = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
        return False
    if jax.device_count() > 1:
        features.warn("stored programs", f"{jax.device_count()} devices")
        return False
    return True


def missing_interface() -> str | None:
    """Return the part of JAX that stored programs need and this release lacks; None if none."""
    return "trace_context is missing in this release of JAX" if trace_context is None else None


def _surroundings() -> tuple:
    """Return everything else that a program depends on: code, versions, flags and processor."""
    options = {
        name: str(value)
        for name, value in sorted(jax.config.values.items())
        if not any(word in name for word in _IDLE)
    }
    return (
        library_code.code(),
        library_code.versions(),
        features.status(),
        os.environ.get("XLA_FLAGS", ""),
        jax.default_backend(),
        jax.device_count(),
        platform.python_version(),
        _processor(),
        options,
    )


@functools.cache
def _processor() -> str:
    """Return a digest of the processor model and its instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        about = sorted({x for x in lines if x.startswith(("flags", "model name", "Features"))})
    except OSError:
        about = [platform.node(), platform.processor()]
    return hashlib.sha256("\n".join([platform.machine(), *about]).encode()).hexdigest()


def _read(path: Path) -> _Program | None:
    """Read a stored program. None if there is no file, or, with a warning, if it is unreadable."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unreadable(path, str(error))
    if hashlib.sha256(text[_SUM:]).digest() != text[:_SUM]:
        return _unreadable(path, "incomplete or damaged")
    from jax.experimental.serialize_executable import deserialize_and_load

    try:
        lapack, *parts, form, rest = pickle.loads(text[_SUM:])
        if lapack:
            _find_lapack()
        return _Program(deserialize_and_load(*parts), form, rest)
    except _LOAD_ERRORS as error:
        return _unreadable(path, f"{type(error).__name__}: {error}")


def _unreadable(path: Path, reason: str) -> None:
    warnings.warn(f"{path}: the stored program is ignored ({reason})", stacklevel=2)


def _write(path: Path, made: _Program) -> None:
    """Store a program.

    Programs that call functions of this process, such as callbacks to Python, or return objects
    that cannot be pickled, are not stored. A warning is issued if the file cannot be written."""
    from jax.experimental.serialize_executable import serialize

    called = set(re.findall(r'custom_call_target="([^"]*)"', made.program.as_text() or ""))
    lapack = any(name.startswith("lapack_") for name in called)
    if any(not name.startswith(_CALLED) for name in called):
        return
    try:
        text = pickle.dumps((lapack, *serialize(made.program), made.form, made.rest))
    except _STORE_ERRORS:
        return
    try:
        with replacing(path) as part:
            part.write_bytes(hashlib.sha256(text).digest() + text)
    except OSError as error:
        warnings.warn(f"{path}: the program cannot be stored ({error})", stacklevel=2)


@functools.cache
def _find_lapack() -> None:
    """Make JAX register the LAPACK functions.

    JAX registers them when it lowers the first program that calls them. A stored program is not
    lowered, so without this its calls would have no target."""
    jax.jit(jax.scipy.linalg.lu_factor).lower(jax.ShapeDtypeStruct((1, 1), "float32"))
