"""What a computation depends on, as short texts that change when it does."""

import dataclasses
import enum
import functools
import hashlib
import inspect
import types
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

#: whose classes and functions are known by their names: `code` and `versions` change with them
_KNOWN = ("cordax", "jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "optax", "qpax")
_KNOWN += ("numpy", "jaxtyping", "builtins", "functools", "operator", "typing", "math")
_PLAIN = (int, float, complex, str, bytes, bool, type(None), np.dtype, enum.Enum, slice, range)


class UnknownError(TypeError):
    """Something that may do another thing in another process without looking different."""


@functools.cache
def code() -> str:
    """Of the source of cordax."""
    folder, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def versions() -> str:
    """Of the packages that programs are made with."""
    return " ".join(f"{name}={_version(name)}" for name in _KNOWN)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def of(thing: Any) -> str:
    """Of a module: its classes, settings, numbers, and the source of functions that it holds."""
    digest = hashlib.sha256()
    _feed(digest, thing, False)
    return digest.hexdigest()[:16]


def exactly(thing: Any) -> str:
    """The same of what `code` and `versions` cover, longer; raises UnknownError where a class or a
    function of somebody else is part of it: nobody knows all that those depend on."""
    digest = hashlib.sha256()
    try:
        _feed(digest, thing, True)
    except RecursionError as error:
        raise UnknownError("functions that refer to each other") from error
    return digest.hexdigest()


class Shape:
    """In place of an array whose numbers do not matter."""

    def __init__(self, array):
        self.text = f"{array.dtype}{array.shape}{getattr(array, 'weak_type', False)}"


def _feed(digest, thing: Any, strict: bool) -> None:
    say = lambda text: digest.update(f"{text};".encode())
    feed = lambda part: _feed(digest, part, strict)
    if isinstance(thing, Shape):
        say(thing.text)
    elif strict and isinstance(thing, Tracer):
        raise UnknownError("numbers of a transformation")
    elif isinstance(thing, (jax.Array, np.ndarray, np.generic)):
        array = np.asarray(thing)
        say(f"{array.dtype}{array.shape}")
        digest.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(thing, eqx.Module):
        _class(digest, type(thing), strict)
        for field in dataclasses.fields(thing):  # pyright: ignore[reportArgumentType]
            say(field.name)
            feed(getattr(thing, field.name, None))
    elif isinstance(thing, dict):
        say(f"dict{len(thing)}")
        for name in thing:
            feed(name)
            feed(thing[name])
    elif isinstance(thing, (list, tuple)):
        say(f"{type(thing).__name__}{len(thing)}")
        for part in thing:
            feed(part)
    elif isinstance(thing, types.FunctionType):
        _known(thing, strict)
        say(f"{thing.__module__}.{thing.__qualname__}")
        feed(thing.__code__)
        inside = [cell.cell_contents for cell in thing.__closure__ or ()]
        feed([x for x in inside if x is not thing])
        feed([thing.__defaults__, thing.__kwdefaults__, _globals(thing)])
    elif isinstance(thing, types.CodeType):
        # names tell `jnp.max` from `jnp.min`; functions within are constants
        digest.update(thing.co_code)
        say(thing.co_names)
        feed(thing.co_consts)
    elif isinstance(thing, types.MethodType):
        feed((thing.__func__, thing.__self__))
    elif isinstance(thing, functools.partial):
        feed((thing.func, thing.args, thing.keywords))
    elif isinstance(thing, (set, frozenset)):
        feed(sorted(map(repr, thing)))
    elif isinstance(thing, type):
        _class(digest, thing, strict)
    elif hasattr(thing, "described"):  # what it is made of
        say(type(thing).__qualname__)
        feed(thing.described())
    elif hasattr(thing, "__wrapped__"):  # what `jax.jit` makes of a function
        feed(thing.__wrapped__)
    elif strict and not isinstance(thing, _PLAIN):
        raise UnknownError(type(thing).__qualname__)
    else:
        say(f"{type(thing).__qualname__} {thing!r}")


def _known(thing: Any, strict: bool) -> bool:
    known = str(thing.__module__).split(".")[0] in _KNOWN
    if strict and not known:
        raise UnknownError(f"{thing.__module__}.{thing.__qualname__}")
    return known


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """Numbers and functions of its own module that a function of the user refers to."""
    if str(function.__module__).split(".")[0] == "cordax":
        return {}
    found = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, (int, float, str, np.ndarray, jax.Array)):
            found[name] = value
        elif isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
            found[name] = value.__code__  # which may refer to this one
    return found


def _class(digest, kind: type, strict: bool) -> None:
    """By name; classes of the user by their source too, which `code` does not cover."""
    digest.update(f"{kind.__module__}.{kind.__qualname__};".encode())
    if not _known(kind, strict):
        try:
            digest.update(inspect.getsource(kind).encode())
        except (OSError, TypeError):  # made at a prompt
            pass
