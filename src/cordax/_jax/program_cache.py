"""Compiled programs that outlive the process.

JAX keeps what XLA makes of a program on disk, but finds it only by the program itself: the machine
is traced and lowered again in every process, which takes longer than most runs. Here a program is
found by what it is made from: the function, the structure of the machine and the method, shapes of
all arrays, the source of cordax, versions and flags. Only where all of that is known: what holds a
class or a function of the user's is traced as ever."""

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
#: what programs may call: parts of XLA and, once it is found, LAPACK
_CALLED = ("lapack_", "__xla_cpu", "__onednn", "TopK")
#: bytes of the sum that a file begins with
_SUM = 32
#: errors of `pickle` and of XLA (a RuntimeError) for a program of another version or device
_LOAD_ERRORS = (pickle.UnpicklingError, EOFError, AttributeError, ImportError, LookupError)
_LOAD_ERRORS += (TypeError, ValueError, RuntimeError)
#: errors of `pickle` and of XLA for results or programs that have no file format
_STORE_ERRORS = (pickle.PicklingError, AttributeError, TypeError, ValueError, RuntimeError)
#: options that change no program
_IDLE = ("cache", "log", "traceback", "captured", "explain", "compiler_detailed")


@jax.tree_util.register_static
class Kept(identity.Compiled):
    """A compiled function, called like the one that `jax.jit` or `eqx.filter_jit` makes: `compiled`
    of the same `function`. Everything that is no array is static."""

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
        except TypeError:  # something that cannot be hashed
            return self.compiled(*given, **named)
        if found is _NOT_LOOKED:
            found = self._programs[key] = self._find(folder, leaves, structure)
        return self.compiled(*given, **named) if found is None else found(arrays)

    def _find(self, folder: Path, leaves: list, structure) -> "_Program | None":
        """From the folder, or made and written there; None if it is not known what it does."""
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
    """`eqx.filter_jit` whose programs `cordax.enable_cache` keeps. For functions of the library
    that are called with numbers."""
    if function is None:
        return functools.partial(kept_filter_jit, **options)
    return Kept(function, eqx.filter_jit(function, **options), options)


def cached_jit(function: Callable, static: tuple[int, ...]) -> Any:
    """The same of `jax.jit`, which is called faster; `static`: numbers of arguments."""
    return Kept(function, jax.jit(function, static_argnums=static), {}, static)


@contextmanager
def _anew() -> Iterator[None]:
    """Compile, rather than take from the cache of JAX: what was read from there cannot be written
    again ("function not found" when it is run)."""
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
    """A compiled program, and the form of what it returns."""

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
    """Whether JAX compiles without debugging options, for the only device."""
    config: Any = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
        return False
    if jax.device_count() > 1:
        features.warn("stored programs", f"{jax.device_count()} devices")
        return False
    return True


def missing_interface() -> str | None:
    """Part of JAX that stored programs need and this release does not have; None if it has all."""
    return "trace_context is missing in this release of JAX" if trace_context is None else None


def _surroundings() -> tuple:
    """What else a program depends on."""
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
    """What programs may use of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        about = sorted({x for x in lines if x.startswith(("flags", "model name", "Features"))})
    except OSError:
        about = [platform.node(), platform.processor()]
    return hashlib.sha256("\n".join([platform.machine(), *about]).encode()).hexdigest()


def _read(path: Path) -> _Program | None:
    """The stored program; None if there is none, or, with a warning, if it cannot be read."""
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
    """Store a program, unless it calls functions that only this process has, such as callbacks to
    Python, or returns objects that cannot be pickled. A file that cannot be written is warned of.
    """
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
    """JAX looks for LAPACK when it lowers the first program that calls it. One that is read is not
    lowered, and would call nothing."""
    jax.jit(jax.scipy.linalg.lu_factor).lower(jax.ShapeDtypeStruct((1, 1), "float32"))
