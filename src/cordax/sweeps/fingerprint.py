"""What a sweep depends on, as short texts that change when it does."""

import dataclasses
import functools
import hashlib
import inspect
import types
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np


@functools.cache
def code() -> str:
    """Of the source of cordax."""
    folder, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def of(thing: Any) -> str:
    """Of a module: its classes, settings, numbers, and the source of functions that it holds."""
    digest = hashlib.sha256()
    _feed(digest, thing)
    return digest.hexdigest()[:16]


def _feed(digest, thing: Any) -> None:
    say = lambda text: digest.update(f"{text};".encode())
    if isinstance(thing, (jax.Array, np.ndarray, np.generic)):
        array = np.asarray(thing)
        say(f"{array.dtype}{array.shape}")
        digest.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(thing, eqx.Module):
        _class(digest, type(thing))
        for field in dataclasses.fields(thing):  # pyright: ignore[reportArgumentType]
            say(field.name)
            _feed(digest, getattr(thing, field.name, None))
    elif isinstance(thing, dict):
        for name in thing:
            say(name)
            _feed(digest, thing[name])
    elif isinstance(thing, (list, tuple)):
        say(f"{type(thing).__name__}{len(thing)}")
        for part in thing:
            _feed(digest, part)
    elif isinstance(thing, types.FunctionType):
        say(f"{thing.__module__}.{thing.__qualname__}")
        _feed(digest, thing.__code__)
        inside = [cell.cell_contents for cell in thing.__closure__ or ()]
        _feed(digest, [x for x in inside if x is not thing])
        _feed(digest, [thing.__defaults__, thing.__kwdefaults__, _globals(thing)])
    elif isinstance(thing, types.CodeType):
        # names tell `jnp.max` from `jnp.min`; functions within are constants
        digest.update(thing.co_code)
        say(thing.co_names)
        _feed(digest, thing.co_consts)
    elif isinstance(thing, types.MethodType):
        _feed(digest, (thing.__func__, thing.__self__))
    elif isinstance(thing, functools.partial):
        _feed(digest, (thing.func, thing.args, thing.keywords))
    elif isinstance(thing, (set, frozenset)):
        _feed(digest, sorted(map(repr, thing)))
    elif isinstance(thing, type):
        _class(digest, thing)
    elif hasattr(thing, "__wrapped__"):  # what `jax.jit` makes of a function
        _feed(digest, thing.__wrapped__)
    else:
        say(f"{type(thing).__qualname__} {thing!r}")


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """Numbers and functions of its own module that a function of the user refers to."""
    if function.__module__.split(".")[0] == "cordax":
        return {}
    found = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, (int, float, str, np.ndarray, jax.Array)):
            found[name] = value
        elif isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
            found[name] = value.__code__  # which may refer to this one
    return found


def _class(digest, kind: type) -> None:
    """By name; classes of the user by their source too, which `code` does not cover."""
    digest.update(f"{kind.__module__}.{kind.__qualname__};".encode())
    if kind.__module__.split(".")[0] != "cordax":
        try:
            digest.update(inspect.getsource(kind).encode())
        except (OSError, TypeError):  # made at a prompt
            pass
