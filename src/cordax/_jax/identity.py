"""Decide when a traced or compiled program may be reused.

A program is reused only if everything that its functions and classes can reach is unchanged
(`_jax/reachable.py`). `jax.jit` compares functions only by identity. So every compiled function of
cordax is called in a context that JAX makes part of the keys of its caches: a digest of everything
that the arguments of the call can reach, except arrays. Library code does not change and needs no
context."""

import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .reachable import TRANSFORMED, Reachable, is_unchanged, structure_parts

_ARRAYS = (jax.Array, np.ndarray, np.generic)
_PLAIN = (*_ARRAYS, int, float, str, type(None))
#: part of the keys of all caches of JAX; None if only library code is reached
_context = jax.make_user_context(None)


class _Unequal:
    """A token that is not equal to any other token."""


class _Parts(NamedTuple):
    """The parts of a tree that are not arrays.

    - `objects`: these parts if they never change, None if containers of the tree may change.
    - `classes`: the classes of cordax if the tree reaches only these, otherwise None."""

    objects: tuple | None
    classes: frozenset[type] | None


#: parts of modules and other objects that cannot change, by address
_known: dict[int, tuple[Any, _Parts]] = {}


class _Call(threading.local):
    """Tokens computed and classes found unchanged during one call, in which no code changes."""

    tokens: dict[int, tuple[Any, Any]] | None = None
    unchanged: frozenset[type] = frozenset()


_call = _Call()


@contextmanager
def one_call() -> Iterator[None]:
    """Context in which functions and classes do not change, so each token is computed once."""
    before = _call.tokens, _call.unchanged
    _call.tokens, _call.unchanged = {}, frozenset()
    try:
        yield
    finally:
        _call.tokens, _call.unchanged = before


def token_of(*things: Any) -> Any:
    """Return a token that identifies the behaviour of `things`.

    Two tokens are equal only if all functions, classes and other objects in `things`, except
    arrays, behave identically. None if all of them belong to libraries."""
    tokens = tuple(_token(x) for x in things if type(x) not in _IMMUTABLE)
    if all(x is None for x in tokens):
        return None
    return next((x for x in tokens if isinstance(x, _Unequal)), tokens)


def is_known(token: Any) -> bool:
    """Return whether a later call can have an equal token."""
    return not isinstance(token, _Unequal)


_IMMUTABLE = frozenset((bool, int, float, str, type(None), np.ndarray, np.float64))


def _token(x: Any) -> Any:
    if isinstance(x, _PLAIN):
        return None
    known = _call.tokens
    if known is None:
        return _compute_token(x)
    entry = known.get(id(x))
    if entry is None:
        entry = known[id(x)] = x, _compute_token(x)
    return entry[1]


def _compute_token(x: Any) -> Any:
    parts = _parts(x)
    if parts.classes is not None:
        rest = parts.classes - _call.unchanged
        if all(map(is_unchanged, rest)):
            if rest and _call.tokens is not None:
                _call.unchanged |= rest
            return None
    seen = Reachable(_split(x)[0] if parts.objects is None else parts.objects)
    if seen.unknown is not None:
        _warn(seen.unknown)
        return _Unequal()
    return seen.digest if seen.own else None


def _parts(x: Any) -> _Parts:
    entry = _known.get(id(x))
    if entry is not None and entry[0]() is x:
        return entry[1]
    objects, constant = _split(x)
    seen = Reachable(objects)
    classes = frozenset(seen.classes)
    parts = _Parts(objects if constant else None, None if seen.own or not constant else classes)
    if isinstance(x, eqx.Module) or hasattr(type(x), "identity_parts"):
        number = id(x)
        _known[number] = weakref.ref(x, lambda _, known=_known: known.pop(number, None)), parts
    return parts


def _split(x: Any) -> tuple[tuple, bool]:
    """Return the parts of a tree that are not arrays, and whether the tree is immutable."""
    leaves, structure = jax.tree.flatten(x)
    others = tuple(_DATA if isinstance(y, _ARRAYS) else y for y in leaves)
    parts = structure_parts(structure)
    return (*parts, *others), not any(map(_may_change, parts))


_DATA = "array"


