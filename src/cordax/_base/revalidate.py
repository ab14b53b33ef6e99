"""Repeat the checks of a module for parameters that were set after its construction.

Parameters set by `eqx.tree_at` or in a batch do not pass through the constructor."""

import dataclasses
import functools
import operator
import weakref
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .checks import hidden_checks, require_finite, require_shape
from .precision import Number


def recheck(*parts) -> Any:
    """Raise `ValueError` if the constructors of the modules would reject one of their parameters.

    Returns True, or, if parameters are traced, a traced boolean: whether these pass the checks.
    """
    with hidden_checks() as hidden:
        for part in parts:
            _walk(part, hidden, 0)
    return jnp.all(jnp.stack(hidden)) if hidden else True


#: modules that have passed, by address; modules are immutable and many runs use the same ones
_passed: Any = weakref.WeakValueDictionary()


def _walk(part, hidden: list, depth: int) -> None:
    if isinstance(part, (tuple, list)):
        for x in part:
            _walk(x, hidden, depth)
        return
    if not isinstance(part, eqx.Module) or _passed.get(id(part)) is part:
        return
    noted = len(hidden)
    if depth > 1 and _is_stacked(part):  # dynamics and machine are never stacked
        _check_members(part, hidden)
    else:
        numbers, others, checks = _contents(type(part))
        for name, converter in numbers:
            x = getattr(part, name)
            if x is not None and converter.checked:
                if converter.shape is not None:
                    require_shape(name, x, converter.shape)
                require_finite(name, x)
        for name in others:
            _walk(getattr(part, name, None), hidden, depth + 1)
        for check in checks:
            check(part)
    if len(hidden) == noted:
        _passed[id(part)] = part


def _is_stacked(part) -> bool:
    """Return whether a module is a stack of equal parts, as machines use them.

    The arrays of such a module have one axis more than declared. Its checks are written for a
    single part."""
    if isinstance(part, (tuple, list)):
        return any(map(_is_stacked, part))
    if not isinstance(part, eqx.Module):
        return False
    numbers, others, _ = _contents(type(part))
    for name, converter in numbers:
        axes = getattr(getattr(part, name), "ndim", 0)
        if converter.shape is not None and axes > len(converter.shape):
            return True
    return any(_is_stacked(getattr(part, name, None)) for name in others)


def _check_members(part, hidden: list) -> None:
    """Apply the checks of a single module to each member of the stacked module `part`."""
    arrays, others = eqx.partition(part, eqx.is_array)
    leaves = jax.tree.leaves(arrays)
    for x in leaves:
        if jnp.issubdtype(x.dtype, jnp.inexact):
            require_finite(type(part).__name__, x)
    counts = {x.shape[0] if x.ndim else None for x in leaves}
    if len(counts) > 1 or None in counts:  # only partly stacked
        return
    if any(isinstance(x, Tracer) for x in leaves):
        passed = jax.vmap(lambda arrays: jnp.asarray(recheck(eqx.combine(arrays, others))))(arrays)
        hidden.append(jnp.all(passed))
        return
    values = jax.tree.map(np.asarray, arrays)
    for i in range(leaves[0].shape[0]):
        member = eqx.combine(jax.tree.map(operator.itemgetter(i), values), others)
        _walk(member, hidden, 0)


@functools.cache
def _contents(kind: type):
    """Return the numeric fields with their converters, the fields that may hold modules, and the
    checks of a class."""
    fields = [(f.name, f.metadata.get("converter")) for f in dataclasses.fields(kind)]
    dynamic = [f.name for f in dataclasses.fields(kind) if not f.metadata.get("static", False)]
    numbers = [(name, c) for name, c in fields if isinstance(c, Number)]
    others = [name for name in dynamic if name not in dict(numbers)]
    checks = [vars(k)["__check_init__"] for k in kind.__mro__ if "__check_init__" in vars(k)]
    return numbers, others, checks
