"""Serialisation of modules as plain data: names, numbers and arrays, without executable content.

A module becomes `{"kind": "cordax.systems.neck.neck:Neck", "fields": {...}}`; arrays are stored in
a separate table. Reading creates only modules of cordax and calls none of their code.
"""

import dataclasses
import functools
import importlib
import pkgutil
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class NotDescribable(ValueError):
    """Raised for an object that is not data of cordax: a function, or a class of the user."""


def describe(thing: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """Convert `thing` to JSON data; its arrays are added to `arrays` under `prefix` + number."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (jax.Array, np.ndarray)):
        name = f"{prefix}{len(arrays)}"
        arrays[name] = np.asarray(thing)
        return {"array": name, "jax": isinstance(thing, jax.Array)}
    inner = lambda x: describe(x, arrays, prefix)
    kind = type(thing)
    if _is_ours(kind):
        fields = _fields(kind)
        return {
            "kind": f"{kind.__module__}:{kind.__qualname__}",
            "fields": {name: inner(getattr(thing, name)) for name in fields},
        }
    if kind in (tuple, list):
        return {kind.__name__: [inner(x) for x in thing]}
    if kind is dict and all(isinstance(name, str) for name in thing):
        return {"dict": {name: inner(x) for name, x in thing.items()}}
    raise NotDescribable(f"{kind.__module__}.{kind.__qualname__}")


def rebuild(data: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Restore an object from data returned by `describe`. Raises `ValueError` for other data."""
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    inner = lambda x: rebuild(x, arrays)
    if isinstance(data, dict):
        if data.keys() == {"array", "jax"} and data["array"] in arrays:
            array = arrays[data["array"]]
            return jnp.asarray(array) if data["jax"] else array
        if data.keys() == {"kind", "fields"} and isinstance(data["fields"], dict):
            return _made(str(data["kind"]), {n: inner(x) for n, x in data["fields"].items()})
        for kind in (tuple, list):
            if data.keys() == {kind.__name__} and isinstance(data[kind.__name__], list):
                return kind(inner(x) for x in data[kind.__name__])
        if data.keys() == {"dict"} and isinstance(data["dict"], dict):
            return {name: inner(x) for name, x in data["dict"].items()}
    raise ValueError("data that describe no machine")


def _is_ours(kind: type) -> bool:
    ours = kind.__module__.split(".")[0] == "cordax"
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return ours and (issubclass(kind, eqx.Module) or named)


def _fields(kind: type) -> tuple[str, ...]:
    if issubclass(kind, tuple):
        return kind._fields  # pyright: ignore[reportAttributeAccessIssue]
    return tuple(field.name for field in dataclasses.fields(kind))  # pyright: ignore


def _made(name: str, values: dict[str, Any]) -> Any:
    kind = _class(name)
    if set(_fields(kind)) != set(values):
        odd = ", ".join(sorted(set(_fields(kind)) ^ set(values)))
        raise ValueError(f"a {kind.__name__} of another version of cordax (fields {odd})")
    if issubclass(kind, tuple):
        return kind(**values)
    # like JAX, create the module without calling its constructor or converters
    thing = object.__new__(kind)
    for field, value in values.items():
        object.__setattr__(thing, field, value)
    return thing


#: packages whose modules define machines and their parts
_PACKAGES = ("control", "formulations", "integrators", "mechanics", "parameters", "reduction")
_PACKAGES += ("identification", "math", "recordings", "simulation", "systems")


@functools.cache
def _modules() -> frozenset[str]:
    """Return the modules of cordax that a file may name; no other module is imported."""
    found: set[str] = set()
    for package in _PACKAGES:
        module = importlib.import_module(f"cordax.{package}")
        paths = pkgutil.walk_packages(module.__path__, f"cordax.{package}.")
        found |= {module.__name__, *(x.name for x in paths)}
    return frozenset(name for name in found if "__" not in name)


def _class(name: str) -> type:
    """Return a class of cordax by module and name. Raises `ValueError` if it does not exist."""
    unknown = ValueError(f"the kind {name!r}, which this version of cordax does not have")
    module, _, own = name.partition(":")
    if not re.fullmatch(r"\w+", own) or module not in _modules():
        raise unknown
    try:
        kind = getattr(importlib.import_module(module), own)
    except (ImportError, AttributeError) as error:
        raise unknown from error
    if not (isinstance(kind, type) and _is_ours(kind)):
        raise unknown
    return kind
