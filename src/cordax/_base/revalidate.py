"""Numbers set after a module was made, by `eqx.tree_at` or in a batch: its own checks once more."""

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
    """Raise `ValueError` where a number of the modules would be refused by their constructors.

    Returns True, or a traced boolean where JAX's transformations hide numbers: whether those pass.
    """
    with hidden_checks() as hidden:
        for part in parts:
            _walk(part, hidden, 0)
    return jnp.all(jnp.stack(hidden)) if hidden else True


#: modules that have passed, by their address: they cannot change, and many runs use the same
_passed: Any = weakref.WeakValueDictionary()


def _walk(part, hidden: list, depth: int) -> None:
    if isinstance(part, (tuple, list)):
        for x in part:
            _walk(x, hidden, depth)
        return
    if not isinstance(part, eqx.Module) or _passed.get(id(part)) is part:
        return
    noted = len(hidden)
    if depth > 1 and _is_stacked(part):  # what runs, and its machine, are single ones
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
    """Whether a module stands for many, each of its arrays with one axis more than it was declared
    with, as machines do with equal parts; its checks are those of a single one."""
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
    """The checks of a single module for each of those that `part` stands for."""
    arrays, others = eqx.partition(part, eqx.is_array)
    leaves = jax.tree.leaves(arrays)
    for x in leaves:
        if jnp.issubdtype(x.dtype, jnp.inexact):
            require_finite(type(part).__name__, x)
    counts = {x.shape[0] if x.ndim else None for x in leaves}
    if len(counts) > 1 or None in counts:  # not stacked as a whole
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
    """Fields with numbers and their converters, fields that may hold modules, and checks."""
    fields = [(f.name, f.metadata.get("converter")) for f in dataclasses.fields(kind)]
    dynamic = [f.name for f in dataclasses.fields(kind) if not f.metadata.get("static", False)]
    numbers = [(name, c) for name, c in fields if isinstance(c, Number)]
    others = [name for name in dynamic if name not in dict(numbers)]
    checks = [vars(k)["__check_init__"] for k in kind.__mro__ if "__check_init__" in vars(k)]
    return numbers, others, checks