def _may_change(part: Any) -> bool:
    """Return whether tree nodes of the class `part` are mutable; False if `part` is no class."""
    if not isinstance(part, type) or issubclass(part, eqx.Module):
        return False
    return not issubclass(part, (tuple, type(None)))


def is_constant(*things: Any) -> bool:
    """Return whether the modules in `things` hold the same arrays in every call."""
    return all(isinstance(x, _PLAIN) or _parts(x).objects is not None for x in things)


def digest_of(*things: Any) -> bytes | None:
    """Return a digest of everything that `things` reach, equal in all processes; None if there is
    no such digest."""
    seen = Reachable(things)
    return None if seen.local or seen.unknown is not None else seen.digest


def library_digest(thing: Any) -> bytes | None:
    """Return a digest of a tree without its arrays, equal in all processes.

    None if there is no such digest, or if the tree reaches code of the user."""
    seen = Reachable(_split(thing)[0])
    return None if seen.own or seen.local or seen.unknown is not None else seen.digest


_warned: set[str] = set()


def _warn(reason: str) -> None:
    if reason not in _warned and reason != TRANSFORMED:
        _warned.add(reason)
        warnings.warn(
            f"compiles again in every call: {reason}, so it cannot be established that the next "
            "call does the same. Compute such values before the call and pass them as parameters",
            stacklevel=2,
        )


@jax.tree_util.register_static
class Compiled:
    """A function compiled by `jax.jit` or `eqx.filter_jit` that is traced again whenever something
    that its arguments can reach changes."""

    def __init__(self, function: Callable, compiled: Callable, static: tuple[int, ...] | None):
        """`static`: positions of arguments that are not arrays; None if any argument may be
        static."""
        functools.update_wrapper(self, function)
        self.function, self.compiled, self._static = function, compiled, static

    def token(self, arguments: tuple, named: dict) -> Any:
        """Return the token of a call."""
        if self._static is not None:
            return token_of(*(arguments[i] for i in self._static))
        return token_of(*arguments, *named.values())

    def __call__(self, *arguments, **named):
        token = self.token(arguments, named)
        if token is None:
            return self.compiled(*arguments, **named)
        return self.call_with(token, *arguments, **named)

    def call_with(self, token, *arguments, **named):
        """Call the function with a program that is reused only for this token."""
        with _context(token):
            return self.compiled(*arguments, **named)

    def lower(self, *arguments, **named):
        """Lower the function for these arguments, like `lower` of a `jax.jit` function."""
        with _context(self.token(arguments, named)):
            return self.compiled.lower(*arguments, **named)  # pyright: ignore

    def __get__(self, instance, owner=None):
        return self if instance is None else eqx.Partial(self, instance)

    def identity_parts(self) -> tuple:
        return (self.function,)


def filter_jit(function: Callable | None = None, /, **options) -> Any:
    """Compile like `eqx.filter_jit`; trace again if something that the arguments reach changes."""
    if function is None:
        return functools.partial(filter_jit, **options)
    return Compiled(function, eqx.filter_jit(function, **options), None)


def jit(function: Callable | None = None, /, *, static: tuple[int, ...] = ()) -> Any:
    """Compile like `jax.jit`; trace again if something that the static arguments reach changes.

    Calls have less overhead than those of `filter_jit`. `static`: positions of static arguments."""
    if function is None:
        return functools.partial(jit, static=static)
    return Compiled(function, jax.jit(function, static_argnums=static), static)


class Same:
    """Wrapper of `function` that is equal to wrappers of functions with identical behaviour."""

    def __init__(self, function: Callable, digest: bytes):
        self.function, self.digest = function, digest

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __eq__(self, other):
        return isinstance(other, Same) and self.digest == other.digest

    def __hash__(self):
        return hash(self.digest)

    def identity_parts(self) -> tuple:
        return (self.digest,)


def by_value(function: Callable) -> Callable:
    """Wrap `function` such that functions with identical behaviour compare equal.

    For example, a `lambda` in a loop is a new function in each pass. Returns `function` unchanged
    if its behaviour cannot be established, or if it is a tree that holds arrays."""
    if isinstance(function, Same) or any(map(eqx.is_array, jax.tree.leaves(function))):
        return function
    seen = Reachable((function,))
    return function if seen.unknown is not None else Same(function, seen.digest)
