"""Functions that do the same: equal code on the same objects.

A `lambda` written in a loop is a new function each time, and a cache of compiled functions that
goes by identity would compile each of them."""

import types
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

#: compared by value; other objects that cannot change are compared by identity
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_UNCHANGING = (type, types.ModuleType, types.BuiltinFunctionType, eqx.Module, jax.Array)


class Same:
    """`function`, equal to others whose code is the same and who refer to the same objects."""

    def __init__(self, function: Callable, key: tuple):
        self.function, self.key = function, key

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __eq__(self, other):
        return isinstance(other, Same) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


class _Identity:
    """Compared by identity; keeps the object, so that no other takes its address."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return isinstance(other, _Identity) and self.x is other.x

    def __hash__(self):
        return id(self.x)


def same_if_equal(function: Callable) -> Callable:
    """`function` in a form that compares by what it does, where all it refers to cannot change;
    else as it is."""
    try:
        key = _function_key(function, ()) if isinstance(function, types.FunctionType) else None
    except _ChangesError:
        key = None
    return function if key is None else Same(function, key)


class _ChangesError(Exception):
    """Something a function refers to may change between calls."""


def _function_key(function: types.FunctionType, above: tuple) -> tuple:
    if function in above:
        return ("itself", above.index(function))
    above = (*above, function)
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    defaults = (function.__defaults__ or (), tuple(sorted((function.__kwdefaults__ or {}).items())))
    names = sorted(_names(function.__code__) & function.__globals__.keys())
    outside = tuple(function.__globals__[name] for name in names)
    return (function.__code__, *(_key(x, above) for x in (cells, defaults, tuple(names), outside)))


def _key(x: Any, above: tuple):
    if isinstance(x, _PLAIN):
        return (type(x), x)
    if isinstance(x, tuple):
        return (type(x), *(_key(y, above) for y in x))
    if isinstance(x, types.FunctionType):
        return _function_key(x, above)
    if isinstance(x, _UNCHANGING):
        return _Identity(x)
    raise _ChangesError


def _names(code: types.CodeType) -> set[str]:
    """What a function, and those within it, may look up outside."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*(_names(c) for c in inner))
